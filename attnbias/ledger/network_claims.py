"""The sentences on trained networks: Section 5 and Appendix C, and what small recorded runs saw.

Nothing here decides: other data, smaller models and a few percent of the paper's epochs, by few
seeds, say neither that a sentence holds nor that it doesn't. Each row gives what was seen.
"""

from __future__ import annotations

from ..experiments.networks.claims import growth, leads
from ..experiments.networks.runs import HALF
from .claim import UNDECIDED, Claim, Finding
from .evidence import Evidence

_LEAD = "SGD's training loss over that of {}, geometric mean along the run"
# Which constant the paper's Polyak step has is lost: 2 is recalled [b], 1/2 that of Loizou et al.
_LABELS = {"SPS": "SPS (c = 2, recalled)", HALF: "SPS (c = 1/2)"}


def span(values) -> str:
    """Smallest to largest, in four digits."""
    return f"{min(values):.4g} to {max(values):.4g}"


def _undecided(result, figure: str, seen: str, needs: str) -> Finding:
    if result is None:
        return Finding(UNDECIDED, note=f"no recorded run: attnbias run {figure} makes one")
    stand_ins = "; ".join(result.substitutes)
    return Finding(UNDECIDED, seen, f"{stand_ins}; would be decided by {needs}")


def _logs(e: Evidence, figure: str):
    """The recorded run, and its logs with those of the other constant where there are some."""
    result, half = e.recorded(figure), e.recorded(figure, "half")
    logs = {} if result is None else result.logs | (half.logs if half else {})
    return result, logs


def compared(figure: str, needs: str):
    """By how much each optimizer is ahead of SGD, seed by seed."""

    def find(e: Evidence) -> Finding:
        result, logs = _logs(e, figure)
        others = [label for label in (*_LABELS, "SNGD", "Adam") if label in logs]
        seen = [f"{_LABELS.get(x, x)} {span(leads(logs, x, 'SGD'))}" for x in others]
        seeds = len(logs.get("SGD", ()))
        words = _LEAD.format("the others") + f", {seeds} seeds: " + ", ".join(seen)
        return _undecided(result, figure, words, needs)

    return find


def last_accuracy(figure: str, needs: str):
    """Test accuracy at the end, by optimizer."""

    def find(e: Evidence) -> Finding:
        result, logs = _logs(e, figure)
        seen = [
            f"{_LABELS.get(label, label)} {span([log['test_accuracy'][-1] for log in found])}"
            for label, found in logs.items()
        ]
        words = "test accuracy at the end by seed: " + ", ".join(seen)
        return _undecided(result, figure, words, needs)

    return find


def norms_grow(figure: str, needs: str):
    """Least growth of a weight matrix, by optimizer."""

    def find(e: Evidence) -> Finding:
        result, logs = _logs(e, figure)
        seen = []
        for label in logs:
            found = [x for name, x in growth(logs, label).items() if ".weight" in name]
            grown = sum(x > 1 for x in found)
            seen.append(f"{_LABELS.get(label, label)} {min(found):.3g} ({grown} of {len(found)})")
        words = "last over first norm, least over matrices and seeds (how many grow in every seed)"
        return _undecided(result, figure, f"{words}: " + ", ".join(seen), needs)

    return find


def _cosines(e: Evidence) -> Finding:
    result = e.recorded("fig10")
    shares = [] if result is None else result.claims
    seen = [
        f"{check.statement.split(': ')[1]} {check.value:.3g}"
        for check in shares
        if check.statement.startswith("a significant fraction")
    ]
    needs = "the embeddings of bert-base-uncased on MultiNLI and CivilComments"
    return _undecided(result, "fig10", "; ".join(seen), needs)


_BERT = "bert-base-uncased on the paper's data over its 10 epochs, with its lost step sizes and "
_BERT += "caps, beside SGD with clipped gradients, a control that is not run here"
_VIT = "the paper's ViT over its {} epochs with its step sizes and caps; SNGD has no cap here"
_MNIST, _CIFAR = _VIT.format(40), _VIT.format(80)

NETWORKS = (
    Claim(
        "fig1",
        "Fine-tuning BERT on MultiNLI, normalised and Polyak steps train significantly faster "
        "than SGD.",
        "Section 5, Fig. 1",
        "chap-figure1",
        "a",
        compared("fig1", _BERT),
        'experiments.load("fig1"',
    ),
    Claim(
        "fig1-test",
        "Fine-tuning BERT on MultiNLI, the optimizers' test dynamics compare like their train "
        "dynamics.",
        "Section 5, Fig. 1",
        "chap-figure1",
        "d",
        last_accuracy("fig1", _BERT),
        'experiments.load("fig1"',
    ),
    Claim(
        "fig4",
        "So they do on CivilComments.",
        "Section 5, Fig. 4",
        "chap-figure4",
        "a",
        compared("fig4", _BERT),
        'experiments.load("fig4"',
    ),
    Claim(
        "fig6-sps",
        "On MNIST Polyak steps train faster than SGD.",
        "Section 5, Appendix C, Fig. 6",
        "chap-figure6",
        "a",
        compared("fig6", _MNIST),
        'experiments.load("fig6"',
    ),
    Claim(
        "fig6-sngd",
        "On MNIST normalised steps train slower than SGD.",
        "Section 5, Appendix C, Fig. 6",
        "chap-figure6",
        "a",
        compared("fig6", _MNIST),
        'experiments.load("fig6"',
    ),
    Claim(
        "adam-vision",
        "On vision data there is no significant gap between Adam and SGD.",
        "Section 5, Appendix C, Fig. 6",
        "chap-figure6",
        "a",
        compared("fig6", _MNIST),
        'experiments.load("fig6"',
    ),
    Claim(
        "fig7-sps",
        "On CIFAR-10 Polyak steps train faster than SGD.",
        "Section 5, Appendix C, Fig. 7",
        "chap-figure7",
        "a",
        compared("fig7", _CIFAR),
        'experiments.load("fig7"',
    ),
    Claim(
        "fig7-sngd",
        "On CIFAR-10 normalised steps train slower than SGD.",
        "Section 5, Appendix C, Fig. 7",
        "chap-figure7",
        "a",
        compared("fig7", _CIFAR),
        'experiments.load("fig7"',
    ),
    Claim(
        "fig7-norms",
        "The norms of the layers of the ViT grow.",
        "Appendix C, Fig. 7",
        "chap-figure7",
        "a",
        norms_grow("fig7", _CIFAR),
        'experiments.load("fig7"',
    ),
    Claim(
        "fig10",
        "A significant fraction of the cosines between a sentence's token embeddings is near 0.",
        "Appendix C.3, Fig. 10",
        "chap-figure10",
        "a",
        _cosines,
        'experiments.load("fig10"',
    ),
)
