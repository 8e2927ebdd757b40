"""Where a browser may be sent after signing in: to a page of this service, nowhere else."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

HOME = "/"


def local_path(wanted: str | None) -> str:
    """Return the path with its query if it is one of Maat's pages, else the first page.

    Browsers read `//host` and `/\\host` as other sites, drop tabs and line ends, and resolve dots:
    `/x/..//host` becomes `//host`.
    """
    if not wanted or not wanted.startswith("/") or len(wanted) > 2000:
        return HOME
    if "\\" in wanted or not wanted.isprintable() or wanted.startswith("//"):
        return HOME
    parts = urlsplit(wanted)
    if parts.scheme or parts.netloc or parts.path.startswith(("/api/", "/sign-in")):
        return HOME
    if "//" in parts.path or {".", ".."} & set(unquote(parts.path).split("/")):
        return HOME
    return wanted
