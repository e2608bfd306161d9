"""The house is measured in tokens, whatever stands on a line, and by one Python alone."""

import subprocess
import sys

import pytest

from tools import measure_house
from tools.measure_house import FOLDERS, HIDDEN, ROOT, names_a_room, sizes, tokens

CODE = '''"""Not counted."""

def f(x):  # nor this
    """Nor this."""
    return "one" + g(x, 2)
'''


def test_names_operators_numbers_and_strings_count_and_docstrings_and_layout_do_not():
    assert tokens(CODE) == 6 + 9  # def f ( x ) :, return "one" + g ( x , 2 )
    assert tokens(CODE.replace("(x, 2)", "(\n    x, 2\n)")) == tokens(CODE)
    assert tokens(CODE + '"a string alone"\n') == tokens(CODE) + 1


def test_a_room_is_named_by_a_string_and_not_by_a_docstring():
    assert names_a_room('load("attnbias.beyond")') and names_a_room('f"attnbias.beyond.{name}"')
    assert not names_a_room('"""Heads of attnbias.beyond."""') and not names_a_room("beyond = 1")


def test_each_row_counts_its_own_folders(tmp_path):
    for folder in ("attnbias/beyond/room", "attnbias/data", "book/plots", "tools", "tests"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "one.py").write_text("x = 1  # fmt: " + "skip\n")
    assert [*sizes(tmp_path).values()] == [3, 6, 3, 6, 5, 0]


def test_the_formatter_is_obeyed():
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert sum(len(HIDDEN.findall(path.read_text("utf8"))) for path in paths) <= 20


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="it counts by Python 3.11")
def test_calls_are_counted_until_the_compiled_loop():
    command = [sys.executable, measure_house.__file__, "--calls"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    calls, functions, files = map(int, done.stdout.split(","))
    assert calls > functions / 2 > files > 5


def test_another_python_is_refused_because_it_counts_f_strings_otherwise(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 12))
    with pytest.raises(SystemExit, match=r"this is 3\.12\. Run it by python3\.11"):
        measure_house.main([])
