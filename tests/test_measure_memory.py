"""Peak memory is that of the largest moment, children included."""

import os
import subprocess
import sys
import time

import psutil

from tools.measure_memory import Watch, resident


def test_the_peak_is_the_largest_that_was_seen():
    amounts = iter([1, 5, 2] + [0] * 10_000)
    seen = []
    with Watch(lambda: seen.append(next(amounts)) or seen[-1]) as watch:
        while len(seen) < 4:
            time.sleep(0.01)
    assert watch.peak == 5


def test_a_process_that_is_gone_ends_the_watch():
    def gone():
        raise psutil.NoSuchProcess(1)

    with Watch(gone) as watch:
        pass
    assert watch.peak == 0


def test_children_count():
    alone = resident(psutil.Process(os.getpid()))
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        assert resident(psutil.Process(os.getpid())) > alone
        child.stdin.close()
