"""The sweep itself: data sets to workers, parts to disk, one table back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

import joblib
import psutil
from tqdm import tqdm

from .._records import provenance
from .._threads import one_thread
from .._validate import DeviceLike, PathLike, as_device, require_flag, require_int
from ..dynamics.arguments import GRAM_LIMIT, require_inputs
from ..dynamics.batched.step import RECORDED
from ..errors import AttnBiasError, DeviceError, DtypeError, MemoryLimitError
from .code import FOREIGN
from .grid import Grid, read_grid
from .models import Point
from .settings import Training
from .store import Store, parts_of
from .table import columns, part
from .task import marks_of, require_batched, run_batch, run_point

if TYPE_CHECKING:
    import pandas

BATCH = 256  # data sets that share a device at most
SHARE = 0.9  # of the free memory that may be asked for
SMALL = 16 * 2**20  # what a sweep of the smallest data takes


def sweep(
    grid: Mapping[str, Any],
    *,
    out: PathLike | None = None,
    workers: int | None = None,
    device: DeviceLike = "cpu",
    progress: bool = False,
    allow_code: str | Sequence[str] = (),
) -> pandas.DataFrame:
    """Train by every setting of a grid on every data set of it.

    Parameters
    ----------
    grid : mapping
        Blocks, in which every list is an axis; a block stands for all combinations, a list of
        blocks for their union:

        data
            model ("example1", "dm", "separation_pair", "mnist", a function that makes a
            `Dataset`, its "module:name" if `allow_code` has the module, or an npz file of
            tokens), and its arguments, such as n, T, d, sigma and seed. "0:100" is the range.
        rule
            name ("GD", "NGD", "Polyak", a function that makes a rule, or its "module:name") and
            its arguments, or "NGD(0.1)", or a rule: a `Descent` of your own as well.
        train : optional
            loss ("exponential", "logistic", a `Loss`, or its "module:name"), W0_norm (0), start
            ("random" or "against" W_mm), train_u (False).
        steps : int
        record : int or list of int
            As in `train`; 100 by default.
    out : path, optional
        Folder for the results: a part as each data set is finished, then one Parquet file.
        The same call goes on where it stopped, or reads what is finished, if the data sets that it
        makes anew and the values of your rules and losses are those of the folder.
        `sweeps.load` reads without making any. One process at a time works in a folder.
    workers : int, optional
        Processes that share the work, a data set at a time. None takes joblib's own setting,
        which is 1, or a cluster under `joblib.parallel_config("dask")`. They are started anew,
        not forked: a fork of a process that has used torch can wait for ever for its threads.
    device : str or device
        "cpu", or a GPU, on which data sets of equal shape run together (not run on one yet).
    progress : bool
        Say how many runs there are, and show a progress bar, on standard error.
    allow_code : str or sequence of str
        Modules whose functions the grid may name as "module:name". A grid may come from a file,
        which is data: without this it names no code, with it the module is imported.

    Returns
    -------
    pandas.DataFrame
        A row a recorded iteration: `run` and `point`, which number the runs and the data sets;
        model, and the arguments of the data, None written out and empty where a model has no
        such argument; rule, rule_name, eta, momentum, max_step, loss_name, W0_norm, start,
        train_u, and `rule_` before the arguments of a rule of your own; status, error, and
        selected_optimal (how many sequences end on their optimal token); rows (N'), margin
        (1/|W_mm|), support (how many rows), least_slack (margin - 1 of the nearest idle row),
        least_dual (weight of the least supporting row over the largest) and duality_gap (of the
        SVM's certificate); and the series of `Trace`. Models, rules and losses of one name are
        numbered: "mine", "mine #2". A run that could not start, or that an error of your own
        code has ended, has the status "failed", the reason in `error`, and one row of NaN.
        `attrs` has the provenance.

    Raises
    ------
    DtypeError, RangeError, NonFiniteError, MemoryLimitError, DeviceError, MissingExtraError,
    FileAccessError, FileFormatError
        Before any work; results that are there are not touched. DeviceError also where a worker
        is killed: what is finished by then is kept in `out`.

    Notes
    -----
    Numbers depend neither on the number of workers nor on interruptions: a data set's runs
    are always made together, in one thread, in the same order. They share its SVM.

    Examples
    --------
    >>> import attnbias
    >>> table = attnbias.sweep({
    ...     "data": {"model": "example1", "n": 4, "T": 3, "d": [20, 40], "seed": range(3)},
    ...     "rule": {"name": "NGD", "step_size": [0.1, 0.5]},
    ...     "steps": 100, "record": [10, 100],
    ... })
    >>> len(table), table["run"].nunique()
    (24, 12)
    >>> float(table.query("step == 100").groupby("eta").W_norm.median().loc[0.5].round(1))
    49.8
    """
    device, progress = as_device("device", device), require_flag("progress", progress)
    if workers is not None:
        require_int("workers", workers, low=1, high=10**6)
    todo = read_grid(grid, allow_code)
    require_batched(todo.training, device)
    try_families(todo, joblib.effective_n_jobs(workers) if device.type == "cpu" else 1)
    if progress:
        tqdm.write(str(todo), file=sys.stderr)
    held: contextlib.AbstractContextManager[Store | None]
    held = contextlib.nullcontext() if out is None else Store.alone(out, todo)
    with held as store:
        return _run(todo, store, workers, device, progress)


def _run(todo: Grid, store: Store | None, workers, device, progress: bool) -> pandas.DataFrame:
    """What is not done yet, and the table of all."""
    done = store.done() if store is not None else {}
    left = [number for number in range(len(todo.points)) if number not in done]
    parts, each = {}, len(todo.training.settings)
    bar = tqdm(total=todo.runs, initial=each * len(done), disable=not progress, unit="run")
    with bar, workers_named(store):
        if store is not None and done:
            pool = joblib.Parallel(n_jobs=workers, return_as="generator")
            jobs = (joblib.delayed(marks_of)(todo.training, todo.points[k]) for k in done)
            for number, made in zip(done, pool(jobs), strict=True):
                store.require_same(number, made, done[number])
        for number, frame, marks in _finished(todo, left, workers, device):
            if store is None:
                parts[number] = frame
            else:
                store.write(number, frame, marks, provenance(device))
            bar.update(each)
    if store is not None:
        return store.finish()
    import pandas

    table = pandas.concat([parts[number] for number in sorted(parts)], ignore_index=True)
    table.attrs = {"provenance": [provenance(device)], "complete": True}
    return table


@contextlib.contextmanager
def workers_named(store: Store | None) -> Iterator[None]:
    """Say of a worker that is no more what is kept, and of what can't be sent to one that it is."""
    try:
        yield
    except PicklingError as error:
        raise DtypeError(
            "workers",
            expected="functions and arguments that can be sent to other processes",
            got=str(error)[:200].rstrip("."),
            remedy="take workers=1, or open files and the like inside the function",
        ) from error
    except Exception as error:
        of_dask = type(error).__module__.partition(".")[0] == "distributed"
        if not isinstance(error, BrokenExecutor) and not of_dask:
            raise
        kept = "nothing is kept without `out`"
        remedy = "give it a folder `out`, and the same call goes on after such an end"
        if store is not None:
            kept = f"{len(parts_of(store.folder))} of {len(store.grid.points)} data sets are kept"
            remedy = "the same call goes on from there; with fewer workers each has more memory"
        raise DeviceError(
            "workers",
            expected="processes that live until their work is done",
            got=f"one that was killed, or has ended itself ({type(error).__name__}); {kept}",
            remedy=remedy,
        ) from error


def _finished(
    grid: Grid, left: list[int], workers, device
) -> Iterator[tuple[int, pandas.DataFrame, dict]]:
    """(number, rows, marks) of each data set, as they are finished."""
    dtypes = columns(grid)
    if device.type == "cpu":
        pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
        jobs = ((grid.training, number, grid.points[number], dtypes) for number in left)
        yield from pool(joblib.delayed(work)(*job) for job in jobs)
        return
    for first in range(0, len(left), BATCH):
        batch = left[first : first + BATCH]
        with one_thread():
            results = run_batch(grid.training, [grid.points[k] for k in batch], device)
        for k, found in zip(batch, results, strict=True):
            yield k, part(grid.training, k, grid.points[k], found, dtypes), found.marks


def work(
    training: Training, number: int, point: Point, dtypes
) -> tuple[int, pandas.DataFrame, dict]:
    """One data set, in whatever process."""
    with one_thread():  # no number depends on how many are free
        found = run_point(training, point)
    return number, part(training, number, point, found, dtypes), found.marks


def try_families(grid: Grid, workers: int) -> None:
    """Refuse data that do not fit, by their arguments where these tell, or that no setting can use.

    Errors of a function of one's own are left to its rows.

    Raises
    ------
    AttnBiasError
        Of any kind.
    """
    first: dict[str, Point] = {}
    for point in grid.points:
        first.setdefault(point.family, point)
    for point in first.values():
        given = dict(point.arguments)
        if not given.get("span"):  # whose d is no size of the tokens
            known = (given.get(name) for name in ("n", "T", "d"))
            _require_room(grid, workers, [size if isinstance(size, int) else 1 for size in known])
        try:
            data = point.make()
        except AttnBiasError:
            raise
        except FOREIGN:
            continue
        _require_room(grid, workers, (data.n, data.T, data.d))
        for setting in grid.training.settings:
            require_inputs(data, setting.rule, None, setting.train_u)


def _require_room(grid: Grid, workers: int, sizes) -> None:
    needed, free = needed_bytes(grid, workers, *sizes), psutil.virtual_memory().available
    if needed > SHARE * free:
        raise MemoryLimitError(
            "grid",
            expected=f"a sweep that fits into {SHARE * free / 1e9:.3g} GB",
            got=f"about {min(needed, 10**21) / 1e9:.3g} GB for {grid} and their table",
            remedy="take fewer workers, smaller sizes, or record less; or split the grid",
        )


def needed_bytes(grid: Grid, workers: int, n: int, T: int, d: int) -> int:
    """Most memory at a time for data of this size and for the table, within a factor of 1.5."""
    settings, records = grid.training.settings, len(grid.training.record)
    starts = len({(each.loss, each.W0_norm, each.start) for each in settings})
    tokens, matrices = 4 * n * T * d, d * d * (4 + 2 * starts)
    gram = (n * max(T - 1, 1)) ** 2
    gram *= 6 if 8 * gram <= GRAM_LIMIT else 2
    states = len(settings) * (12 * n * max(T - 1, 1) + len(RECORDED) * records)
    own = psutil.Process().memory_info().rss if workers > 1 else 0
    table = 2 * grid.runs * records * len(columns(grid))  # parts and their concatenation
    workers = min(workers, len(grid.points))
    return workers * (SMALL + own + 8 * (tokens + matrices + gram + states)) + 8 * table
