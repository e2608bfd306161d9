"""`make test`: every part runs, the worst decides, the sum stands last; `make` warns of nothing."""

import re
import subprocess
from collections import Counter

import pytest

from tools import run_tests
from tools.chapters import ROOT
from tools.run_tests import PARTS
from tools.shake import FACTORS, SECOND, environment

GOOD = "def test_a():\n    assert True\n"
BAD = "import pytest\n\n\ndef test_b():\n    assert False\n\n\ndef test_c():\n    pytest.skip('')\n"
BROKEN = "import no_such_module\n"


@pytest.mark.slow
def test_a_failure_hides_no_other_part_and_the_worst_decides(tmp_path, capfd):
    parts = {}
    for name, code in {"bad": BAD, "broken": BROKEN, "good": GOOD}.items():
        path = tmp_path / f"test_{name}.py"
        path.write_text(code)
        arguments = ("-n", "0", "-q", f"--rootdir={tmp_path}", "-c", "/dev/null", str(path))
        parts[name] = (arguments, {})
    assert run_tests.main(parts) == 2
    assert capfd.readouterr().out.splitlines()[-4:] == [
        "bad: 0 passed, 1 failed, 1 skipped",
        "broken: 0 passed, 1 failed, 0 skipped, ended with status 2",
        "good: 1 passed, 0 failed, 0 skipped",
        "1 passed, 2 failed",
    ]


def test_a_part_that_ends_without_a_report_counts_as_failed(monkeypatch, capsys):
    killed = subprocess.CompletedProcess([], -9)
    monkeypatch.setattr(run_tests.subprocess, "run", lambda *_, **__: killed)
    assert run_tests.main({"gone": ((), {})}) == 9
    gone, total = capsys.readouterr().out.splitlines()[-2:]
    assert gone.endswith("ended with status -9") and total == "0 passed, 1 failed"


def test_a_profile_replaces_what_the_caller_had_set(monkeypatch):
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    arguments = [part[0] for part in PARTS.values()]
    assert ["--nbval" in each for each in arguments] == [False, True, True]
    assert "--doctest-modules" in arguments[0]
    seen = []
    monkeypatch.setattr(
        run_tests.subprocess,
        "run",
        lambda command, cwd, env: seen.append(env) or subprocess.CompletedProcess(command, 0),
    )
    run_tests.main(PARTS)
    factors = [{k: v for k, v in env.items() if k in FACTORS} for env in seen]
    assert factors[1]["MKL_CBWR"] == "AVX2" and factors[2] == environment(SECOND)


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
