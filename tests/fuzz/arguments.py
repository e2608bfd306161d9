"""Junk in the place of each argument of each documented name: refused by name, or taken."""

import contextlib
import io
import os
import random
import re
import signal
import tempfile
import traceback
import warnings
from collections import Counter

from attnbias import AttnBiasError

from .calls import Call
from .junk import HOSTILE, KINDS

SECONDS = 30  # a call that takes longer hangs, for all that its caller can see
LONGEST = 1000  # characters of a message: a few lines, and twice a path


class Hang(BaseException):
    pass


def attack(call: Call, generator: random.Random, kinds: int | None = None):
    """Junk of each kind, or of so many chosen ones, for each argument: counts, words on the bad."""
    counts, notes = Counter(), []
    for parameter in call.places():
        chosen = sorted(KINDS) if kinds is None else generator.sample(sorted(KINDS), kinds)
        for kind in chosen:
            if kind == "None" and parameter.endswith(("steps", "epochs")):
                continue  # asks for the whole run of a figure
            what, note = attempt(call, parameter, kind)
            counts[what] += 1
            if what in ("raw", "hang"):
                notes.append(f"{call.name}({parameter}={kind}): {note}")
    return counts, notes


def attempt(call: Call, parameter: str, kind: str) -> tuple[str, str]:
    """ "refused", "taken", "raw", "hang", or "hostile" for a raw error of a hostile object."""
    value = KINDS[kind]()
    before = os.getcwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        os.chdir(folder)
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            call.with_value(parameter, value)
        except AttnBiasError as error:
            text = str(error)  # long, or with an array in it, it hides what it says
            shown = len(text) > LONGEST or re.search(r"(tensor|array)\(\[", text)
            return ("raw", f"prints its input: {ascii(text)[:80]}") if shown else ("refused", "")
        except Hang:
            return "hang", f"over {SECONDS} s"
        except BaseException as error:  # SystemExit and KeyboardInterrupt are raw as well
            if kind in HOSTILE:
                return "hostile", ""
            return "raw", where(error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.chdir(before)
            _close_figures()
    return "taken", ""


def stop(*_):
    raise Hang


def _close_figures() -> None:
    import matplotlib.pyplot as plt

    plt.close("all")


def where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/attnbias/" in frame.filename] or frames[-1:]
    place = f"{own[-1].filename.rpartition('/attnbias/')[2]}:{own[-1].lineno}"
    return f"{type(error).__name__} at {place}: {ascii(str(error))[:80]}"
