"""The pages stay readable: short functions, named outputs, known types, one name on both sides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

FRONTEND = Path(__file__).parents[2] / "frontend"
MOST_LINES = 60
MOST_ANY = 100
MOST_FILE_LINES = 450
COMPONENTS = {
    "01_store.js": ("dash_stores",),
    "graph_later.js": ("dash_core_components",),
    "grid_later.js": ("dash_ag_grid",),
    "numbers_later.js": ("dash_mantine_components",),
    "once_seen.js": ("maat_parts",),
}
MOST_COLUMNS = 100
SOURCES = sorted(FRONTEND.rglob("*.py"))
SCRIPTS = sorted((FRONTEND / "assets").glob("*.js"))
STYLES = sorted((FRONTEND / "assets").glob("*.css"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def nodes() -> Iterator[tuple[Path, ast.AST]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            yield path, node


def names_in_python() -> set[str]:
    """Names of the functions that `in_browser` registers."""
    return {
        node.args[1].value
        for _, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "in_browser"
        and isinstance(node.args[1], ast.Constant)
        and isinstance(node.args[1].value, str)
    }


def names_in_scripts() -> set[str]:
    """Names of the functions that scripts add with `maat.callbacks({...})`."""
    blocks = re.compile(r"^    maat\.callbacks\(\{\n(.*?)^    \}\);", re.MULTILINE | re.DOTALL)
    name = re.compile(r"^ {8}(?:async )?(\w+)(?:\(|: )", re.MULTILINE)
    return {
        found
        for path in SCRIPTS
        for block in blocks.findall(path.read_text())
        for found in name.findall(block)
    }


def test_no_style_depends_on_what_stands_elsewhere_in_the_page() -> None:
    """With `.card:has(.chart) .title`, browsers compute all styles again after each change."""
    elsewhere = re.compile(r":has\((?:[^()]|\([^()]*\))*\)[^\s,{]*\s+[^\s,{][^,{]*")
    assert [found for path in STYLES for found in elsewhere.findall(path.read_text())] == []


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{path.relative_to(FRONTEND)}: {node.name}"
        for path, node in nodes()
        if isinstance(node, FUNCTIONS)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MOST_LINES
    ]

    assert long == []


def test_no_file_is_longer_than_the_others_may_be() -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in (*SOURCES, *SCRIPTS)}

    assert {name: count for name, count in lines.items() if count > MOST_FILE_LINES} == {}


def test_no_line_of_a_script_or_a_style_sheet_is_longer_than_those_of_python() -> None:
    long = [
        f"{path.name}:{number}"
        for path in (*SCRIPTS, *STYLES)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > MOST_COLUMNS
    ]

    assert long == []


def test_few_values_have_any_type() -> None:
    count = sum(isinstance(node, ast.Name) and node.id == "Any" for _, node in nodes())

    assert count <= MOST_ANY


def test_callbacks_are_registered_in_one_place_with_named_outputs() -> None:
    """`answer` fills in what a callback does not name, so that none answers by position."""
    by_hand = [
        str(path.relative_to(FRONTEND))
        for path, node in nodes()
        if isinstance(node, ast.Attribute) and node.attr == "callback"
    ]
    repeated = [
        str(path.relative_to(FRONTEND))
        for path, node in nodes()
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and isinstance(node.left, ast.Tuple)
        and any(isinstance(part, ast.Name) and part.id == "no_update" for part in node.left.elts)
    ]

    assert (by_hand, repeated) == (["callbacks.py"], [])


def test_callbacks_are_functions_of_their_modules() -> None:
    nested = [
        f"{path.relative_to(FRONTEND)}: {inner.name}"
        for path, node in nodes()
        if isinstance(node, FUNCTIONS) and node.name.lstrip("_").startswith("register")
        for inner in ast.walk(node)
        if isinstance(inner, FUNCTIONS) and inner is not node
    ]

    assert nested == []


def test_every_function_named_by_python_is_in_the_scripts_and_the_other_way_round() -> None:
    assert names_in_scripts() == names_in_python()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_share_one_global(path: Path) -> None:
    """One may put a component where Dash looks for it."""
    written = set(re.findall(r"^\s*window\.(\w+) = ", path.read_text(), re.MULTILINE))

    assert written <= {"dash_clientside", *COMPONENTS.get(path.name, ())}
