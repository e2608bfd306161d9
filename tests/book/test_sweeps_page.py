"""The page on sweeps: its blocks run, its file is its grid, and its margins are those of tokens."""

import re
import tomllib

import numpy as np
import pytest
import torch
from tolerances import CLOSED_FORM

from attnbias import Dataset, solve_w_svm
from attnbias.sweeps import read_grid
from tools.chapters import ROOT

PAGE = (ROOT / "book/reference/sweeps.md").read_text(encoding="utf8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def orthogonal(n: int, T: int, length: float, first: bool) -> Dataset:
    """Tokens of one norm: a mean for each class, and noise orthogonal to all the rest."""
    axes = length * torch.eye(2 + n * (T - 1), dtype=torch.float64)
    y = [(-1.0) ** i for i in range(n)]
    rows = []
    for i in range(n):
        mean, noise = axes[i % 2 : i % 2 + 1], axes[2 + i * (T - 1) : 2 + (i + 1) * (T - 1)]
        rows.append(torch.cat([mean, noise] if first else [noise, mean]))
    return Dataset(torch.stack(rows), y, axes[0] - axes[1])


@pytest.mark.parametrize(("n", "T", "length"), [(1, 2, 1.0), (4, 3, 2.0), (5, 4, 0.7)])
def test_the_margins_by_hand_are_those_of_orthogonal_tokens(n, T, length):
    last = length**2 * np.sqrt(T / (n * (T - 1)))
    assert abs(solve_w_svm(orthogonal(n, T, length, False)).margin / last - 1) < CLOSED_FORM
    m = np.array([(n + 1) // 2 * (T - 1), n // 2 * (T - 1)])
    first = length**2 / np.sqrt((m / (1 + m)).sum())
    assert abs(solve_w_svm(orthogonal(n, T, length, True)).margin / first - 1) < CLOSED_FORM


def test_the_blocks_run_and_the_table_says_what_the_page_says():
    """On two of the eight seeds, to be quick; the plan of the whole grid is in the next test."""
    names: dict = {}
    for code in blocks("python"):
        code = code.replace('"0:8"', '"0:2"').replace("(192, 96)", "(48, 24)")
        exec(compile(code, "sweeps.md", "exec"), names)
    once, margins = names["last"], names["margins"]
    by_hand = {(n, d): 0.01 * d * np.sqrt(4 / (3 * n)) for n in (4, 8, 16) for d in (60, 480)}
    assert abs(margins.loc[4, 480] / by_hand[4, 480] - 1) < 0.05
    near = once[(once["n"] == 4) & (once["d"] == 480)]["margin"] / by_hand[4, 480]
    assert near.between(0.95, 1.05).all()
    assert 0.85 < margins.loc[16, 60] / by_hand[16, 60] < 0.95
    assert 1.8 < margins.loc[4, 480] / margins.loc[4, 240] < 2.2


def test_the_file_is_the_grid():
    (text,), names = blocks("toml"), {}
    exec(blocks("python")[0], names)
    assert read_grid(tomllib.loads(text)).key == read_grid(names["grid"]).key
