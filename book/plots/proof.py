"""The proof of Theorem 1 as a map: which statement feeds which."""

from matplotlib.patches import FancyBboxPatch

from attnbias.plots.theme import INK, WIDTH, new_figure, styled

# Place of the middle in inches, heading, and what the statement gives; hypotheses are tinted.
_TALL, _WIDE = 0.64, 2.02
_BOXES = {
    "A1": (3.3, 4.5, "Assumption 1", "tokens nearly orthogonal"),
    "A2": (5.5, 4.5, "Assumption 2", "equal scores"),
    "L2": (1.1, 4.5, "Lemma 2", "a small start is fair"),
    "L3": (2.2, 3.4, "Lemma 3", "attention stays up"),
    "L4": (5.5, 3.4, "Lemma 4", "each step has a part\nalong $W_{mm}$"),
    "L7": (2.2, 2.3, "Lemma 7", "once $\\|W_t\\|$ is large, the\ngradient prefers $W_{mm}$"),
    "L5": (5.5, 2.3, "Lemma 5", "the norm of $W_t$\ngrows like $t$"),
    "T1": (2.2, 1.1, "Theorem 1", "$W_t$ turns to $W_{mm}$"),
    "L1": (5.5, 0.0, "Lemma 1", "attention saturates"),
}
_HYPOTHESES = ("A1", "A2")
_ARROWS = (
    ("L2", "L3"),
    ("A1", "L3"),
    ("A2", "L3"),
    ("A2", "L4"),
    ("L3", "L7"),
    ("L4", "L5"),
    ("L7", "T1"),
    ("L5", "T1"),
    ("L5", "L1"),
    ("T1", "L1"),
)


@styled
def plot_proof_map():
    """The statements in the proof of Theorem 1 and arrows from each to those that use it.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from book.plots import plot_proof_map
    >>> axis = plot_proof_map().axes[0]
    >>> axis.texts[0].get_text()
    'Assumption 1'
    """
    fig = new_figure((WIDTH, 5.4))
    axis = fig.subplots()
    for key, (x, y, heading, words) in _BOXES.items():
        fill = "#dcebf5" if key in _HYPOTHESES else "#f1f1f1"
        tall = _TALL + 0.16 * words.count("\n")
        axis.add_patch(
            FancyBboxPatch(
                (x - _WIDE / 2, y - tall / 2),
                _WIDE,
                tall,
                boxstyle="round,pad=0,rounding_size=0.08",
                facecolor=fill,
                edgecolor=INK,
                linewidth=1,
            )
        )
        axis.text(x, y + tall / 2 - 0.17, heading, ha="center", va="center", weight="bold")
        axis.text(x, y - 0.13, words, ha="center", va="center", fontsize=9.5, linespacing=1.05)
    for start, end in _ARROWS:
        axis.annotate(
            "",
            _edge(end, start),
            _edge(start, end),
            arrowprops={
                "arrowstyle": "-|>",
                "color": INK,
                "linewidth": 1.2,
                "shrinkA": 0,
                "shrinkB": 1,
            },
        )
    axis.set(xlim=(0, 6.6), ylim=(-0.45, 4.95), aspect="equal")
    axis.set_axis_off()
    return fig


def _edge(key: str, other: str) -> tuple[float, float]:
    """Where the arrow between two boxes meets the first: below or above it, towards the other."""
    (x, y, _, words), there = _BOXES[key], _BOXES[other]
    tall = _TALL + 0.16 * words.count("\n")
    toward = min(max((there[0] - x) * 0.25, -0.7), 0.7)
    return x + toward, y + (tall / 2 if there[1] > y else -tall / 2)
