"""`make test`: every part runs, the worst decides, the sum stands last; `make` warns of nothing."""

import re
import subprocess
from collections import Counter

import pytest

from tools import run_tests
from tools.chapters import ROOT
from tools.run_tests import PARTS, Outcome, Part
from tools.shake import FACTORS, SECOND, environment

GOOD = "def test_a():\n    assert True\n"
BAD = "import pytest\n\n\ndef test_b():\n    assert False\n\n\ndef test_c():\n    pytest.skip('')\n"
BROKEN = "import no_such_module\n"


@pytest.fixture
def parts(tmp_path):
    """Three small parts: one fails, one can't be collected, one is fine."""
    found = []
    for name, code in {"bad": BAD, "broken": BROKEN, "good": GOOD}.items():
        path = tmp_path / f"test_{name}.py"
        path.write_text(code)
        found.append(
            Part(name, ("-n", "0", "-q", f"--rootdir={tmp_path}", "-c", "/dev/null", str(path)))
        )
    return tuple(found)


@pytest.mark.slow
def test_a_failure_hides_no_other_part_and_the_worst_decides(parts, capfd):
    assert run_tests.main(parts) == 2
    lines = capfd.readouterr().out.splitlines()
    assert lines[-1] == "1 passed, 2 failed"
    assert re.fullmatch(r"bad     0 passed, 1 failed, 1 skipped in \d+ s", lines[-4])
    assert lines[-3].startswith("broken  0 passed, 1 failed") and "status 2" in lines[-3]
    assert lines[-2].startswith("good    1 passed, 0 failed, 0 skipped")
    assert run_tests.main(parts[-1:]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "1 passed, 0 failed"


def test_a_part_that_ends_without_a_report_counts_as_failed(tmp_path, monkeypatch):
    killed = subprocess.CompletedProcess([], -9)
    monkeypatch.setattr(run_tests.subprocess, "run", lambda *_, **__: killed)
    outcomes = {"gone": run_tests.run(PARTS[0], tmp_path), "good": Outcome(3, 0, 0, 0, 1.0)}
    assert run_tests.summary(outcomes).splitlines()[-1] == "3 passed, 1 failed"
    assert "ended with status -9" in run_tests.summary(outcomes)
    assert run_tests.main(PARTS[:1]) == 9


def test_a_profile_replaces_what_the_caller_had_set(tmp_path, monkeypatch):
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert ["--nbval" in part.arguments for part in PARTS] == [False, True, True]
    assert "--doctest-modules" in PARTS[0].arguments
    seen = []
    monkeypatch.setattr(
        run_tests.subprocess, "run",
        lambda command, cwd, env: seen.append(env) or subprocess.CompletedProcess(command, 0),
    )  # fmt: skip
    for part in (PARTS[1], PARTS[2], Part("threads", (), {"OMP_NUM_THREADS": "1"})):
        run_tests.run(part, tmp_path)
    factors = [{k: v for k, v in env.items() if k in FACTORS} for env in seen]
    assert factors[0]["MKL_CBWR"] == "AVX2" and factors[1] == environment(SECOND)
    assert factors[2] == {"OMP_NUM_THREADS": "1"}


def make(*arguments, folder=ROOT):
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True)


def test_make_says_nothing_on_stderr_and_lists_every_command_once(tmp_path):
    run = make("-n", "help")
    assert (run.returncode, run.stderr) == (0, "") and "awk" in run.stdout
    copy = tmp_path / "Makefile"
    copy.write_text((ROOT / "Makefile").read_text() + "\nlint:\n\techo twice\n")
    assert "overriding" in make("-n", "help", folder=tmp_path).stderr
    listed = re.findall(r"^make (\w+)", make("help").stdout, re.M)
    assert len(listed) == len(set(listed)) and {"check", "test", "shake", "lint"} <= set(listed)


def test_few_tests_are_slow_and_every_module_keeps_quick_ones(request):
    if request.config.option.keyword:
        pytest.skip("only some tests were asked for")
    slow = {True: Counter(), False: Counter()}
    for item in request.session.items:
        slow[item.get_closest_marker("slow") is not None][item.location[0]] += 1
    assert sum(slow[True].values()) <= 60
    assert [name for name in slow[True] if not slow[False][name]] == []
