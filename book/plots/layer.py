"""The layer as a drawing: one sequence goes in above, and one number comes out below."""

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Polygon, Rectangle

from attnbias import Dataset, token_scores
from attnbias.geometry.tokens import resolve_opt
from attnbias.model import attention_map, predict
from attnbias.plots.theme import COLOURS, FAINT, INK, new_figure, styled

# All lengths are inches. Heights of the stations, down from the tokens:
_SCORES, _TOKENS, _CROSSING, _LOGITS, _SOFTMAX = 0.46, 0.0, -0.58, -1.37, -2.05
_ATTENTION, _MEAN, _DECODER = -2.98, -3.6, -4.15
# From left to right: names, W, the columns of the tokens, and the tokens' way to the mean.
_AT_W, _LEFT, _RIGHT, _AROUND = 0.87, 1.1, 3.18, 3.32
_MIDDLE = (_LEFT + _RIGHT) / 2
_GREY, _TINT = "#555555", 0.22
_HUES = [COLOURS[hue] for hue in ("blue", "vermillion", "green", "purple", "orange", "sky")]
_STAR = {
    "marker": "*",
    "markersize": 13,
    "color": COLOURS["orange"],
    "markeredgecolor": INK,
    "markeredgewidth": 0.7,
    "zorder": 6,
}


@styled
def plot_layer(data: Dataset, W, i=0, formulas=False, scores=False, gaps=False):
    """What the layer does with one sequence: tokens, logits, attention, their mean, the output.

    Bars, and the shares of the mean, are those of the data under W.

    Parameters
    ----------
    data : Dataset
    W : (d, d) tensor
    i : int, optional
        Which sequence.
    formulas : bool, optional
        Fill in each station's formula and its numbers.
    scores : bool, optional
        Fill in the scores of the tokens, and mark the optimal one.
    gaps : bool, optional
        Fill in by how much the optimal token's logit exceeds each other.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDecoderError, TiedTokensError

    Examples
    --------
    >>> import torch
    >>> from attnbias import Dataset
    >>> from book.plots import plot_layer
    >>> data = Dataset([[[1.0, 0], [0, 1]]], [1], u=[1.0, -1])
    >>> fig = plot_layer(data, torch.zeros(2, 2), formulas=True)
    >>> [words.get_text() for words in fig.axes[0].texts][-1]
    '$\\\\Phi$ = 0'
    """
    W = torch.as_tensor(W, dtype=data.X.dtype)
    top = _TOKENS + (0.66 if scores else 0.34)
    bottom = _DECODER - 0.2
    fig = new_figure((3.6, top - bottom + 0.1))
    opt = int(resolve_opt(data, None)[i]) if scores or gaps else None
    layer = _Layer(fig.subplots(), data.X[i][data.mask[i]], W, formulas, opt)
    layer.draw_tokens()
    if scores:
        layer.draw_scores(token_scores(data)[i].tolist())
    layer.draw_query()
    zero, unit = layer.draw_logits()
    if gaps:
        layer.draw_gaps(zero, unit)
    layer.draw_attention()
    layer.draw_mean()
    layer.draw_decoder(data.u)
    layer.axis.set(xlim=(-0.02, 3.48), ylim=(bottom, top), aspect="equal")
    layer.axis.set_axis_off()
    return fig


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:g}".replace("-", "\N{MINUS SIGN}")


def _point(vector) -> str:
    return f"({', '.join(map(_number, vector.tolist()))})"


@dataclass
class _Layer:
    """The drawing of one sequence, a method for each station."""

    axis: Axes
    X: torch.Tensor  # (T, d)
    W: torch.Tensor
    formulas: bool
    opt: int | None  # the token that is marked

    def __post_init__(self):
        pitch = (_RIGHT - _LEFT) / len(self.X)
        places = [_LEFT + pitch * (token + 0.5) for token in range(len(self.X))]
        self.columns = [(x, _HUES[k % len(_HUES)]) for k, x in enumerate(places)]
        self.wide = min(0.92 * pitch, 0.62)
        self.points = self.formulas and self.X.shape[1] == 2  # coordinates have room
        self.logits = (self.X @ self.W @ self.X[0]).tolist()
        self.attention = attention_map(self.X[None], self.W)[0].tolist()

    def draw_tokens(self):
        self._name(_TOKENS, "tokens", r"$x_1, \dots, x_T$" if self.formulas else "a sequence")
        for k, (x, hue) in enumerate(self.columns):
            self._box(x, _TOKENS, self.wide, 0.42, facecolor=hue, alpha=_TINT, edgecolor="none")
            self._box(x, _TOKENS, self.wide, 0.42, facecolor="none", edgecolor=hue, linewidth=1.8)
            self._words(x, _TOKENS + 0.09 * self.points, f"$x_{{{k + 1}}}$")
            if self.points:
                self._words(x, _TOKENS - 0.09, _point(self.X[k]), fontsize=9)
        if self.opt is not None:
            self._star(_TOKENS + 0.2)
            self.axis.plot(0.06, _TOKENS - 0.28, **_STAR)
            self._words(0.18, _TOKENS - 0.28, "optimal", ha="left", color=_GREY)

    def draw_scores(self, scores):
        self._name(_SCORES, "scores", r"$y\, u^\top x_\tau$")
        for k, (x, hue) in enumerate(self.columns):
            weight = "bold" if k == self.opt else "normal"
            self._words(x, _SCORES, _number(scores[k]), fontsize=10.5, weight=weight)
            self.axis.plot([x, x], [_TOKENS + 0.24, _SCORES - 0.1], ":", color=hue, linewidth=1.2)

    def draw_query(self):
        """From the first token through W, across the ways of all tokens."""
        self._name(_CROSSING, "matrix", "is trained")
        places = [x for x, _ in self.columns]
        for x, hue in self.columns:
            self._arrow((x, _TOKENS - 0.22), (x, _LOGITS + 0.45), color=hue, linewidth=1.8)
        side = [places[0] - self.wide / 2, _AT_W]
        self.axis.plot(side, [_TOKENS] * 2, color=INK, linewidth=1.5)
        self._arrow((_AT_W, _TOKENS), (_AT_W, _CROSSING + 0.15), color=INK, linewidth=1.5)
        self._words(_AT_W + 0.05, (_TOKENS + _CROSSING) / 2 - 0.02, "query", ha="left", color=_GREY)
        self.axis.plot([_AT_W, places[-1]], [_CROSSING] * 2, color=INK, linewidth=1.5)
        self._box(_AT_W, _CROSSING, 0.3, 0.3, facecolor=INK)
        self._words(_AT_W, _CROSSING, "$W$", color="white", fontsize=11)
        ring = {"markerfacecolor": "white", "markeredgecolor": INK, "markeredgewidth": 1.3}
        crossings = [_CROSSING] * len(places)
        self.axis.plot(places, crossings, "o", markersize=10, zorder=4, **ring)
        self.axis.plot(places, crossings, "o", markersize=3.2, color=INK, zorder=5)
        if self.formulas and len(places) > 1:
            self._words((places[0] + places[1]) / 2, _CROSSING + 0.1, "$W x_1$")

    def draw_logits(self):
        """Bars from zero; where zero is, and how long a bar of one is."""
        self._name(_LOGITS, "logits", r"$x_\tau^\top W x_1$" if self.formulas else "dot products")
        low, high = min(0.0, *self.logits), max(0.0, *self.logits)
        unit = 0.5 / (high - low or 1.0)
        zero = _LOGITS - 0.2 - low * unit
        self.axis.plot([_LEFT, _RIGHT], [zero] * 2, color=FAINT, linewidth=0.8)
        for (x, hue), logit in zip(self.columns, self.logits, strict=True):
            end = zero + logit * unit
            self._bar(x - self.wide / 4, zero, self.wide / 2, end - zero, hue)
            if self.formulas:
                self._words(x, end + (0.09 if logit >= 0 else -0.09), _number(logit))
            self._arrow((x, _LOGITS - 0.4), (x, _SOFTMAX + 0.15), color=hue)
        self._box(_MIDDLE, _SOFTMAX, _RIGHT - _LEFT, 0.3)
        exponential = r"softmax  $e^{\,\mathrm{logit}}$ / sum of all"
        self._words(_MIDDLE, _SOFTMAX, exponential if self.formulas else "softmax: positive, sum 1")
        return zero, unit

    def draw_gaps(self, zero, unit):
        best = zero + self.logits[self.opt] * unit
        self._words(0, _LOGITS - 0.28, r"gaps $\geq 1$", ha="left", color=_GREY)
        self.axis.plot([_LEFT, _RIGHT], [best] * 2, "--", color=INK, linewidth=1)
        for k, (x, _) in enumerate(self.columns):
            if k != self.opt:
                level, side = zero + self.logits[k] * unit, x + self.wide / 4 + 0.07
                self.axis.plot([x, side + 0.04], [level] * 2, color=INK, linewidth=1)
                self._arrow((side, level), (side, best), arrowstyle="<|-|>", color=INK)
                gap = _number(self.logits[self.opt] - self.logits[k])
                self._words(side - 0.05, best - 0.12, f"gap {gap}", ha="right")

    def draw_attention(self):
        weights = r"$\varphi_\tau$, sum 1" if self.formulas else "weights"
        self._name(_ATTENTION + 0.25, "attention", weights)
        for (x, hue), weight in zip(self.columns, self.attention, strict=True):
            self._arrow((x, _SOFTMAX - 0.15), (x, _ATTENTION + 0.61), color=hue)
            whole = {"facecolor": "none", "edgecolor": "#cccccc", "linewidth": 0.9}
            self._bar(x - self.wide / 2, _ATTENTION, self.wide, 0.6, **whole)
            self._bar(x - self.wide / 2, _ATTENTION, self.wide, 0.6 * weight, hue)
            if self.formulas:
                self._words(x, _ATTENTION - 0.1, _number(weight), zorder=3)
        if self.opt is not None:
            self._star(_ATTENTION + 0.6)

    def draw_mean(self):
        """Each token has a share of the mean as large as its attention."""
        weighted = r"$\Sigma_\tau \varphi_\tau x_\tau$" if self.formulas else "one token"
        self._name(_MEAN, "mean", weighted)
        ends = _LEFT + (_RIGHT - _LEFT) * np.cumsum([0.0, *self.attention])
        for (x, hue), left, right in zip(self.columns, ends, ends[1:], strict=False):
            bar, top = (x - self.wide / 2, x + self.wide / 2), _MEAN + 0.16
            flow = [(bar[0], _ATTENTION), (bar[1], _ATTENTION), (right, top), (left, top)]
            self.axis.add_patch(Polygon(flow, facecolor=hue, alpha=_TINT, linewidth=0))
            self._bar(left, _MEAN - 0.16, right - left, 0.32, hue, alpha=2 * _TINT)
        frame = {"facecolor": "none", "edgecolor": INK, "linewidth": 1.1}
        self._bar(_LEFT, _MEAN - 0.16, _RIGHT - _LEFT, 0.32, **frame)
        if self.points:
            mean = torch.tensor(self.attention, dtype=self.X.dtype) @ self.X
            self._words(_MIDDLE, _MEAN, _point(mean))
        side = self.columns[-1][0] + self.wide / 2
        way = [side, _AROUND, _AROUND], [_TOKENS, _TOKENS, _MEAN]
        self.axis.plot(*way, color=_GREY, linewidth=1.3)
        self._arrow((_AROUND, _MEAN), (_RIGHT + 0.01, _MEAN))
        half_way = (_TOKENS + _MEAN) / 2
        self._words(_AROUND + 0.1, half_way, "the tokens", rotation=90, color=_GREY)

    def draw_decoder(self, u):
        self._name(_DECODER, "decoder", "is fixed")
        output = float(predict(self.X[None], self.W, u)[0])
        x, end = _LEFT + 0.48, _RIGHT - 0.45
        self._arrow((x, _MEAN - 0.16), (x, _DECODER + 0.16))
        self._arrow((x + 0.48, _DECODER), (end - 0.45, _DECODER))
        self._box(x, _DECODER, 0.96, 0.32)
        self._words(x, _DECODER, f"$u$ = {_point(u)}" if self.points else "$u$")
        self._box(end, _DECODER, 0.9, 0.32, facecolor="white", linewidth=2)
        self._words(end, _DECODER, rf"$\Phi$ = {_number(output)}" if self.formulas else "a number")

    def _name(self, y, station, words):
        self._words(0, y + 0.09, station, ha="left", weight="bold", fontsize=10)
        self._words(0, y - 0.09, words, ha="left", color=_GREY)

    def _words(self, x, y, text, **look):
        look = {"ha": "center", "fontsize": 9.5} | look
        self.axis.text(x, y - 0.01, text, va="center", **look)

    def _box(self, x, y, wide, tall, **look):
        look = {"facecolor": "#f1f1f1", "edgecolor": INK, "linewidth": 1.1} | look
        corner, rounded = (x - wide / 2, y - tall / 2), "round,pad=0,rounding_size=0.06"
        self.axis.add_patch(FancyBboxPatch(corner, wide, tall, boxstyle=rounded, **look))

    def _bar(self, left, bottom, wide, tall, hue=None, **look):
        look = {"facecolor": hue, "linewidth": 0} | look
        self.axis.add_patch(Rectangle((left, bottom), wide, tall, **look))

    def _arrow(self, start, end, **look):
        look = {"arrowstyle": "-|>", "color": _GREY, "linewidth": 1.3, "mutation_scale": 9} | look
        self.axis.annotate("", end, start, arrowprops={"shrinkA": 0, "shrinkB": 0} | look)

    def _star(self, y):
        self.axis.plot(self.columns[self.opt][0] - self.wide / 2 + 0.02, y, **_STAR)
