"""A check is taken by its key: no code of the project finds one by the words of its statement."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("attnbias", "benchmarks", "book", "scripts", "tests", "tools")
SEARCHES = {"startswith", "endswith", "find", "count", "removeprefix", "removesuffix"}
CHOOSES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def reads_statement(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr == "statement" for each in ast.walk(node)
    )


def searches(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in SEARCHES and reads_statement(node.func.value)
    within = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn)
    return within and reads_statement(node.comparators[0])


def deciding(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of code, without what an assertion says of one check that is chosen already."""
    told = isinstance(node, ast.Assert)
    for each in ast.walk(node) if told else ast.iter_child_nodes(node):
        if not told:
            yield each
        if not told or isinstance(each, CHOOSES):
            yield from deciding(each)


def searched(code: str) -> list[int]:
    """Lines on which the text of a statement decides what is taken."""
    return [node.lineno for node in deciding(ast.parse(code)) if searches(node)]


def sources() -> Iterator[tuple[Path, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, path.read_text(encoding="utf8")
    for path in sorted((ROOT / "book").rglob("*.md")):
        cells = path.read_text(encoding="utf8").split("```{code-cell}")[1:]
        code = "\n".join(cell.partition("\n")[2].partition("\n```")[0] for cell in cells)
        lines = [line for line in code.splitlines() if not line.startswith((":", "%", "!"))]
        yield path, "\n".join(lines)


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("[c for c in t if c.statement.startswith('path')]", [1]),
        ("x = 1\nassert any('path' in c.source + c.statement for c in t)", [2]),
        ("for c in t:\n    if 'path' in c.statement:\n        print(c)", [2]),
        ("t['path'].statement.split(':')[0], 'path' in c.reason, c.key.startswith('gap')", []),
        ("assert 'path' in t['path'].statement", []),
    ],
)
def test_what_searches_a_statement_is_seen(code, lines):
    assert searched(code) == lines


def test_checks_are_taken_by_their_keys():
    read = [(path, code) for path, code in sources() if ".statement" in code]
    assert len(read) > 10
    assert [(str(path), lines) for path, code in read if (lines := searched(code))] == []
