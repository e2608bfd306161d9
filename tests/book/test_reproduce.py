"""`make reproduce`: each recorded file has its commands, which exist and leave the record alone."""

import importlib.util
import shlex
import subprocess
import sys

import pytest

from tools import reproduce
from tools.reproduce import OUT, RESULTS, Result, described, make, read_results

KNOWN = read_results()


def test_every_recorded_file_is_listed_once_and_nothing_else():
    recorded = {p.relative_to(RESULTS).as_posix() for p in RESULTS.rglob("*") if p.is_file()}
    assert sorted(result.file for result in KNOWN.values()) == sorted(recorded)


@pytest.mark.parametrize("name", KNOWN)
def test_each_command_is_a_module_of_the_clone_and_writes_outside_of_the_record(name):
    lines = KNOWN[name].commands()
    for words in map(shlex.split, lines):
        if words[0] == "python":
            assert words[1] == "-m" and importlib.util.find_spec(words[2]) is not None
        else:
            assert words[:2] in (["git", "clone"], ["cp", "-r"])
    writes = [line.replace("cp -r book/results", "") for line in lines]
    assert OUT in writes[-1] and not any("book/results" in line for line in writes)


def test_it_lists_what_is_known_of_each():
    text = described("a", Result("a.json", ["python -m a --write {out}/a.json"], by_hand="coq"))
    assert "time not measured" in text and "by hand: coq" in text and f"{OUT}/a.json" in text
    lines = Result("a", ["python -m a {checkout}"], checkout="https://b/c/d").commands("out")
    assert lines == ["git clone https://b/c/d out/d", "python -m a out/d"]


def test_commands_run_in_their_order_until_one_fails(monkeypatch, capsys):
    called = []

    def run(call, cwd):
        called.append(call)
        return subprocess.CompletedProcess(call, returncode=int("two" in call))

    monkeypatch.setattr(reproduce.subprocess, "run", run)
    given = Result("a.json", ["python -m one", "python -m two", "python -m three"])
    assert make(given) == 1 and [call[-1] for call in called] == ["one", "two"]
    assert called[0][0] == sys.executable
    assert make(Result("a.json", ["python -m one"])) == 0
    assert f"{OUT}/a.json is made" in capsys.readouterr().out


def test_a_name_that_nobody_has_is_refused_and_the_nearest_named(capsys):
    with pytest.raises(SystemExit):
        reproduce.main(["forcast"])
    assert "did you mean forecast?" in capsys.readouterr().err
    assert reproduce.main([]) == 0 and "forecast  (" in capsys.readouterr().out
