"""Which step sizes SNGD and SPS may begin with, and how they compare: a small transformer on the
bundled digits, each optimizer at five values, then on fresh seeds near the best of them.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import torch

from attnbias import experiments
from attnbias._records import read_json
from attnbias.nets import SNGD, SPS
from attnbias.nets.data.images import load_mnist

RESULTS = Path(__file__).parents[1] / "results"
RECORD = RESULTS / "starting_values.json"
TOKENS = (16,)  # patches of an image
SEEDS, FRESH, STEPS, BATCH = (0, 1), (10, 11, 12), 300, 32
FACTORS = {"at half": 0.5, "at best": 1.0, "at twice": 2.0}


class ScheduleFree(torch.optim.Optimizer):
    """SGD without a schedule (Defazio et al. 2024): gradients are taken at y = x + (1 - beta)
    (z - x), z takes the steps, and x is the mean of all z.
    """

    def __init__(self, params, lr, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})
        self.steps = 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                z, x = (state.setdefault(name, p.clone()) for name in "zx")
                z.sub_(p.grad, alpha=group["lr"])
                x.lerp_(z, 1 / self.steps)
                p.copy_(z.lerp(x, group["beta"]))

    @torch.no_grad()
    def to_mean(self) -> None:
        """Put x, which is what training gives, in the place of y."""
        for p, state in self.state.items():
            p.copy_(state["x"])


# Each optimizer from its parameters and the number that is varied, its lr.
GRID: dict[str, tuple[Callable, tuple[float, ...]]] = {
    "Adam": (torch.optim.Adam, (0.0003, 0.001, 0.003, 0.01, 0.03)),
    "AdamW, decay 0.01": (torch.optim.AdamW, (0.0003, 0.001, 0.003, 0.01, 0.03)),
    "SGD": (torch.optim.SGD, (0.03, 0.1, 0.3, 0.5, 1.0)),
    "SGD, momentum 0.9": (partial(torch.optim.SGD, momentum=0.9), (0.003, 0.01, 0.03, 0.1, 0.3)),
    "schedule-free SGD, 0.9": (ScheduleFree, (0.03, 0.1, 0.3, 0.5, 1.0)),
    "SNGD": (SNGD, (0.1, 0.3, 0.5, 1.0, 2.0)),
    "SNGD, momentum 0.9": (partial(SNGD, momentum=0.9), (0.01, 0.03, 0.1, 0.3, 1.0)),
    "SPS": (SPS, (0.03, 0.1, 0.3, 1.0, 3.0)),
    "SPS, c = 1/2": (partial(SPS, c=0.5), (0.03, 0.1, 0.3, 1.0, 3.0)),
}
ADVICE = {"SNGD": 0.5, "SNGD, momentum 0.9": 0.1, "SPS, c = 1/2": 0.3}


class Small(torch.nn.Module):
    """Two layers of width 32 over the patches of a digit."""

    def __init__(self, tokens: int):
        super().__init__()
        self.embed, self.read = torch.nn.Linear(784 // tokens, 32), torch.nn.Linear(32, 10)
        self.place = torch.nn.Parameter(0.02 * torch.randn(tokens, 32))
        made = (32, 4, 64, 0.0)  # width, heads, hidden units, dropout
        layers = (
            torch.nn.TransformerEncoderLayer(*made, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, X):
        return self.read(self.layers(self.embed(X) + self.place).mean(dim=1))


def digits(split: str, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(m, tokens, pixels) patches, with mean about 0, and (m,) labels."""
    found, side = load_mnist(split, source="bundled"), 28 // math.isqrt(tokens)
    images = torch.from_numpy(found.images[..., 0]).float() / 255 - 0.13
    patches = images.unfold(1, side, side).unfold(2, side, side).reshape(len(images), tokens, -1)
    return patches, torch.from_numpy(found.labels).long()


def accuracy(name: str, value: float, seed: int, train, test) -> float:
    """Part of the test digits that are right after the run; seed is of the start and batches."""
    torch.manual_seed(seed)
    (X, y), (held_out, labels) = train, test
    model = Small(X.shape[1])
    optimizer = GRID[name][0](model.parameters(), lr=value)
    batches = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        rows = torch.randint(len(X), (BATCH,), generator=batches)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(X[rows]), y[rows])
        loss.backward()
        optimizer.step(loss=loss.detach()) if isinstance(optimizer, SPS) else optimizer.step()
    if isinstance(optimizer, ScheduleFree):
        optimizer.to_mean()
    with torch.no_grad():
        return float((model(held_out).argmax(dim=1) == labels).float().mean())


def recorded(fresh: bool = False) -> pd.DataFrame:
    """A row for each run of the record: tokens, optimizer, value, seed, accuracy.

    Those that chose, at every value of the grid; or the fresh ones, near the best.
    """
    runs = pd.DataFrame(read_json(RECORD, "starting_values")["runs"])
    return runs[runs["seed"].isin(FRESH if fresh else SEEDS)].reset_index(drop=True)


def best_values(runs: pd.DataFrame) -> pd.Series:
    """The value with the largest mean, by tokens and optimizer."""
    return accuracy_table(runs).idxmax(axis=1)


def comparison(tokens: int) -> pd.DataFrame:
    """The best value of each optimizer, and on fresh seeds the mean accuracy there and its spread,
    the standard deviation, and the means at half and at twice the value.
    """
    best, rows = best_values(recorded()), {}
    cells = recorded(fresh=True).groupby(["tokens", "optimizer", "value"])["accuracy"]
    for name in GRID:
        value = best[tokens, name]
        at = {key: (tokens, name, factor * value) for key, factor in FACTORS.items()}
        means = {key: cells.mean()[cell] for key, cell in at.items()}
        rows[name] = {"best lr": value} | means | {"spread": cells.std()[at["at best"]]}
    return pd.DataFrame(rows).T


def searched(tokens: int, factor: float) -> pd.Series:
    """Mean accuracy of the search at about a multiple of the best value, of those that tried it."""
    found = {}
    for name, row in accuracy_table(recorded()).loc[tokens].iterrows():
        times = row.index / row.idxmax()
        found[name] = row[(times > 0.9 * factor) & (times < 1.4 * factor)].mean()
    return pd.Series(found).dropna()


def cap_losses() -> pd.DataFrame:
    """Loss at each cap of SPS that all recorded searches tried, by the smallest of its search."""
    rows = {}
    for path in RESULTS.glob("fig[1467].json"):
        for label, losses in experiments.load(path.stem, RESULTS).grid.items():
            if label.startswith("SPS"):
                rows[f"{path.stem}, {label}"] = pd.Series(losses) / min(losses.values())
    return pd.DataFrame(rows).T.sort_index().dropna(axis=1).rename(columns=float)


def noise(runs: pd.DataFrame) -> float:
    """Two standard errors of the difference of two means over the seeds.

    From the median spread of a cell: next to where a run diverges the seeds differ far more.
    """
    cells = runs.groupby(["tokens", "optimizer", "value"])["accuracy"]
    return 2 * math.sqrt(2 * float((cells.var() / cells.count()).median()))


def accuracy_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies, a model and an optimizer a row and the values in columns."""
    runs = runs.assign(optimizer=pd.Categorical(runs["optimizer"], list(GRID)))
    return runs.pivot_table("accuracy", ["tokens", "optimizer"], "value", observed=True)


def shortfall(runs: pd.DataFrame) -> pd.Series:
    """By how much the mean of each advised value is below the best of its model and optimizer."""
    table = accuracy_table(runs)
    return pd.Series(
        {
            row: table.loc[row].max() - table.loc[row, ADVICE[row[1]]]
            for row in table.index
            if row[1] in ADVICE
        }
    )


def lead(runs: pd.DataFrame) -> float:
    """By how much the best of SNGD and SPS is above the best of Adam, where it is so the most."""
    best = accuracy_table(runs).max(axis=1).unstack()
    return float((best[list(ADVICE)].max(axis=1) - best["Adam"]).max())
