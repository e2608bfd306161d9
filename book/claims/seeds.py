"""On which seeds limits of our own claims were set, and on which fresh ones they are judged.

Fresh are seeds of which no run was looked at when the limit was set. Who changes a limit after a
look at them adds them to those looked at, and takes other fresh ones.
"""

from typing import NamedTuple


class Seeds(NamedTuple):
    """The seeds of one claim.

    Attributes
    ----------
    looked_at : range
        From the first to the last one on which its limits were set.
    fresh : range
        Those on which it is judged.

    Examples
    --------
    >>> print(Seeds(range(40), range(1000, 1010)))
    limits set on seeds 0 to 39, judged on 1000 to 1009
    """

    looked_at: range
    fresh: range

    def __str__(self) -> str:
        looked_at, fresh = (f"{seeds[0]} to {seeds[-1]}" for seeds in self)
        return f"limits set on seeds {looked_at}, judged on {fresh}"


_MOMENTUM = Seeds(range(100, 140), range(200, 240))
_NORMS = Seeds(range(1010), range(1010, 1020))
_PER_HEAD = Seeds(range(1020), range(1020, 1030))
_FACTORS = Seeds(range(25), range(30, 35))
_EXPONENTS = Seeds(range(724), range(1000, 1020))
_SHORT_RUNS = Seeds(range(10), range(10, 20))
_BLOCKS = Seeds(range(5), range(100, 105))

#: By the key of the claim. The ledger adds the words to its row.
SEEDS = {
    "fig3-polyak": _SHORT_RUNS,
    "fig3-ngd": _SHORT_RUNS,
    "settling-rate": _EXPONENTS,
    "unsettling-steps": _EXPONENTS,
    "same-offset": _MOMENTUM,
    "idle-logarithm": _MOMENTUM,
    "settling-step": _MOMENTUM,
    "each-norm-its-svm": _NORMS,
    "own-norm-leads": _NORMS,
    "factors-nuclear": _NORMS,
    "adam-speed": _NORMS,
    "each-size-its-margin": _PER_HEAD,
    "stuck-head": _PER_HEAD,
    "named-families": Seeds(range(1000, 1005), range(2000, 2005)),
    "adam-memory": Seeds(range(5), range(10, 15)),
    "next-token-exponent": Seeds(range(240), range(1000, 1010)),
    "next-token-squared": Seeds(range(30), range(1000, 1010)),
    "comparable-lengths": Seeds(range(100), range(1000, 1012)),
    "lock-border": Seeds(range(100), range(1000, 1010)),
    "separation-steps": Seeds(range(100), range(1000, 1010)),
    "depth-separatrix": Seeds(range(510), range(600, 610)),
    "factor-exponents": _FACTORS,
    "several-law": Seeds(range(117, 282), range(400, 656)),
    "several-flat": Seeds(range(200, 400), range(400, 600)),
    "prompt-joint": Seeds(range(230), range(1000, 1020)),
    "wrong-labels-fitted": Seeds(range(1010), range(2000, 2010)),
    "lengths-close-gap": _BLOCKS,
    "unlike-blocks-no-cause": _BLOCKS,
}
