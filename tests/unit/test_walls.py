"""The house's walls: modules, folders and functions that one can take in at a glance."""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import attnbias

HOME = Path(attnbias.__file__).parent
SOURCES = {path.relative_to(HOME).as_posix(): path.read_text("utf8") for path in HOME.rglob("*.py")}
MODULE, FOLDER, FUNCTION, ARGUMENTS = 300, 15, 30, 7  # lines of code, modules, lines of code, names
# What is larger still. A public name keeps its arguments; a compiled loop is one function, since a
# call in it costs; the others wait to be split. What is not named here may not come.
STILL = {
    "dataset.__init__",
    "dataset.from_frame",
    "dataset.from_sequences",
    "trace.__init__",
    "training.__init__",
    "__init__.as_numbers",
    "arithmetic.symmetric_product",
    "checkpoint.resume",
    "checks.along",
    "claims.claims",
    "command._stored",
    "compare.check_lead",
    "experiments._measured",
    "fig10.claims",
    "fig10.run",
    "fig2._polyak_capped",
    "fig2._rates",
    "fig2._softmax",
    "fig3._joint",
    "fig8._convergence",
    "fig8._start",
    "fig9.claims",
    "loop._make",
    "loop.loop",
    "norms.least_norm",
    "record._made",
    "risk._gradients",
    "runs.fixed_of",
    "runs.train_all",
    "slack._choose_row",
    "softmax.softmax",
    "solution.proved",
    "synthetic.make_example1",
    "trace_validation.require_same_shapes",
    "train.series_of",
    "training.fit",
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def code_lines(source: str) -> set[int]:
    """The lines of a module that hold code: docstrings, comments and blank lines apart."""
    found: set[int] = set()
    for each in tokenize.generate_tokens(io.StringIO(source).readline):
        if each.type not in (*LAYOUT, tokenize.ENDMARKER):
            found.update(range(each.start[0], each.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            found.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return found


def faults(sources: dict[str, str]) -> list[str]:
    """What of these modules is too large, a line each."""
    folders = Counter(name.rpartition("/")[0] for name in sources if "__init__" not in name)
    found = [f"{name}/: {count} modules" for name, count in folders.items() if count > FOLDER]
    for name, source in sources.items():
        lines = code_lines(source)
        if len(lines) > MODULE:
            found.append(f"{name}: {len(lines)} lines of code")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, FUNCTIONS):
                body = len(lines & {*range(node.body[0].lineno, node.end_lineno + 1)})
                given = len(node.args.posonlyargs) + len(node.args.args)
                place = f"{Path(name).stem}.{node.name}"
                if body > FUNCTION:
                    found.append(f"{place}: {body} lines of code")
                if given > ARGUMENTS:
                    found.append(f"{place}: {given} positional arguments")
    return found


def test_nothing_else_is_too_large_and_what_was_split_is_no_exception():
    assert {each.partition(":")[0] for each in faults(SOURCES)} == STILL


def test_what_is_too_large_would_be_noticed():
    wide = "def f(a, b, c, d, e, g, h, i):\n    pass\n"
    long = '"""Words."""\n\n\ndef f():\n    """Words.\n\n    More.\n    """\n' + "    f()\n" * 31
    many = {f"room/m{k}.py": "" for k in range(FOLDER)} | {"room/__init__.py": ""}
    assert faults({"wide.py": wide}) == ["wide.f: 8 positional arguments"]
    assert faults({"long.py": long}) == ["long.f: 31 lines of code"]
    assert faults({"long.py": long.replace("    f()\n", "    # words\n", 1)}) == []
    assert faults({"m.py": "x = 1  # one\n\n" * 301}) == ["m.py: 301 lines of code"]
    assert faults(many) == [] and faults(many | {"room/one.py": ""}) == ["room/: 16 modules"]
