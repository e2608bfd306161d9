"""Which step sizes SNGD and SPS may begin with: a small transformer on the bundled digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch

from attnbias._records import read_json
from attnbias.nets import SNGD, SPS
from attnbias.nets.data.images import load_mnist

RECORD = Path(__file__).parents[1] / "results/starting_values.json"
SEEDS, STEPS, BATCH = (0, 1, 2), 300, 32

# Each optimizer from its parameters and the number that is varied: lr, or the cap of SPS.
GRID: dict[str, tuple[Callable, tuple[float, ...]]] = {
    "Adam": (torch.optim.Adam, (0.0003, 0.001, 0.003, 0.01, 0.03)),
    "SGD": (torch.optim.SGD, (0.03, 0.1, 0.3, 0.5, 1.0)),
    "SNGD": (SNGD, (0.1, 0.3, 0.5, 1.0, 2.0)),
    "SNGD, momentum 0.9": (lambda p, lr: SNGD(p, lr, momentum=0.9), (0.01, 0.03, 0.1, 0.3, 1.0)),
    "SPS, c = 1/2": (lambda p, cap: SPS(p, max_step=cap, c=0.5), (0.03, 0.1, 0.3, 1.0, 3.0)),
}
ADVICE = {"SNGD": 0.5, "SNGD, momentum 0.9": 0.1, "SPS, c = 1/2": 0.3}


class Small(torch.nn.Module):
    """Two layers of width 32 over the four quarters of a digit."""

    def __init__(self):
        super().__init__()
        self.embed, self.read = torch.nn.Linear(196, 32), torch.nn.Linear(32, 10)
        self.place = torch.nn.Parameter(0.02 * torch.randn(4, 32))
        made = (32, 4, 64, 0.0)  # width, heads, hidden units, dropout
        layers = (torch.nn.TransformerEncoderLayer(*made, batch_first=True, norm_first=True)
                  for _ in range(2))  # fmt: skip
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, X):
        return self.read(self.layers(self.embed(X) + self.place).mean(dim=1))


def digits(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(m, 4, 196) patches, with mean about 0, and (m,) labels."""
    found = load_mnist(split, source="bundled")
    images = torch.from_numpy(found.images[..., 0]).float() / 255 - 0.13
    patches = images.unfold(1, 14, 14).unfold(2, 14, 14).reshape(len(images), 4, 196)
    return patches, torch.from_numpy(found.labels).long()


def accuracy(name: str, value: float, seed: int, train, test) -> float:
    """Part of the test digits that are right after the run; seed is of the start and batches."""
    torch.manual_seed(seed)
    model, (X, y), (held_out, labels) = Small(), train, test
    optimizer = GRID[name][0](model.parameters(), value)
    batches = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        rows = torch.randint(len(X), (BATCH,), generator=batches)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(X[rows]), y[rows])
        loss.backward()
        optimizer.step(loss=loss.detach()) if isinstance(optimizer, SPS) else optimizer.step()
    with torch.no_grad():
        return float((model(held_out).argmax(dim=1) == labels).float().mean())


def recorded() -> pd.DataFrame:
    """A row for each run of the record: optimizer, value, seed, accuracy."""
    return pd.DataFrame(read_json(RECORD, "starting_values")["runs"])


def noise(runs: pd.DataFrame) -> float:
    """Two standard errors of the difference of two means over the seeds, over all of the grid."""
    cells = runs.groupby(["optimizer", "value"])["accuracy"]
    return 2 * math.sqrt(2 * float((cells.var() / cells.count()).mean()))


def shortfall(runs: pd.DataFrame) -> pd.Series:
    """By how much the mean accuracy of each advised value is below the best of its optimizer."""
    means = runs.groupby(["optimizer", "value"])["accuracy"].mean()
    return pd.Series({name: means[name].max() - means[name, at] for name, at in ADVICE.items()})


def accuracy_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies, an optimizer a row and its values in columns."""
    runs = runs.assign(optimizer=pd.Categorical(runs["optimizer"], list(GRID)))
    return runs.pivot_table("accuracy", "optimizer", "value", observed=True)
