"""The exponent of 1 - cosine across geometry: noise, features, step size, rule, and slack."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np

from ..._files import new_result
from ..._validate import require_flag, require_int, require_number
from ...data import Dataset, make_example1
from ...experiments.forms import Table
from ...experiments.result import ExperimentResult
from ...experiments.runs import seed_list
from ...geometry.svm import solve_w_svm
from ...sweeps import sweep
from ..common.arguments import listed
from .claims import claims
from .geometry import SlackLaw, slack_law
from .slack import plant_slack
from .transient import transient_rate

if TYPE_CHECKING:
    import pandas

TITLE = "The exponent of 1 - cosine across geometry and margins"
SIGNAL = 2.0**0.5  # norm of the means; the noise is measured by it
RULES = ("NGD(0.02)", "NGD(0.1)", "NGD(0.5)", "NGD(0.1, momentum=0.9)", "Polyak()", "GD(1.0)")
MARGIN_RULES = ("NGD(0.1)", "NGD(0.1, momentum=0.9)", "Polyak()", "GD(1.0)")
FEWEST_FEATURES = 52  # n (T - 1) + 2: Example 1 has no decoder below it
RECORDS_A_DECADE = 15
SETTLED = 0.05  # how far from -2 a local exponent may be


def _words(result: ExperimentResult) -> list[str]:
    runs = result.table.groupby("part").size().to_dict()
    counts = ", ".join(f"{count:,} runs of the {part}" for part, count in runs.items())
    return [f"Exponents of 1 - cosine: {counts}; {result.verdict}"]


FORM = Table("exponents", TITLE, claims, _words)


def noisy_means(n: int, T: int, d: int, noise: float, seed: int) -> Dataset:
    """Example 1 with means of norm sqrt 2 and noise tokens of norm about noise sqrt 2."""
    sigma = noise * SIGNAL / d**0.5
    return make_example1(n, T, d, sigma=sigma, signal=SIGNAL, seed=seed)


def planted(n: int, T: int, d: int, noise: float, slack: float, seed: int) -> Dataset:
    """The data set with one constraint made idle, of this slack."""
    return plant_slack(noisy_means(n, T, d, noise, seed), slack, seed=seed)


def run(
    *,
    seeds=10,
    steps: int = 1_000_000,
    d=(52, 60, 120, 240, 600),
    noise=(0.3, 1.0, 3.0),
    slack=(1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0),
    workers: int | None = None,
    out=None,
    progress: bool = False,
) -> ExperimentResult:
    """Two sweeps: six rules over features and noise, and four over planted slacks.

    Parameters
    ----------
    seeds : int or sequence of int
        How many data sets of each kind, or their seeds.
    steps : int
        At least 10,000.
    d : sequence of int
        Features, at least 52; n T / d runs from 60/52 down. n, T = 10, 6.
    noise : sequence of float
        Norm of a noise token over that of a mean.
    slack : sequence of float
        Of the one idle constraint in the second sweep, where n, T, d, noise = 5, 4, 120, 2.
    workers : int, optional
        As in `attnbias.sweep`.
    out : path, optional
        Folder for the result, and until it is done for what there is of the sweeps: the same
        call goes on with them.
    progress : bool

    Returns
    -------
    ExperimentResult
        With a `table`, one row a run: part ("map" or "margins"), the geometry of its data, its
        rule; exponent_k and norm_k, the exponent of 1 - cosine and the geometric mean of |W| over
        steps 10^k to 10^(k+1); settled and settled_norm, the step and |W| from which the local
        exponent stays within 0.05 of -2 (infinite if it never does); error and norm, the last
        1 - cosine and |W|; settling_rate, of `attnbias.beyond.exponents.transient`; law_settled
        and law_limit, what `slack_law` predicts of settled and of the offset of W from W_mm.

    Raises
    ------
    RangeError, DtypeError, FileFormatError, FileAccessError, MissingExtraError

    Examples
    --------
    >>> from attnbias import experiments
    >>> result = experiments.run("exponents", seeds=1, steps=10_000, d=[120], noise=[3.0],
    ...                          slack=[0.1])
    >>> len(result.table)
    10
    """
    import pandas

    seeds, steps = seed_list(seeds), require_int("steps", steps, low=10_000)
    require_flag("progress", progress)
    noise, slack = listed("noise", noise, require_number), listed("slack", slack, require_number)
    both = grids(list(seeds), steps, listed("d", d, _features), noise, slack)
    with new_result(out, FORM.file) as target:
        work = target and target.with_name("exponents")
        tables = []
        for name, grid in both.items():
            table = sweep(grid, out=work and work / name, workers=workers, progress=progress)
            tables.append(reduce(table).assign(part=name))
            made = table.attrs["provenance"]
        whole = pandas.concat(tables, ignore_index=True)
        settings = {"seeds": list(seeds), "steps": steps, "d": both["map"]["data"]["d"]}
        settings |= {"noise": noise, "slack": slack}
        result = ExperimentResult(FORM, {"table": whole}, settings, made)
        if target is not None and work is not None:
            result.save(target)
            shutil.rmtree(work, ignore_errors=True)
    return result


def grids(seeds: list[int], steps: int, d: list, noise: list, slack: list) -> dict[str, dict]:
    """The two grids, as `attnbias.sweep` takes them."""
    common = {"steps": steps, "record": recorded(steps)}
    means = {"model": noisy_means, "n": 10, "T": 6, "d": d, "noise": noise, "seed": seeds}
    idle = {"model": planted, "n": 5, "T": 4, "d": 120, "noise": 2.0, "slack": slack, "seed": seeds}
    return {
        "map": common | {"data": means, "rule": list(RULES)},
        "margins": common | {"data": idle, "rule": list(MARGIN_RULES)},
    }


def _features(name: str, value) -> int:
    return require_int(name, value, low=FEWEST_FEATURES)


def recorded(steps: int) -> list[int]:
    """0, and so many a decade up to `steps`."""
    count = int(RECORDS_A_DECADE * np.log10(steps)) + 1
    return sorted({0, *np.geomspace(1, steps, count).round().astype(int).tolist()})


def reduce(table: pandas.DataFrame) -> pandas.DataFrame:
    """One row a run: its geometry, and what its curve says."""
    import pandas

    found = []
    for _, of_point in table.groupby("point"):
        first = of_point.iloc[0]
        names = ("n", "T", "d", "noise", "slack", "seed")
        made = planted if "slack" in of_point else noisy_means
        data = made(**{name: first[name] for name in names if name in of_point})
        solution = solve_w_svm(data)
        facts = {"settling_rate": transient_rate(data, solution)}
        law = slack_law(data, solution) if "slack" in of_point else None
        found += [_row(rows) | facts | _law(law, rows) for _, rows in of_point.groupby("run")]
    return pandas.DataFrame(found)


GEOMETRY = (
    "n",
    "T",
    "d",
    "noise",
    "slack",
    "seed",
    "rule",
    "rule_name",
    "eta",
    "momentum",
    "status",
    "rows",
    "margin",
    "support",
    "least_slack",
)


def _row(rows: pandas.DataFrame) -> dict:
    first = rows.iloc[0]
    row = {name: first[name] for name in GEOMETRY if name in rows}
    step, norm = rows["step"].to_numpy(), rows["W_norm"].to_numpy()
    error = rows["W_alignment_error"].to_numpy()
    middle, slope, at = local_exponents(step, error, norm)
    for k in range(1, int(np.log10(step.max()) + 1e-9)):
        inside = (middle >= 10**k) & (middle <= 10 ** (k + 1))
        row[f"exponent_{k}"] = slope[inside].mean() if inside.any() else np.nan
        row[f"norm_{k}"] = np.exp(np.log(at[inside]).mean()) if inside.any() else np.nan
    late = np.flatnonzero(np.abs(slope + 2) > SETTLED)
    last = late[-1] + 1 if len(late) else 0
    row["settled"] = middle[last] if last < len(middle) else np.inf
    row["settled_norm"] = at[last] if last < len(middle) else np.inf
    return row | {"error": error[-1], "norm": norm[-1]}


def local_exponents(step, error, norm) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes of log error in log step between records, the steps between them, and |W| there."""
    keep = (step > 0) & (error > 0) & np.isfinite(error)
    x, y, size = np.log(step[keep]), np.log(error[keep]), np.log(norm[keep])
    middle, at = np.exp((x[1:] + x[:-1]) / 2), np.exp((size[1:] + size[:-1]) / 2)
    return middle, np.diff(y) / np.diff(x), at


def _law(law: SlackLaw | None, rows: pandas.DataFrame) -> dict:
    """What `slack_law` predicts for NGD on planted data."""
    first = rows.iloc[0]
    if law is None or first["rule_name"] != "NGD" or first["momentum"]:
        return {}
    return {"law_settled": law.ngd_step(first["eta"], SETTLED), "law_limit": law.limit}
