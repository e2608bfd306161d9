"""The sentences on Figure 3: Section 5, read from the experiment."""

from __future__ import annotations

from .claim import Claim, Finding, judge, starting
from .evidence import Evidence
from .figure_claims import of

_SETTING = "DM, n, T, d = 10, 2, 100, five seeds"


def _polyak(e: Evidence) -> Finding:
    checks = starting(e.fig3.claims, "Polyak steps are the fastest")
    panels = ("train loss", "norm of u", "with u_mm")
    kept = [check for check in checks if any(panel in check.statement for panel in panels)]
    failing = [check for check in checks if not check.holds]
    late = "; ".join(sorted({check.reason for check in failing}))
    return judge(
        checks,
        only_when=("one looks at the loss and at u", kept),
        note=f"{_SETTING}; on W {late}",
    )


FIGURE3 = (
    Claim(
        "fig3-zero",
        "With u trained the train loss goes to zero.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "a",
        of("fig3", "the train loss goes", note=_SETTING),
    ),
    Claim(
        "fig3-gd",
        "There all other algorithms are faster than GD.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "a",
        of("fig3", "all other algorithms", note=_SETTING),
    ),
    Claim(
        "fig3-polyak",
        "With u trained Polyak steps are the fastest.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "a",
        _polyak,
    ),
    Claim(
        "fig3-loss",
        "The train loss converges at a similar rate for NGD and joint-NGD.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "a",
        of("fig3", "the train loss converges at a similar", note=_SETTING),
    ),
    Claim(
        "fig3-ngd",
        "On all metrics but the loss NGD is slightly faster than joint-NGD.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "a",
        of("fig3", "NGD is slightly faster", "and only slightly", note=_SETTING),
    ),
)
