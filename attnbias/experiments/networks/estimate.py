"""What a network experiment would take, before it is run: `attnbias run NAME --dry-run`.

Nothing is trained, written or fetched. A few steps of the real model on a real batch are timed
here; the hours on a GPU are arithmetic, from the operations of one step.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from ..._extras import need
from ..._validate import as_device, require_choice, require_int
from ...errors import MissingExtraError, MissingFileError
from ...nets.data.images import COUNTS
from ...nets.text import POOLING, TextClassifier

# One H200 by its data sheet, operations a second: float32 without TF32, and bf16, dense [b].
PEAK = {"no": 67e12, "bf16": 989e12}
UTILISATION = 0.3  # of the peak that training reaches where arithmetic decides [d]
LAUNCH = 8e-6  # seconds in which the host starts one operation, where starting them decides [d]
FORWARD = 1 / 3  # of a step's time: what an evaluation takes of the same batch [d]
SAMPLE = 512  # examples that are looked at
SECONDS = 12.0  # of timed steps, one at least
SHAPES = {
    "huggingface": {},
    "packages": dict(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    ),
}
# Training and test examples of the paper's sets, as the loaders split them.
PAPER = {
    "fig1": ("MultiNLI", 392_702, 9_832),
    "fig4": ("CivilComments", 1_804_874, 97_320),
    "fig6": ("MNIST", *(sum(COUNTS["MNIST", split]) for split in ("train", "test"))),
    "fig7": ("CIFAR-10", *(sum(COUNTS["CIFAR-10", split]) for split in ("train", "test"))),
}


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a run would take.

    Attributes
    ----------
    title : str
    data : str
        What it would be trained on, and what is missing of it.
    shapes : dict of str to list of int
        Of the inputs of one batch.
    parameters, memory : int
        Numbers of the model; bytes of weights, gradients, Adam's state and what a step keeps.
    flops, operations : int
        Of one step: floating-point operations, and calls of torch's kernels.
    runs : str
        Which runs, in words.
    steps : float
        Of all runs, evaluations counted as parts of a step.
    seconds, processor, h200 : float
        A step timed here, the time that processors worked on it, and predicted for one H200.

    Examples
    --------
    >>> from attnbias.experiments.networks.estimate import dry_run
    >>> from attnbias.experiments.networks.figures import fig6
    >>> estimate = dry_run(fig6, 1, source="bundled", size="small", steps=10)
    >>> estimate.parameters, estimate.shapes
    (84726, {'images': [128, 1, 28, 28]})
    """

    title: str
    data: str
    shapes: dict[str, list[int]]
    parameters: int
    memory: int
    flops: int
    operations: int
    runs: str
    steps: float
    seconds: float
    processor: float
    h200: float

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(shape)}" for name, shape in self.shapes.items())
        here, there = (self.steps * each / 3600 for each in (self.seconds, self.h200))
        return "\n".join(
            [
                f"{self.title}: a dry run, nothing is trained and nothing written",
                f"  data       {self.data}",
                f"  batch      {shapes}",
                f"  model      {self.parameters:,} parameters",
                f"  memory     {self.memory / 1e6:,.0f} MB: weights, gradients, Adam's state, "
                "and what a step keeps for its gradient",
                f"  runs       {self.runs}",
                f"  here       {self.seconds:.3g} s a step, measured, in {self.processor:.3g} s of "
                f"processor time: {here:.3g} hours (fewer if the machine was busy)",
                f"  one H200   {self.h200:.3g} s a step: {there:.3g} hours. A prediction, not run: "
                f"{self.flops / 1e9:.3g} GFLOP at {UTILISATION:.0%} of the data sheet's peak, or "
                f"{self.operations:,} operations at {1e6 * LAUNCH:g} us, whichever is longer",
            ]
        )


class Glimpse:
    """A loader of a few examples that remembers how many the whole set has."""

    def __init__(self, figure) -> None:
        self.load, self.paper = figure.load, PAPER[figure.name]
        self.counts, self.words = {}, ""
        self.model: str | None = None

    def __call__(self, split: str, *, source):
        found, name = None, self.paper[0]
        if source == "huggingface":
            self.words = f"{name} from the hub, which a dry run does not ask: the paper's size"
        else:
            try:
                found = self.load(split, source=source)
                self.words = f"source {source}"
            except (MissingFileError, MissingExtraError) as error:
                self.words = f"missing: {error.what}; the size is that of the paper's {name}"
        known = self.paper[1 if split == "train" else 2]
        self.counts[split] = known if found is None else len(found)
        found = self.load(split, source="bundled") if found is None else found
        parts = ("images", "first", "second", "labels")
        held = {name: getattr(found, name, None) for name in parts}
        return dataclasses.replace(
            found, **{name: rows[:SAMPLE] for name, rows in held.items() if rows is not None}
        )


def dry_run(figure, *seeds, **settings) -> Estimate:
    """What `figure.run` would take with the same arguments, whether or not its data are there.

    Parameters
    ----------
    figure : NetworkFigure
    *seeds, **settings
        As `figure.run` takes them.

    Returns
    -------
    Estimate

    Raises
    ------
    RangeError, DtypeError, MissingExtraError
    """
    glimpse = Glimpse(figure)
    if hasattr(figure, "corpora"):  # a BERT's weights cost what its shape says, whatever they are
        model = settings.get("model") or settings.get("source", "huggingface")
        glimpse.model = model if isinstance(model, str) and model in SHAPES else None
        settings["model"] = "tiny" if glimpse.model else settings.get("model")
    known = dataclasses.replace(figure, load=glimpse)
    return known.run(*seeds, **settings | {"dry_run": True})


def estimate(
    recipe, steps: Callable[[int], int], runs: int, records: int, common: dict
) -> Estimate:
    """What the runs of a recipe would take.

    Parameters
    ----------
    recipe : Recipe
    steps : callable
        From the batches of an epoch to the steps of one run.
    runs : int
        How many there are at most.
    records : int
        Evaluations of a run.
    common : dict
        batch_size, eval_examples, device and precision of all runs.
    """
    device = as_device("device", common["device"])
    require_choice("precision", common["precision"], tuple(PEAK))
    glimpse, batch = getattr(recipe.figure, "load", None), common["batch_size"]
    known = isinstance(glimpse, Glimpse)
    counts = glimpse.counts if known else {"train": len(recipe.train), "test": len(recipe.test)}
    require_int("batch_size", batch, low=1, high=counts["train"])
    looked = require_int("eval_examples", common["eval_examples"], low=1)
    length = steps(counts["train"] // batch)
    bert = glimpse.model if known else None
    model = _bert(bert, len(recipe.train.classes)) if bert else recipe.build(0)
    with torch.random.fork_rng(devices=[]):  # dropout draws
        found = measure(model, recipe.train, batch, device, common["precision"])
    batches = sum(min(looked, count) for count in counts.values()) / batch
    evaluations = FORWARD * batches * runs * (records + 1)
    arithmetic = found["flops"] / (UTILISATION * PEAK[common["precision"]])
    sizes = f"{counts['train']:,} training and {counts['test']:,} test examples"
    return Estimate(
        recipe.figure.TITLE,
        f"{sizes} ({glimpse.words})" if known else sizes,
        runs=f"at most {runs} of {length:,} steps",
        steps=runs * length + evaluations,
        h200=max(arithmetic, LAUNCH * found["operations"]),
        **found,
    )


def measure(model, examples, batch_size: int, device, precision="no") -> dict:
    """What one step of SGD takes: counted once, then timed for some `SECONDS`."""
    inputs, labels = examples.batch(np.arange(batch_size) % len(examples))
    shapes = {name: list(tensor.shape) for name, tensor in inputs.items()}
    model, device = model.to(device).train(), torch.device(device)
    inputs, labels = {name: x.to(device) for name, x in inputs.items()}, labels.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)  # lengths of steps cost nothing
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    def step() -> tuple[float, float]:
        wait()
        began = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            loss = cross_entropy(model(**inputs).float(), labels)
        loss.backward()
        optimizer.step()
        wait()
        return time.perf_counter() - began[0], time.process_time() - began[1]

    kept = _Kept(model)
    with FlopCounterMode(display=False) as flops, _Operations() as counted, kept.hooks():
        times = [step()]
    until = time.perf_counter() + SECONDS - times[0][0]
    least = 1 if device.type == "cpu" else 6  # a GPU's first step loads its kernels
    while len(times) < least or (len(times) < 20 and time.perf_counter() < until):
        times.append(step())
    # the first one counts as well, and stands where no other does
    seconds, processor = (
        statistics.median(each) for each in zip(*(times[1:] or times), strict=True)
    )
    numbers = sum(p.numel() for p in model.parameters())
    return {
        "shapes": shapes,
        "parameters": numbers,
        "memory": 16 * numbers + sum(kept.found.values()),
        "flops": flops.get_total_flops(),
        "operations": counted.count,
        "seconds": seconds,
        "processor": processor,
    }


class _Operations(TorchDispatchMode):
    """Counts operations but views: each starts a kernel or more."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


class _Kept:
    """Bytes that a step keeps for its gradient, by storage, weights left out."""

    def __init__(self, model) -> None:
        self.weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self.found: dict[int, int] = {}

    def hooks(self):
        return torch.autograd.graph.saved_tensors_hooks(self.keep, lambda tensor: tensor)

    def keep(self, tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.weights:
            self.found[storage.data_ptr()] = storage.nbytes()
        return tensor


def _bert(source: str, classes: int) -> TextClassifier:
    """A BERT of random weights in the shape of the one that `source` would give."""
    transformers = need("transformers")
    with torch.random.fork_rng(devices=[]):
        encoder = transformers.BertModel(transformers.BertConfig(**SHAPES[source]))
        pooling = POOLING.get(source, "first")
        return TextClassifier(encoder, classes, dropout=0.1, seed=0, pooling=pooling)
