"""Kill training runs at random moments, resume them, and leave both traces behind.

python interrupted.py FOLDER: for each form of the loop, writes FOLDER/<form>.unbroken.npz and
FOLDER/<form>.resumed.npz, and to stdout how often the second was killed. Each attempt is a
forked process ended by SIGKILL, so nothing of it is cleaned up.
"""

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import torch
from tqdm import tqdm

from attnbias import NGD, Polyak, make_example1, solve_w_svm, train
from attnbias.dynamics import loop as module

FORMS = {
    "span": ("compiled", "span", 600_000),
    "factored": ("compiled", "factored", 400_000),
    "dense": ("compiled", "dense", 150_000),
    "torch-span": ("torch", "span", 800),
    "torch-dense": ("torch", "dense", 800),
}
# a chunk this short is over as soon as a checkpoint is written, so kills hit writes too
module._CHUNK_SECONDS = 0.01


def run(form: str, **options):
    engine, coordinates, steps = FORMS[form]
    data = make_example1(n=3, T=3, d=12, sigma=0.3, seed=1)
    start = 0.1 * torch.randn(12, 12, generator=torch.Generator().manual_seed(0)).double()
    rule = Polyak() if form == "factored" else NGD(0.1, momentum=0.9)
    options |= {"engine": engine, "coordinates": coordinates, "W0": start, "record": 40}
    return train(data, rule, steps, svm=solve_w_svm(data), **options)


def killed_runs(form: str, checkpoint: Path, generator, least: int) -> int:
    """Start the run until one attempt ends by itself; returns how many did not."""
    kills = 0
    while True:
        child = os.fork()
        if child == 0:
            # what is to be killed writes all the time; what is to end need not wait for the disk
            often = {"checkpoint_seconds": 0} if kills < least else {}
            run(form, checkpoint=checkpoint, **often)
            os._exit(0)
        if kills < least:
            time.sleep(generator.uniform(0.02, 0.06))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            kills += 1
        elif os.WEXITSTATUS(status):
            raise RuntimeError(f"{form}: a run ended with status {status}")
        else:
            return kills


def main(folder: Path) -> None:
    torch.set_num_threads(1)  # threads would not survive the fork
    # tqdm's own lock is shared with every fork: one killed while it holds it would stop them all
    tqdm.set_lock(threading.RLock())
    generator = random.Random(0)
    for form in FORMS:
        run(form).save(folder / f"{form}.unbroken.npz")
        checkpoint = folder / f"{form}.checkpoint.npz"
        kills = killed_runs(form, checkpoint, generator, least=5)
        resumed = run(form, checkpoint=checkpoint)
        resumed.save(folder / f"{form}.resumed.npz")
        print(form, kills)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
