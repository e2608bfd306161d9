"""A damaged file that the library wrote: refused by name, or nothing changes."""

import contextlib
import dataclasses
import hashlib
import io
import itertools
import random
import shutil
import signal
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from attnbias import (
    NGD,
    AttnBiasError,
    Dataset,
    SVMSolution,
    Trace,
    experiments,
    make_dm,
    make_example1,
    solve_w_svm,
    sweep,
    train,
)
from attnbias.beyond.heads import experiments as heads
from attnbias.experiments.networks.figures import NetworkFigure
from attnbias.experiments.networks.runs import Recipe, train_all
from attnbias.nets import fit, head_from_qk
from tools.files import ROOT

from .arguments import SECONDS, Hang, stop, where
from .damage import damages

GRID = {
    "data": {"model": "example1", "n": 4, "T": 3, "d": 20, "seed": [0, 1]},
    "rule": "NGD(0.1)",
    "steps": 50,
    "record": [1, 50],
}


@dataclass(frozen=True)
class Format:
    """A kind of file: what writes it into a folder from a seed, and what reads that of seed 0.

    `bound` says that a whole file of another seed is refused as well, as one of another run.
    """

    name: str
    file: str
    write: Callable[[Path, int], object]
    read: Callable[[Path], object]
    bound: bool = False


class Points:
    """Eight numbers with the sign as their class."""

    def __len__(self):
        return 8

    def batch(self, rows):
        x = torch.tensor(rows, dtype=torch.float32)[:, None] - 3.5
        return {"input": x}, (x[:, 0] > 0).long()


class TwoRuns(NetworkFigure):
    GRIDS = {"SGD": (0.1, 0.2)}


def ragged(seed: int = 0) -> Dataset:
    data = make_example1(n=3, T=3, d=20, seed=seed)
    return Dataset(data.X, data.y, data.u, lengths=[3, 2, 3], name="ragged", meta={"a": [1, 2.5]})


def short_run(path, seed: int = 0) -> Trace:
    return train(make_example1(n=3, T=3, d=20, seed=seed), NGD(0.1), 60, checkpoint=path)


def long_run(path) -> Trace:
    data = make_example1(n=3, T=3, d=20, seed=0)
    return train(data, NGD(0.1), 400, engine="torch", checkpoint=path, checkpoint_seconds=0)


def short_fit(path, steps=6, seed: int = 0):
    model = torch.nn.Linear(1, 2)
    with torch.no_grad():
        model.weight.fill_(0.1), model.bias.zero_()
    log = fit(
        model,
        Points(),
        Points(),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5),
        steps=steps,
        batch_size=4,
        record_every=3,
        seed=seed,
        checkpoint=path,
    )
    return {key: log[key] for key in log.curves if key != "seconds"}, dict(model.state_dict())


def grid_of(seed: int) -> dict:
    return GRID | {"rule": f"NGD(0.{1 + seed})"}


def swept(folder: Path, seed: int = 0):
    return sweep(grid_of(seed), out=folder / "s")


def part_of_a_sweep(folder: Path, seed: int) -> None:
    """A sweep's folder as a kill leaves it after one of the two data sets."""
    from attnbias.sweeps.grid import read_grid
    from attnbias.sweeps.store import Store
    from attnbias.sweeps.task import marks_of

    grid = grid_of(seed)
    sweep({**grid, "data": grid["data"] | {"seed": [0]}}, out=folder / "one")
    made = pd.read_parquet(folder / "one" / "table.parquet")
    shutil.rmtree(folder / "one")
    (folder / "s").mkdir()
    read = read_grid(grid)
    marks = marks_of(read.training, read.points[0])
    Store(folder / "s", read).write(0, made, marks, {"date": ""})


def heads_of(seed: int, layers: int) -> list:
    drawn = torch.randn(layers, 2, 4, 5, 8, generator=torch.Generator().manual_seed(seed))
    return [
        dataclasses.replace(head_from_qk(q, k), layer=i, head=0) for i, (q, k) in enumerate(drawn)
    ]


def table_of_heads(folder: Path, seed: int = 0, layers: int = 2):
    result = heads.measure(heads_of(seed, layers), {"model": "mine"}, random=1, out=folder)
    return [[round(row[name], 6) for name in ("cosine", "margin")] for row in result.rows]


def part_of_heads(folder: Path, seed: int) -> None:
    """A folder of `attnbias heads` as a kill leaves it after the first layer."""
    write = heads.write_json

    def killed(*given):
        write(*given)
        raise KeyboardInterrupt

    heads.write_json = killed
    try:
        with contextlib.suppress(KeyboardInterrupt):
            table_of_heads(folder, seed)
    finally:
        heads.write_json = write


def figure(folder: Path, seed: int = 0, stop: bool = False):
    """Two runs of a network's figure; stopped after the first, its log is in the folder."""

    def build(_):
        if made and stop:
            raise KeyboardInterrupt
        made.append(1)
        model = torch.nn.Linear(1, 2)
        with torch.no_grad():
            model.weight.fill_(0.1), model.bias.zero_()
        return model

    made = []
    recipe = Recipe(
        TwoRuns("points", "Points", 5, Points, (8, 8)), build, Points(), Points(), 4, {"seed": seed}
    )
    with contextlib.suppress(KeyboardInterrupt):
        return train_all(recipe, 1, steps=6, records=2, out=folder, optimizers=["SGD"]).losses


def log_of_a_figure(folder: Path, seed: int) -> None:
    figure(folder, seed, stop=True)
    (log,) = set((folder / "points.part").iterdir()) - {folder / "points.part" / "settings.json"}
    assert log.name == LOG


def digest_of(value):
    """What a value holds, comparable, NaN equal to NaN."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, pd.DataFrame):
        return [
            (name, str(column.dtype), repr(column.tolist()))
            for name, column in value.items()
            if name != "seconds"
        ]
    if isinstance(value, dict):
        return {key: digest_of(held) for key, held in value.items() if key != "date"}
    if isinstance(value, list | tuple):
        return [digest_of(held) for held in value]
    if isinstance(value, experiments.ExperimentResult):
        return digest_of([value.data, value.settings, value.provenance, value.claims])
    if hasattr(value, "__dict__"):
        return {
            key: digest_of(held) for key, held in vars(value).items() if not key.startswith("_")
        }
    return repr(value)


LOG = hashlib.sha256(b"SGD-0.1-0").hexdigest()[:12] + ".json"


def small_fig3(seed: int = 0):
    return experiments.run("fig3", seeds=[seed], steps=1000, n=4, T=3, d=20)


def recorded(file: str, other: str) -> Format:
    """The result of an experiment that stands in the book, written anew, and another beside it."""
    name = file.partition(".")[0]

    def read(folder: Path) -> object:
        return experiments.load(name, folder)

    def write(here: Path, seed: int) -> None:
        found = experiments.load(other, ROOT / "book" / "results") if seed else None
        (found or read(ROOT / "book" / "results")).save(here / file)

    return Format(file, file, write, read, bound=True)


FORMATS = [
    Format(
        "data",
        "d.npz",
        lambda here, seed: ragged(seed).save(here / "d.npz"),
        lambda here: Dataset.load(here / "d.npz"),
    ),
    Format(
        "trace",
        "t.npz",
        lambda here, seed: short_run(None, seed).save(here / "t.npz"),
        lambda here: Trace.load(here / "t.npz"),
    ),
    Format(
        "solution",
        "s.npz",
        lambda here, seed: solve_w_svm(ragged(2 * seed)).save(here / "s.npz"),
        lambda here: SVMSolution.load(here / "s.npz"),
    ),
    Format(
        "joint trace",
        "t.npz",
        lambda here, seed: train(make_dm(n=3, d=60, seed=seed), NGD(0.1), 9, train_u=True).save(
            here / "t.npz"
        ),
        lambda here: Trace.load(here / "t.npz"),
    ),
    Format(
        "checkpoint",
        "c.npz",
        lambda here, seed: short_run(here / "c.npz", seed),
        lambda here: short_run(here / "c.npz"),
        bound=True,
    ),
    Format(
        "network checkpoint",
        "c.npz",
        lambda here, seed: short_fit(here / "c.npz", seed=seed),
        lambda here: short_fit(here / "c.npz"),
        bound=True,
    ),
    Format(
        "experiment",
        "fig3.npz",
        lambda here, seed: small_fig3(seed).save(here / "fig3.npz"),
        lambda here: experiments.load("fig3", here),
    ),
    *(
        recorded(f"{name}.{suffix}", other)
        for name, other, suffix in (
            ("fig6", "fig7", "json"),
            ("fig10", "fig6", "json"),
            ("heads", "fig6", "json"),
            ("exponents", "ranks", "parquet"),
            ("ranks", "exponents", "parquet"),
        )
    ),
    Format(
        "sweep table",
        "s/table.parquet",
        swept,
        swept,
        bound=True,
    ),
    Format(
        "sweep part",
        "s/parts/000000.parquet",
        part_of_a_sweep,
        swept,
        bound=True,
    ),
    Format(
        "sweep grid",
        "s/grid.json",
        swept,
        swept,
        bound=True,
    ),
    Format("part of heads", "heads.partial.json", part_of_heads, table_of_heads, bound=True),
    Format("table of heads", "heads.json", table_of_heads, table_of_heads, bound=True),
    Format("log of a figure", f"points.part/{LOG}", log_of_a_figure, figure, bound=True),
    Format(
        "settings of a figure", "points.part/settings.json", log_of_a_figure, figure, bound=True
    ),
]


def flip(form: Format, count: int, generator: random.Random) -> tuple[Counter, list[str]]:
    """So many damages, of kinds by turns: how each came out, and words on the bad ones."""
    counts, notes = Counter(), []
    with (
        tempfile.TemporaryDirectory() as kept,
        warnings.catch_warnings(),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        whole, other = Path(kept) / "whole", Path(kept) / "other"
        for seed, folder in enumerate((whole, other)):
            folder.mkdir()
            form.write(folder, seed)
        right = digest_of(form.read(_copy(whole, Path(kept))))
        content = (whole / form.file).read_bytes()
        wrong = (other / form.file).read_bytes()
        kinds = damages(content) | {"the other's": lambda content, other, generator: other}
        allowed = [right]
        if not form.bound:
            allowed.append(_outcome(form, _copy(whole, Path(kept)), wrong)[1])
        for name in itertools.islice(itertools.cycle(kinds), count):
            damaged = kinds[name](content, wrong, generator)
            what, found = _outcome(form, _copy(whole, Path(kept)), damaged)
            if what == "read":
                what = "same" if found in allowed else "CHANGED"
            counts[what] += 1
            if what in ("raw", "CHANGED", "hang"):
                notes.append(f"{form.name}: {name}: {what} {found if what == 'raw' else ''}")
    return counts, notes


def _outcome(form: Format, here: Path, content: bytes) -> tuple[str, object]:
    """ "refused", "read" and what, or "raw" and where."""
    (here / form.file).write_bytes(content)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return "read", digest_of(form.read(here))
    except AttnBiasError:
        return "refused", ""
    except Hang:
        return "hang", ""
    except Exception as error:
        return "raw", where(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _copy(whole: Path, kept: Path) -> Path:
    here = kept / "here"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(whole, here)
    return here
