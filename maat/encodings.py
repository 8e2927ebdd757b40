"""How the letters of a text file are coded: UTF-8, UTF-16 or Windows-1252."""

from __future__ import annotations


def encoding_of(first: bytes) -> str:
    """Return what the first bytes show: UTF-16 by its mark or its NUL bytes; else UTF-8."""
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    even, odd = first[0::2], first[1::2]
    if len(first) >= 8 and 0 < 0.8 * len(odd) <= odd.count(0) and not even.count(0):
        return "utf-16-le"
    if len(first) >= 8 and 0 < 0.8 * len(even) <= even.count(0) and not odd.count(0):
        return "utf-16-be"
    return "utf-8"


def decoded_line(line: bytes) -> tuple[str, bool]:
    """Return a line as UTF-8, else as what Windows of Western Europe writes; and whether it is."""
    try:
        return line.decode("utf-8"), True
    except UnicodeDecodeError:
        pass
    try:
        return line.decode("cp1252"), False
    except UnicodeDecodeError:
        return line.decode("latin-1"), False


def decoded(read: bytes) -> tuple[str, int]:
    """Return the text of a file without its mark, and how many lines were no UTF-8."""
    encoding = encoding_of(read[:4096])
    if encoding != "utf-8":
        return read.decode(encoding, "replace").removeprefix("\ufeff"), 0
    lines = [decoded_line(line) for line in read.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    return "\n".join(text for text, _ in lines), sum(not is_utf8 for _, is_utf8 in lines)
