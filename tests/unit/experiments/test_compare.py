"""Claims on figures, taken by their keys."""

import pytest

from attnbias import Check, CheckTable
from attnbias.errors import RangeError
from attnbias.experiments.claims.compare import keyed


def test_a_key_that_no_claim_has_is_refused():
    table = CheckTable([Check("s", 0.0, 1.0, key="lead/loss"), Check("s", 0.0, 1.0, key="late")])
    assert keyed(table, "lead", "late") == table and keyed(table) == ()
    with pytest.raises(RangeError, match="late"):
        keyed(table, "lead", "early")
