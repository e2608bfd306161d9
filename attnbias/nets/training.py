"""The one mini-batch loop: on a CPU, a GPU or several processes, resumable to the last digit.

The batch and the dropout masks of an iteration are functions of (seed, iteration, process)
alone, so a run that is killed and resumed from its checkpoint gives the same curve.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from .._extras import need
from .._files import owned, target_path
from .._validate import (
    PathLike,
    memory_named,
    require_choice,
    require_flag,
    require_int,
    require_type,
)
from ..errors import DivergedError, NonFiniteError, RangeError
from .batches import (
    EVAL_BATCH,
    fixed_inputs,
    known_by,
    order_of,
    require_examples,
    sample,
    seed_iteration,
)
from .checkpoint import identity, load_checkpoint, save_checkpoint
from .log import CURVES, TrainingLog

PRECISIONS = ("no", "bf16")
OPTIMIZER = (
    "a function from parameters to a torch.optim.Optimizer",
    "for example lambda p: torch.optim.SGD(p, lr=0.1)",
)
SAVE_SECONDS = 600.0  # a run that is killed loses no more


def fit(
    model: torch.nn.Module,
    train: Any,
    test: Any,
    make_optimizer: Callable[[Iterator[torch.nn.Parameter]], torch.optim.Optimizer],
    *,
    steps: int,
    batch_size: int,
    record_every: int,
    eval_examples: int = 1000,
    seed: int = 0,
    device: str = "cpu",
    precision: str = "no",
    checkpoint: PathLike | None = None,
    probe: Callable[[torch.nn.Module, int], None] | None = None,
    progress: bool = False,
    label: str = "",
) -> TrainingLog:
    """Train a classifier on mini-batches and record its curves.

    Parameters
    ----------
    model : torch.nn.Module
        Called as model(**inputs), gives logits (b, classes). It is trained in place.
    train, test : examples
        With a length and `.batch(indices) -> (inputs, labels)`, such as `ImageExamples`.
    make_optimizer : callable
        From the parameters to a torch.optim.Optimizer. It is stepped with a closure that
        returns the mini-batch's loss.
    steps, batch_size : int
        Iterations, and examples of each over all processes. An epoch is len(train) //
        batch_size iterations in a new order; what does not fill a batch is left out.
    record_every : int
        Iterations between records; the start and the end are always recorded.
    eval_examples : int
        How many examples of each set the recorded losses and accuracies are measured on: the
        same ones at each record; all, where the set has no more.
    seed : int
        Decides batches and dropout; the model brings its own start.
    device : str
        "cpu", or "cuda" for what Accelerate finds: one GPU, or one a process under
        `accelerate launch`. Not run on a GPU yet.
    precision : {"no", "bf16"}
        bf16 runs the matrix products in it; weights and steps stay float32.
    checkpoint : path, optional
        Where to keep the state at each record and, with one process, every ten minutes; if the file
        is there, the run goes on from it.
        It knows its run by the arguments above, the number of processes, the optimizer's class
        and numbers (of a class of your own also by its first steps), the model's structure, the
        weights that it has when `fit` is called and what it makes of a few examples, and of each
        set the length and 1,000 examples spread over it (all, if it has no more);
        with anything else it is refused. So build the model anew before going on. Another run that
        writes the file at the same time is refused.
    probe : callable, optional
        Called at each record as probe(model, iteration), with the bare model, such as a
        `HeadProbe`. Where it has a `state_dict()` of arrays and a `load_state_dict`, the checkpoint
        keeps them. It has to leave the model as it is.
    progress : bool
        Show a progress bar on standard error.
    label : str
        What the run is called, in the bar and in errors.

    Returns
    -------
    TrainingLog

    Raises
    ------
    DivergedError
        The loss or a weight is no longer finite; the checkpoint before it is kept, and the error's
        `log` has what was recorded. So has that of a NonFiniteError by the optimizer.
    MemoryLimitError
        The device has no memory left for a batch.
    RangeError, DtypeError, FileFormatError, MissingExtraError
        Bad arguments, a checkpoint of another run or of an earlier version, or no Accelerate.
    MissingFileError, FileAccessError
        The checkpoint's folder is not there, or it can't be written.

    Notes
    -----
    Source: Section 5, Appendix C. [d] evaluation on a fixed part, no schedule of the lr, no
    clipping, no augmentation: the text names none.

    Examples
    --------
    >>> import numpy, torch
    >>> from attnbias.nets import fit
    >>> class Points:
    ...     def __len__(self): return 8
    ...     def batch(self, rows):
    ...         x = torch.tensor(rows, dtype=torch.float32)[:, None] - 3.5
    ...         return {"input": x}, (x[:, 0] > 0).long()
    >>> model = torch.nn.Linear(1, 2)
    >>> sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.1)
    >>> log = fit(model, Points(), Points(), sgd, steps=50, batch_size=4, record_every=25)
    >>> log.step.tolist(), bool(log["train_loss"][-1] < log["train_loss"][0])
    ([0, 25, 50], True)
    """
    require_type("model", model, torch.nn.Module, "a torch.nn.Module", "pass the model itself")
    sets = {"train": train, "test": test}
    for name, examples in sets.items():
        require_examples(name, examples)
    require_type("make_optimizer", make_optimizer, Callable, *OPTIMIZER)
    require_type("label", label, str, "a word", "pass a str")
    wanted = "a function of a model and an iteration"
    require_type("probe", probe, (Callable, type(None)), wanted, "pass a HeadProbe")
    checkpoint = None if checkpoint is None else target_path(checkpoint)
    settings = {
        "steps": require_int("steps", steps, low=1),
        "batch_size": require_int("batch_size", batch_size, low=1, high=len(train)),
        "record_every": require_int("record_every", record_every, low=1),
        "eval_examples": require_int("eval_examples", eval_examples, low=1),
        "seed": require_int("seed", seed, low=0),
        "precision": require_choice("precision", precision, PRECISIONS),
    }
    require_flag("progress", progress)
    run = _Run(model, sets, make_optimizer, settings, device, label, probe)
    devices = [run.accelerator.device] if run.accelerator.device.type == "cuda" else []
    remedy = "take a smaller batch_size or precision='bf16', or another device"
    named = memory_named("training", f"memory for batches of {settings['batch_size']}", remedy)
    with (
        torch.random.fork_rng(devices=devices),
        named,
        run.alone(checkpoint, steps),
        tqdm(
            total=steps, initial=run.step, desc=label, disable=not progress, dynamic_ncols=True
        ) as bar,
    ):
        try:
            for step in range(run.step + 1, steps + 1):
                run.iterate()
                bar.update()
                if recorded := step % record_every == 0 or step == steps:
                    bar.set_postfix_str(run.record())
                if checkpoint is not None and (recorded or run.unsaved > SAVE_SECONDS):
                    run.save(checkpoint)
        except (DivergedError, NonFiniteError) as error:
            vars(error)["log"] = run.log()
            raise
    return run.log()


class _Run:
    """The state of one run between two iterations."""

    def __init__(
        self,
        model,
        sets: dict[str, Any],
        make_optimizer,
        settings: dict,
        device: str,
        label: str,
        probe: Any,
    ) -> None:
        accelerate = need("accelerate")
        require_choice("device", device, ("cpu", "cuda"))
        if device == "cuda" and not torch.cuda.is_available():
            raise RangeError(
                "device",
                expected="'cpu', or a GPU for 'cuda'",
                got="'cuda' and no GPU",
                remedy="run on the CPU, or on a machine with a GPU and a torch built for it",
            )
        # Accelerate keeps device and precision for the whole process, and refuses a second choice
        accelerate.state.AcceleratorState._reset_state(not torch.distributed.is_initialized())
        self.accelerator = accelerate.Accelerator(
            cpu=device == "cpu", mixed_precision=settings["precision"]
        )
        self.to_device = accelerate.utils.send_to_device
        self.processes = self.accelerator.num_processes
        if settings["batch_size"] % self.processes:
            raise RangeError(
                "batch_size",
                expected=f"a multiple of the {self.processes} processes",
                got=str(settings["batch_size"]),
                remedy="choose one that the processes can share equally",
            )
        self.settings, self.sets = settings, sets
        self.label, self.probe = label or "training", probe
        model = model.to(self.accelerator.device)
        self.bare = model
        optimizer = make_optimizer(model.parameters())
        require_type("make_optimizer", optimizer, torch.optim.Optimizer, *OPTIMIZER)
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.per_epoch = len(sets["train"]) // settings["batch_size"]
        self.step, self.seconds = 0, 0.0
        self.rows: list[dict] = []
        self.norms: list[dict] = []
        self._since: list[torch.Tensor] = []  # of each iteration since the last record
        self._clock = self._saved = time.perf_counter()
        self.seen = {
            name: sample(len(examples), settings["eval_examples"])
            for name, examples in sets.items()
        }

    def alone(self, checkpoint, steps: int) -> contextlib.AbstractContextManager:
        """Start, or go on; until the block ends no other run writes the checkpoint."""

        def unfinished():
            self.start(checkpoint)
            return self.step < steps and self.accelerator.is_main_process

        return owned(checkpoint, unfinished)

    def start(self, checkpoint) -> None:
        if checkpoint is not None:
            self.identity = self._identity()  # of the weights as given, so before they are loaded
        if checkpoint is None or not checkpoint.is_file():
            self.record()
            return
        self.step, stored = load_checkpoint(checkpoint, self.bare, self.optimizer, self.identity)
        self.rows, self.norms, self.seconds = stored["rows"], stored["norms"], stored["seconds"]
        self._since = [torch.tensor(row, device=self.accelerator.device) for row in stored["since"]]
        if hasattr(self.probe, "load_state_dict"):
            self.probe.load_state_dict(stored["probe"])
        self._clock = self._saved = time.perf_counter()

    def _identity(self) -> dict:
        """All that decides the numbers of this run, by name."""
        device = self.accelerator.device
        inputs = self.to_device(fixed_inputs(self.sets["train"]), device)
        return {
            **self.settings,
            **identity(self.bare, self.optimizer.optimizer, inputs),
            "device": device.type,
            "processes": self.processes,
            **{f"{name} data": known_by(examples) for name, examples in self.sets.items()},
            **({} if self.probe is None else {"probe": type(self.probe).__qualname__}),
        }

    def iterate(self) -> None:
        """One mini-batch, one step."""
        self.model.train()
        seed_iteration(self.settings["seed"], self.step, self.accelerator)
        inputs, labels = self._batch("train", self._rows_of_step())
        self.optimizer.zero_grad(set_to_none=True)
        with self.accelerator.autocast():
            loss = cross_entropy(self.model(**inputs).float(), labels)
        self.accelerator.backward(loss)
        loss = loss.detach()
        self.optimizer.step(lambda: loss)
        self._since.append(torch.stack([loss, *self._sizes()]))
        self.step += 1

    def _sizes(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Gradient norm and step size of the step just made, as tensors on the device."""
        optimizer, device = self.optimizer.optimizer, self.accelerator.device  # under Accelerate's
        norm = getattr(optimizer, "last_grad_norm", None)
        if norm is None:
            grads = [p.grad for p in self.bare.parameters() if p.grad is not None]
            norm = torch.nn.utils.get_total_norm(grads)
        size = getattr(optimizer, "last_step_size", optimizer.param_groups[0]["lr"])
        return norm.to(device, torch.float32), torch.as_tensor(size).to(device, torch.float32)

    def _rows_of_step(self) -> np.ndarray:
        epoch, place = divmod(self.step, self.per_epoch)
        size = self.settings["batch_size"]
        order = order_of(self.settings["seed"], epoch, len(self.sets["train"]))
        rows = order[place * size : (place + 1) * size]
        return rows[self.accelerator.process_index :: self.processes]

    def _batch(self, name: str, rows):
        return self.to_device(self.sets[name].batch(rows), self.accelerator.device)

    def record(self) -> str:
        """Measure and keep; the words for the progress bar."""
        row = {"step": self.step} | self._means_since()
        for name in self.sets:
            row[f"{name}_loss"], row[f"{name}_accuracy"] = self._evaluate(name)
        self._require_finite(row)
        self.rows.append(row)
        weights = self.bare.named_parameters()
        self.norms.append({name: float(w.detach().norm()) for name, w in weights if w.ndim >= 2})
        if self.probe is not None:
            self.probe(self.bare, self.step)
        self._clock = time.perf_counter()
        return f"loss {row['train_loss']:.3g}, test accuracy {row['test_accuracy']:.3f}"

    def _means_since(self) -> dict[str, float]:
        """Of the iterations since the last record: mean loss, median norm and step size."""
        means = [float("nan")] * 3
        if self._since:
            since = torch.stack(self._since).cpu().double()  # waits for the device
            means = [float(since[:, 0].mean()), *since[:, 1:].median(dim=0).values.tolist()]
            self._since = []
            self.seconds += time.perf_counter() - self._clock
        return dict(zip(CURVES[4:], [*means, self.seconds], strict=True))

    def _require_finite(self, row: dict) -> None:
        losses = [row["train_loss"], row["batch_loss"] if self.step else 0.0]
        if not np.isfinite(losses).all():
            raise DivergedError(
                f"{self.label}, iterations up to {self.step}",
                expected="a finite loss",
                got=f"{losses[0]:g} on the training examples, {losses[1]:g} on mini-batches",
                remedy="take a smaller step size or cap; the checkpoint before it is kept",
            )

    @torch.no_grad()
    def _evaluate(self, name: str) -> tuple[float, float]:
        """Mean loss and accuracy, each process on its share."""
        self.bare.eval()
        rows = self.seen[name]
        mine = rows[self.accelerator.process_index :: self.processes]
        totals = torch.zeros(2, dtype=torch.float64, device=self.accelerator.device)
        for first in range(0, len(mine), EVAL_BATCH):
            inputs, labels = self._batch(name, mine[first : first + EVAL_BATCH])
            with self.accelerator.autocast():
                logits = self.bare(**inputs).float()
            totals[0] += cross_entropy(logits, labels, reduction="sum")
            totals[1] += (logits.argmax(dim=1) == labels).sum()
        loss, hits = (self.accelerator.reduce(totals, "sum") / len(rows)).tolist()
        return loss, hits

    @property
    def unsaved(self) -> float:
        """Seconds since the state was saved or read; 0 for processes, which may not agree on it."""
        return time.perf_counter() - self._saved if self.processes == 1 else 0.0

    def save(self, path) -> None:
        if self._since:
            self.seconds += time.perf_counter() - self._clock
        if self.accelerator.is_main_process:
            stored: dict[str, Any] = {
                "rows": self.rows,
                "norms": self.norms,
                "seconds": self.seconds,
                "since": [row.tolist() for row in self._since],
            }
            probe: dict = getattr(self.probe, "state_dict", dict)()
            save_checkpoint(
                path, self.bare, self.optimizer, self.step, stored, probe, self.identity
            )
        self.accelerator.wait_for_everyone()
        self._clock = self._saved = time.perf_counter()

    def log(self) -> TrainingLog:
        """What has been recorded so far."""
        names = self.norms[0]
        return TrainingLog(
            np.array([row["step"] for row in self.rows]),
            {name: np.array([row[name] for row in self.rows]) for name in CURVES},
            {name: np.array([norms[name] for norms in self.norms]) for name in names},
            {
                **self.settings,
                **{f"{name}_examples": len(examples) for name, examples in self.sets.items()},
                "processes": self.processes,
                "parameters": sum(p.numel() for p in self.bare.parameters()),
            },
        )
