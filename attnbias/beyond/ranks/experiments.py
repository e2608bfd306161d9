"""The rank of the Frobenius and of the nuclear solution, over sequences, tokens and features."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from tqdm import tqdm

from ..._files import new_result
from ..._records import provenance, read_table, write_table
from ..._validate import require_flag, require_int, short
from ...data import Dataset
from ...errors import DtypeError, FileFormatError, InfeasibleError, SolverError
from ...experiments.forms import Table
from ...experiments.result import ExperimentResult
from ...experiments.runs import seed_list
from ..common.arguments import listed
from ..norms.geometry import solve_norm_svm
from .claims import claims
from .data import make_free_queries
from .geometry import RankBounds, frobenius_rank, nuclear_rank

if TYPE_CHECKING:
    import pandas

TITLE = "Ranks of the Frobenius and the nuclear solution, with proof"
TOLERANCE = 1e-7  # below which the peers' notebook takes singular values for zero
SIZES = ((5, 5), (10, 5), (15, 5), (5, 10), (5, 15))  # (n, T) of the peers' figure


def _words(result: ExperimentResult) -> list[str]:
    counts = [(result.table[f"{norm}_status"] == "solved").sum() for norm in "FN"]
    solved = " and ".join(f"{count:,}" for count in counts)
    return [f"Ranks of SVM solutions: {solved} of {len(result.table):,} solved; {result.verdict}"]


FORM = Table("ranks", TITLE, claims, _words)


def run(
    *,
    seeds=100,
    nuclear: int = 50,
    sizes=SIZES,
    d=(1, 2, 3, 4, 5, 10, 15, 20),
    out=None,
    progress: bool = False,
) -> ExperimentResult:
    """Proved bounds on both ranks for random unit tokens and free unit queries.

    Parameters
    ----------
    seeds : int or sequence of int
        How many data sets a setting, or their seeds.
    nuclear : int
        How many of these, from the first, are solved in the nuclear norm too: it takes 50
        times as long.
    sizes : sequence of (n, T)
        Sequences and tokens of each.
    d : sequence of int
        Features.
    out : path, optional
        Folder for the result, and until it is done for the settings that are: the same call
        goes on with them.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    ExperimentResult
        With a `table`, one row an instance: n, T, d, seed, and for each norm, F or N: F_status,
        "solved", "infeasible", "undecided" (at the edge of it) or "not asked"; F_lower and F_upper,
        bounds on the rank; F_rows and F_sequences, active constraints and the sequences they come
        from; F_least, the smallest singular value that counts over the largest; F_error, the
        bound on the distance from a solution, over the largest singular value as well; F_gap.
        N_room, 1 minus the largest singular value of G proved below 1; N_loose, singular values
        above 1e-7 in what the interior-point solver returned.

    Raises
    ------
    RangeError, DtypeError, FileFormatError, FileAccessError, MissingExtraError

    Examples
    --------
    >>> from attnbias import experiments
    >>> result = experiments.run("ranks", seeds=2, sizes=[(5, 5)], d=[1, 10])
    >>> result.table["F_status"].tolist()
    ['infeasible', 'infeasible', 'solved', 'solved']
    """
    import pandas

    seeds = list(seed_list(seeds))
    first = seeds[: require_int("nuclear", nuclear, low=1)]
    require_flag("progress", progress)
    features = listed("d", d, _positive)
    settings = [(n, T, each) for n, T in listed("sizes", sizes, _size) for each in features]
    with new_result(out, FORM.file) as target:
        work = target and target.with_name("ranks")
        parts = []
        for n, T, each in tqdm(settings, disable=not progress, unit="setting"):
            file = work and work / f"{n}_{T}_{each}.parquet"
            parts.append(_part([n, T, each], seeds, first, file))
        table = pandas.concat(parts, ignore_index=True)
        chosen = {"seeds": seeds, "nuclear": first, "settings": [list(each) for each in settings]}
        result = ExperimentResult(FORM, {"table": table}, chosen, [provenance()])
        if target is not None and work is not None:
            result.save(target)
            shutil.rmtree(work, ignore_errors=True)
    return result


def _positive(name: str, value) -> int:
    return require_int(name, value, low=1)


def _size(_name: str, pair) -> tuple[int, int]:
    try:
        n, T = pair
    except (TypeError, ValueError):
        raise DtypeError(
            "sizes",
            expected="pairs (n, T)",
            got=short(pair),
            remedy="for example [(5, 5), (10, 5)]",
        ) from None
    return _positive("n", n), require_int("T", T, low=2)


def _part(
    setting: list[int], seeds: list[int], nuclear: list[int], file: Path | None
) -> pandas.DataFrame:
    """One setting, from its file if it has one, which must be of this setting and these seeds."""
    import pandas

    place = {"setting": setting, "seeds": seeds, "nuclear": nuclear}
    if file is not None and file.exists():
        table, header = read_table(file, tuple(place))
        if {key: header[key] for key in place} != place:
            raise FileFormatError(
                str(file),
                expected="the part of this setting, with these seeds",
                got="another's",
                remedy="finish that study first, or name another folder",
            )
        return table
    n, T, d = setting
    table = pandas.DataFrame([instance(n, T, d, seed, seed in nuclear) for seed in seeds])
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_table(file, table, place)
    return table


COLUMNS = ("lower", "upper", "rows", "sequences", "least", "error", "gap")


def instance(n: int, T: int, d: int, seed: int, nuclear: bool = True) -> dict:
    """One row of the table."""
    data = make_free_queries(n, T, d, seed, opt=True)
    row = {"n": n, "T": T, "d": d, "seed": seed}
    row |= _found("F", lambda: _facts("F", frobenius_rank(data)))
    if nuclear:
        return row | _found("N", lambda: _nuclear(data))
    return row | _empty("N", "not asked")


def _found(norm: str, solve) -> dict:
    try:
        return {f"{norm}_status": "solved"} | solve()
    except InfeasibleError:
        return _empty(norm, "infeasible")
    except SolverError:
        return _empty(norm, "undecided")


def _empty(norm: str, status: str) -> dict:
    names = COLUMNS + (("room", "loose") if norm == "N" else ())
    return {f"{norm}_status": status} | {f"{norm}_{name}": float("nan") for name in names}


def _nuclear(data: Dataset) -> dict:
    raw = solve_norm_svm(data, "nuclear")
    found = nuclear_rank(data, solution=raw)
    below = found.dual_values[found.dual_values + found.dual_error < 1]
    return _facts("N", found) | {
        "N_room": 1 - float(below.max()) if len(below) else 1.0,
        "N_loose": float((torch.linalg.svdvals(raw.weights) > TOLERANCE).sum()),
    }


def _facts(norm: str, found: RankBounds) -> dict:
    largest = float(found.values[0])
    numbers = (
        found.lower,
        found.upper,
        found.rows,
        found.sequences,
        float(found.values[found.lower - 1]) / largest,
        found.error / largest,
        found.duality_gap,
    )
    return {f"{norm}_{name}": float(x) for name, x in zip(COLUMNS, numbers, strict=True)}
