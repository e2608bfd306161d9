"""A seeded part of the attack of tests/fuzz; `make fuzz` runs the whole."""

import random

import pytest
from fuzz.arguments import attack, attempt
from fuzz.calls import Call, documented, record
from fuzz.flips import FORMATS, flip
from fuzz.kills import WRITERS, kill

from attnbias import GD

KINDS = 2  # of junk for each argument of each documented name
# killed more often by the tests of sweeps and of traces
ELSEWHERE = {"run_sweep", "run_sweep_on_two", "keep_checkpoint"}


@pytest.fixture(scope="module")
def calls():
    return record(documented())


def test_the_attack_tells_a_raw_error_from_a_named_one_and_from_what_is_taken():
    for function, wanted in ((abs, "raw"), (GD, "refused"), (repr, "taken")):
        call = Call("one", lambda x, function=function: function(x), {"x": 1.0})
        assert attempt(call, "x", "word")[0] == wanted


@pytest.mark.slow
def test_junk_is_refused_by_name_or_taken(calls):
    assert len(calls) > 0.9 * len(documented())
    generator, bad = random.Random(1), []
    for call in calls.values():
        bad += attack(call, generator, KINDS)[1]
    assert not bad, "\n".join(bad)


@pytest.mark.slow
def test_a_damaged_file_is_refused_or_changes_nothing():
    generator, bad = random.Random(1), []
    for form in FORMATS:
        counts, notes = flip(form, 20, generator)
        bad += notes if counts["refused"] else [f"{form.name}: nothing is refused"]
    assert not bad, "\n".join(bad)


@pytest.mark.slow
def test_a_killed_writer_loses_nothing():
    generator, bad = random.Random(1), []
    for writer in sorted(WRITERS.keys() - ELSEWHERE):
        bad += kill(writer, 1, generator)[1]
    assert not bad, "\n".join(bad)
