"""Small examples and models for the tests of the loop, and a script that other processes run.

python networks.py FOLDER OPTIMIZER[,OPTIMIZER...]: trains without dropout and writes
FOLDER/log<RANK>.json; under RANK and WORLD_SIZE it is one of several processes.
"""

import json
import os
import sys
from pathlib import Path

import torch

from attnbias.nets import SNGD, SPS, fit

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "SNGD": lambda parameters: SNGD(parameters, lr=0.05, momentum=0.9),
    "SPS": lambda parameters: SPS(parameters, lr=10.0, smoothing=2.0, steps_per_epoch=4),
}


class Points:
    """Two classes of points in the plane, each example a function of its row alone."""

    def __init__(self, count: int = 32, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 2, generator=generator)
        self.y = (self.x[:, 0] * self.x[:, 1] > 0).long()

    def __len__(self) -> int:
        return len(self.y)

    def batch(self, rows):
        return {"input": self.x[rows]}, self.y[rows]


def network(dropout: float = 0.2) -> torch.nn.Module:
    """Two layers with dropout, always from the same start."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(3)
        return torch.nn.Sequential(
            torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(8, 2)
        )


def training(name, *, dropout: float = 0.2, model=None, train=None, test=None, **options):
    """40 iterations on `Points`, of an optimizer of that name or by a maker of one."""
    settings = {"steps": 40, "batch_size": 8, "record_every": 5} | options
    sets = train or Points(), test or Points(16, seed=1)
    return fit(model or network(dropout), *sets, OPTIMIZERS.get(name, name), **settings)


def same_curves(*logs) -> bool:
    """Whether two runs agree in every digit, but for the time that they took."""
    one, other = ([log.to_json()[part] for part in ("step", "curves", "norms")] for log in logs)
    del one[1]["seconds"], other[1]["seconds"]
    return one == other


def main(folder: Path, names: str) -> None:
    torch.set_num_threads(1)
    logs = {name: training(name, dropout=0.0).to_json() for name in names.split(",")}
    rank = os.environ.get("RANK", "0")  # processes at once would write into one another's file
    (folder / f"log{rank}.json").write_text(json.dumps(logs))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
