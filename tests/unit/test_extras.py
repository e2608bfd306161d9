"""Without any optional package: all modules import or name the extra, and so do all calls."""

import subprocess
import sys

from root import ROOT

# Import names of what the extras bring, gone for one process.
OPTIONAL = [
    "PIL",
    "accelerate",
    "cvxpy",
    "datasets",
    "distributed",
    "flint",
    "huggingface_hub",
    "matplotlib",
    "matplotlib_inline",
    "mpmath",
    "pyarrow",
    "safetensors",
    "transformers",
]
SCRIPT = """
import importlib, sys, tempfile
from pathlib import Path

class Gone:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in %r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Gone())
import torch
import attnbias
from attnbias import GD, cli, make_example1, make_separation_pair
from attnbias.errors import MissingExtraError

refused, root = set(), Path(attnbias.__path__[0])
for file in root.rglob("[!_]*.py"):
    name = ".".join(("attnbias", *file.relative_to(root).with_suffix("").parts))
    try:
        importlib.import_module(name)
    except MissingExtraError as error:
        assert "attnbias[plots]" in str(error), error
        refused.add(name)
assert "attnbias.plots.theme" in refused, refused
assert all("plots" in name.split(".") for name in refused), refused

pair, folder = make_separation_pair(), tempfile.mkdtemp()
trace = attnbias.train(pair, GD(0.1), 3)  # and its tables need none
assert len(trace.to_dataframe()) == len(trace.step)
assert attnbias.Trace.load(trace.save(folder + "/run.npz")).status == "completed"
assert len(attnbias.Check.along("norm", [1, 10], [1, 8], [1, 10]).to_dataframe())

from attnbias.data import _source
from attnbias.nets import fit, text
from attnbias.nets.data.text import load_nli

class Points:
    def __len__(self):
        return 8

    def batch(self, rows):
        return {"input": torch.ones(len(rows), 1)}, torch.zeros(len(rows)).long()

grid = {"data": {"model": "example1", "n": 4, "T": 3, "d": 20, "seed": [0]},
        "rule": "NGD(0.1)", "steps": 5, "record": [1, 5]}
_source.huggingface = lambda *_: {"img": [], "label": []}  # in its place, to reach the pictures
for extra, call in [
    ("exact", lambda: attnbias.solve_w_svm(pair).certify(exact=True)),
    ("sweeps", lambda: attnbias.sweep(grid, out=folder)),
    ("dask", lambda: cli.sweep._cluster("tcp://127.0.0.1:1")),
    ("nets", lambda: load_nli("test", source="huggingface")),
    ("nets", lambda: _source.hub_images("uoft-cs/cifar10", "img", "test")),
    ("nets", lambda: text.load_encoder("tiny")),
    ("nets", lambda: text.load_tokenizer("tiny")),
    ("nets", lambda: fit(torch.nn.Linear(1, 2), Points(), Points(), torch.optim.SGD, steps=1,
                         batch_size=4, record_every=1)),
]:
    try:
        call()
    except MissingExtraError as error:
        assert f"attnbias[{extra}]" in str(error), error
    else:
        raise AssertionError(extra)
print("done")
"""


def test_without_any_extra_each_module_imports_or_names_it():
    run = [sys.executable, "-c", SCRIPT % (OPTIONAL,)]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "done\n"
