"""One flipped bit in a file that the library wrote: refused by name, or nothing changes."""

from __future__ import annotations

import contextlib
import io
import random
import shutil
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
from attnbias.nets import fit
from tools.files import ROOT

from .arguments import where

GRID = {"data": {"model": "example1", "n": 4, "T": 3, "d": 20, "seed": [0, 1]},
        "rule": "NGD(0.1)", "steps": 50, "record": [1, 50]}  # fmt: skip


@dataclass(frozen=True)
class Format:
    """A kind of file: what writes it into a folder, and what reads it from there."""

    name: str
    file: str
    write: Callable[[Path], object]
    read: Callable[[Path], object]


class Points:
    """Eight numbers with the sign as their class."""

    def __len__(self):
        return 8

    def batch(self, rows):
        x = torch.tensor(rows, dtype=torch.float32)[:, None] - 3.5
        return {"input": x}, (x[:, 0] > 0).long()


def ragged() -> Dataset:
    data = make_example1(n=3, T=3, d=20, seed=0)
    return Dataset(data.X, data.y, data.u, lengths=[3, 2, 3], name="ragged", meta={"a": [1, 2.5]})


def short_run(path) -> Trace:
    return train(make_example1(n=3, T=3, d=20, seed=0), NGD(0.1), 60, checkpoint=path)


def long_run(path) -> Trace:
    data = make_example1(n=3, T=3, d=20, seed=0)
    return train(data, NGD(0.1), 400, engine="torch", checkpoint=path, checkpoint_seconds=0)


def short_fit(path, steps=6):
    model = torch.nn.Linear(1, 2)
    with torch.no_grad():
        model.weight.fill_(0.1), model.bias.zero_()
    log = fit(model, Points(), Points(), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5),
              steps=steps, batch_size=4, record_every=3, checkpoint=path)  # fmt: skip
    return {key: log[key] for key in log.curves if key != "seconds"}, dict(model.state_dict())


def part_of_a_sweep(folder: Path) -> None:
    """A sweep's folder as a kill leaves it after one of the two data sets."""
    from attnbias.sweeps.grid import read_grid
    from attnbias.sweeps.identity import marks_of
    from attnbias.sweeps.store import Store

    sweep({**GRID, "data": GRID["data"] | {"seed": [0]}}, out=folder / "one")
    made = pd.read_parquet(folder / "one" / "table.parquet")
    shutil.rmtree(folder / "one")
    (folder / "s").mkdir()
    grid = read_grid(GRID)
    marks = marks_of(grid.training, grid.points[0])
    Store(folder / "s", grid).write(0, made, marks, {"date": ""})


def digest_of(value):
    """What a value holds, comparable, NaN equal to NaN."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, pd.DataFrame):
        return [(name, str(column.dtype), repr(column.tolist()))
                for name, column in value.items() if name != "seconds"]  # fmt: skip
    if isinstance(value, dict):
        return {key: digest_of(held) for key, held in value.items() if key != "date"}
    if isinstance(value, list | tuple):
        return [digest_of(held) for held in value]
    if hasattr(value, "__dict__"):
        return {key: digest_of(held) for key, held in vars(value).items()
                if not key.startswith("_")}  # fmt: skip
    return repr(value)


def small_fig3():
    return experiments.run("fig3", seeds=1, steps=1000, n=4, T=3, d=20)


def recorded(file: str) -> Format:
    """The result of an experiment that stands in the book, written anew."""
    name = file.partition(".")[0]

    def read(folder) -> object:
        return experiments.load(name, folder)

    return Format(file, file, lambda here: read(ROOT / "book" / "results").save(here / file),
                  lambda here: digest_of(read(here)))  # fmt: skip


FORMATS = [
    Format("data", "d.npz", lambda here: ragged().save(here / "d.npz"),
           lambda here: digest_of(Dataset.load(here / "d.npz"))),
    Format("trace", "t.npz", lambda here: short_run(None).save(here / "t.npz"),
           lambda here: digest_of(Trace.load(here / "t.npz"))),
    Format("solution", "s.npz", lambda here: solve_w_svm(ragged()).save(here / "s.npz"),
           lambda here: digest_of(SVMSolution.load(here / "s.npz"))),
    Format("joint trace", "t.npz",
           lambda here: train(make_dm(n=3, d=60), NGD(0.1), 9, train_u=True).save(here / "t.npz"),
           lambda here: digest_of(Trace.load(here / "t.npz"))),
    Format("checkpoint", "c.npz", lambda here: short_run(here / "c.npz"),
           lambda here: digest_of(short_run(here / "c.npz"))),
    Format("network checkpoint", "c.npz", lambda here: short_fit(here / "c.npz"),
           lambda here: digest_of(short_fit(here / "c.npz"))),
    Format("experiment", "fig3.npz", lambda here: small_fig3().save(here / "fig3.npz"),
           lambda here: digest_of(experiments.load("fig3", here))),
    *(recorded(file) for file in ("fig6.json", "fig10.json", "heads.json",
                                  "exponents.parquet", "ranks.parquet")),
    Format("sweep table", "s/table.parquet", lambda here: sweep(GRID, out=here / "s"),
           lambda here: digest_of(sweep(GRID, out=here / "s"))),
    Format("sweep part", "s/parts/000000.parquet", part_of_a_sweep,
           lambda here: digest_of(sweep(GRID, out=here / "s"))),
    Format("sweep grid", "s/grid.json", lambda here: sweep(GRID, out=here / "s"),
           lambda here: digest_of(sweep(GRID, out=here / "s"))),
]  # fmt: skip


def flip(form: Format, count: int, generator: random.Random) -> tuple[Counter, list[str]]:
    """So many single flips: how each came out, and words on the bad ones."""
    counts, notes = Counter(), []
    with (
        tempfile.TemporaryDirectory() as kept,
        warnings.catch_warnings(),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        whole = Path(kept) / "whole"
        whole.mkdir()
        form.write(whole)
        right, content = form.read(_copy(whole, Path(kept))), (whole / form.file).read_bytes()
        for _ in range(count):
            place = generator.randrange(8 * len(content))
            damaged = bytearray(content)
            damaged[place // 8] ^= 1 << place % 8
            here = _copy(whole, Path(kept))
            (here / form.file).write_bytes(damaged)
            try:
                what = "same" if form.read(here) == right else "CHANGED"
                note = ""
            except AttnBiasError:
                what, note = "refused", ""
            except Exception as error:
                what, note = "raw", where(error)
            counts[what] += 1
            if what in ("raw", "CHANGED"):
                notes.append(f"{form.name}: bit {place} {what} {note}")
    return counts, notes


def _copy(whole: Path, kept: Path) -> Path:
    here = kept / "here"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(whole, here)
    return here
