"""How large the house is, in tokens: of the library, of its tests, and of what makes the book.

python3.11 -m tools.measure_house [COMMIT]

Tokens are names, operators, numbers and strings, docstrings apart. A commit is measured in place of
the working tree.
"""

import argparse
import ast
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNTED = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FOLDERS = ("attnbias", "book", "tools", "tests", "scripts", "benchmarks")
HIDDEN = re.compile(r"#\s*fmt:\s*(?:skip|off)")


def tokens(source: str) -> int:
    """Names, operators, numbers and strings of a module that are no docstrings."""
    docstrings = {
        (node.body[0].lineno, node.body[0].col_offset)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None
    }
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(each.type in COUNTED and each.start not in docstrings for each in found)


def names_a_room(source: str) -> bool:
    """Whether a string that is no docstring has the rooms' folder as a module to import."""
    tree = ast.parse(source)
    prose = {ast.get_docstring(n, clean=False) for n in ast.walk(tree) if isinstance(n, DOCUMENTED)}
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return any(isinstance(s, str) and s not in prose and "attnbias.beyond" in s for s in strings)


def sizes(root: Path) -> dict[str, int]:
    """The rows of the table that are read off the files below `root`."""
    sources = {
        path.relative_to(root).as_posix(): path.read_text("utf8")
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
    }

    def total(*folders: str) -> int:
        return sum(tokens(text) for name, text in sources.items() if name.startswith(folders))

    library = total("attnbias/")
    core = {
        name: text
        for name, text in sources.items()
        if name.startswith("attnbias/") and not name.startswith("attnbias/beyond/")
    }
    return {
        "tokens of the core": library - total("attnbias/beyond/"),
        "tokens of the whole library": library,
        "tokens of the tests": total("tests/"),
        "tokens of the book's and tools' Python": total("book/", "tools/"),
        "fmt: skip, fmt: off": sum(len(HIDDEN.findall(text)) for text in sources.values()),
        "core modules that name a room by string": sum(map(names_a_room, core.values())),
    }


def count_calls() -> tuple[int, int, int]:
    """Calls before `train` is in the compiled loop, then functions and files of the whole run."""
    import attnbias
    from attnbias import NGD, make_example1, solve_w_svm, train

    home, entered = attnbias.__path__[0], []

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(home):
            entered.append((code.co_filename, code.co_name))

    data = make_example1(seed=0)
    svm = solve_w_svm(data)
    train(data, NGD(0.5), 1000, svm=svm)  # the first run compiles
    sys.setprofile(note)
    train(data, NGD(0.5), 1000, svm=svm)
    sys.setprofile(None)
    # numba reports its compiled functions as if they were Python's
    loop = next(e for e in entered if e[0].endswith("compiled/loop.py") and e[1] == "loop")
    return entered.index(loop), len({*entered} - {loop}), len({path for path, _ in entered})


def calls(root: Path) -> str:
    """`count_calls` of the library below `root`, which needs a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--calls"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout.strip()


def report(root: Path) -> str:
    """The table, a row a line."""
    rows = {name: f"{size:,}" for name, size in sizes(root).items()}
    rows["calls from train to the compiled loop; functions and files of the run"] = calls(root)
    return "\n".join(f"{value:>13}  {name}" for name, value in rows.items())


def main(arguments: list[str] | None = None) -> int:
    """Print the table; exit status 2 under another Python than 3.11."""
    if sys.version_info[:2] != (3, 11):
        sys.exit(
            "tools.measure_house counts by Python 3.11, where an f-string is one token; this is "
            f"{sys.version_info[0]}.{sys.version_info[1]}. Run it by python3.11."
        )
    parser = argparse.ArgumentParser(prog="python3.11 -m tools.measure_house")
    parser.add_argument("commit", nargs="?", help="measured in place of the working tree")
    parser.add_argument("--calls", action="store_true", help="only the calls, of what is imported")
    given = parser.parse_args(arguments)
    if given.calls:
        print(*count_calls(), sep=", ")
        return 0
    if given.commit is None:
        print(report(ROOT))
        return 0
    command = ["git", "archive", given.commit]
    packed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")
        print(report(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
