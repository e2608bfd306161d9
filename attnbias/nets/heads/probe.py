"""What heads do while they train: a callback that records them on fixed inputs.

Each call records every head asked for and solves its W-SVM. Nothing of the model is changed, and
no random number is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from ..._marks import digest
from ..._records import provenance
from ..._validate import require_int, require_type
from ...data._source import translated
from ...errors import InfeasibleError, RangeError, SolverError, TiedTokensError
from .head import STREAM, Head
from .head_trace import HeadTrace
from .inputs import as_inputs, require_any_tokenizer
from .record import Wanted, record_heads

MEASURED = ("entropy", "saturation", "margin", "cosine", "cosine_span", "norm")
KEPT = ("step", "name", "values", "selected", "W", "W_mm", "asked")


class HeadProbe:
    """A function of a model and a step that records its heads on fixed inputs.

    Call it as probe(model, step) in a loop of your own, or give it to `fit`, which calls it at each
    record and keeps it in the checkpoint. `trace()` gives what it has recorded.

    Parameters
    ----------
    inputs, tokenizer, layers, heads, query
        As in `record_heads`. A call solves one W-SVM a head: half a second for 100 sequences of 16
        tokens, a tenth for 50.

    Raises
    ------
    DtypeError, RangeError
        When it is called also: for a step that is not behind the last one, for heads without a
        fixed W, as with rotary positions, for heads of different shapes, and for what
        `record_heads` refuses.
    NonFiniteError
        A weight of a head is no longer finite.

    Notes
    -----
    Source: Section 4 for what is recorded; how it is measured in a network is [d]. The model's
    numbers stay what they are without the probe. Memory: R H d^2 numbers in float32, for R records
    of H heads. A head with a tie, or a W-SVM that can't be solved, has NaN for what needs W_mm.

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets import HeadProbe, vit_small_mnist
    >>> images = torch.rand(6, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    >>> model, probe = vit_small_mnist(size="small"), HeadProbe(images, layers=1)
    >>> probe(model, 0)
    >>> for weight in model.parameters():
    ...     weight.data *= 1.1
    >>> probe(model, 1)
    >>> probe.trace()
    HeadTrace(2 records of 4 heads, steps 0 to 1, n=6)
    """

    def __init__(
        self,
        inputs: Any,
        *,
        tokenizer: Any = None,
        layers: int | Sequence[int] | None = None,
        heads: int | Sequence[int] | None = None,
        query: int | Sequence[int] | Literal["all"] | None = None,
    ) -> None:
        self.inputs = as_inputs(inputs)
        if tokenizer is not None:
            require_any_tokenizer(tokenizer)
        wanted = Wanted(layers, heads, query)  # refuses what can't be asked for
        self._tokenizer = tokenizer
        self._asked = dict(layers=wanted.layers, heads=wanted.heads, query=wanted.query)
        self._kept: dict[str, np.ndarray] = {}

    def __call__(self, model: torch.nn.Module, step: int) -> None:
        """Record the model as it is, after so many steps."""
        before = self._kept.get("step", np.array([-1]))
        step = require_int("step", step, low=0)
        if step <= before[-1]:
            raise RangeError(
                "step",
                expected=f"more than {before[-1]}, the last one recorded",
                got=str(step),
                remedy="make a new probe for another run",
            )
        heads = list(record_heads(model, self.inputs, tokenizer=self._tokenizer, **self._asked))
        other = next((head for head in heads if head.space != STREAM), None)
        if other is not None:
            raise RangeError(
                "model",
                expected="heads with a W of their own, in the residual stream",
                got=f"{other!r}, whose W is made anew for its tokens",
                remedy="record single steps: record_heads(model, inputs)",
            )
        shapes = {f"a W {tuple(head.W.shape)}" for head in heads}
        if len(shapes) > 1:
            raise RangeError(
                "layers",
                expected="layers whose heads are of one shape",
                got=" and ".join(sorted(shapes)),
                remedy="give each shape a probe of its own: layers=...",
            )
        found = [_measured(head) for head in heads]
        self._keep(step, heads, *zip(*found, strict=True))

    def _keep(self, step: int, heads, values, selected, W_mm) -> None:
        new = {
            "step": np.array([step]),
            "values": np.array(values)[None],
            "selected": np.stack(selected)[None],
            "W": np.stack([head.W.float().numpy() for head in heads])[None],
        }
        joined = (
            {k: np.concatenate([self._kept[k], v]) for k, v in new.items()} if self._kept else new
        )
        name = np.array([(head.layer, head.head, head.query) for head in heads])
        self._kept = {**joined, "name": name, "W_mm": np.stack(W_mm)}

    def trace(self) -> HeadTrace:
        """What is recorded so far; the selection "at the end" is that of the last record.

        Raises
        ------
        RangeError
            Nothing is.
        """
        if not self._kept:
            raise RangeError(
                "probe",
                expected="at least one record",
                got="none",
                remedy="call probe(model, step)",
            )
        kept, W = self._kept, self._kept["W"].astype(float)
        series = dict(zip(MEASURED, np.moveaxis(kept["values"], 2, 0), strict=True))
        moved = np.linalg.norm(np.diff(W, axis=0, prepend=W[:1]), axis=(2, 3))
        series["path"] = moved.cumsum(axis=0)
        norms = np.linalg.norm(W, axis=(2, 3)) * np.linalg.norm(kept["W_mm"], axis=(1, 2))
        series["cosine_end"] = np.einsum("rhij,hij->rh", W, kept["W_mm"]) / norms
        series["kept"] = (kept["selected"] == kept["selected"][-1]).mean(axis=2)
        meta = {"provenance": provenance()}
        layer, head, query = kept["name"].T
        return HeadTrace(kept["step"], layer, head, query, series, kept["selected"], meta)

    def _known_by(self) -> np.ndarray:
        """A checksum of the inputs and of what is asked of them, as bytes."""
        return np.frombuffer(digest([self.inputs, self._asked]).encode(), np.uint8)

    def state_dict(self) -> dict[str, np.ndarray]:
        """All that is recorded, as arrays, for a checkpoint."""
        return self._kept | {"asked": self._known_by()} if self._kept else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on behind what `state_dict` gave.

        Raises
        ------
        FileFormatError
        """
        require_type("state", state, dict, "what state_dict gave", "take it from a checkpoint")
        with translated("state", "what HeadProbe.state_dict gave", "start the run again"):
            if state and set(state) != set(KEPT):
                raise ValueError("other entries")
            kept = {key: np.asarray(value) for key, value in state.items()}
            if kept and not np.array_equal(kept.pop("asked"), self._known_by()):
                raise ValueError("a probe of other inputs, layers, heads or queries")
            self._kept = kept


def _measured(head: Head) -> tuple[list[float], np.ndarray, np.ndarray]:
    """The numbers in `MEASURED`, where the selected tokens stand, and W_mm."""
    weights = head.logits.softmax(dim=1)
    top = weights.max(dim=1)
    entropy = float(torch.special.entr(weights).sum(dim=1).mean())
    positions: Any = head.positions
    selected = positions[torch.arange(len(head.X)), top.indices].numpy()
    margin = cosine = inside = np.nan
    W_mm = np.full(head.W.shape, np.nan)
    try:
        found = head.compare()
        margin, cosine, inside = found.margin / found.svm.margin, found.cosine, found.cosine_span
        W_mm = found.svm.weights.numpy()
    except (TiedTokensError, InfeasibleError, SolverError):
        pass  # a tie, or next to one: the training goes on
    numbers = [entropy, float(top.values.mean()), margin, cosine, inside, float(head.W.norm())]
    return numbers, selected, W_mm
