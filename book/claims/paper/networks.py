"""The sentences on trained networks: Section 5 and Appendix C, and what small recorded runs saw.

Nothing here decides: other data, smaller models and a few percent of the paper's epochs, by few
seeds, say neither that a sentence holds nor that it doesn't. Each row gives what was seen.
"""

from collections.abc import Callable

from attnbias.experiments.claims.networks import CLIPPED, HALF, growth, leads

from ..claim import UNDECIDED, Finding, Section, keyed, without_run
from ..evidence import Evidence

claim = Section("Networks", 160)

_LEAD = "training loss of {} over that of {}, geometric mean along the run"
# Which constant the paper's Polyak step has is lost: 2 is recalled [b], 1/2 that of Loizou et al.
_LABELS = {"SPS": "SPS (c = 2, recalled)", HALF: "SPS (c = 1/2)"}


def span(values) -> str:
    """Smallest to largest, in four digits."""
    return f"{min(values):.4g} to {max(values):.4g}"


def _undecided(e: Evidence, figure: str, seen: Callable, needs: str) -> Finding:
    """What a function of the recorded run says of it, beside what would decide."""
    result = e.recorded(figure)
    if result is None:
        return without_run(figure)
    words, stand_ins = seen(result), "; ".join(result.substitutes)
    usual = e.recorded(figure, "usual")  # of a small network's figure, one epoch of the usual one
    if usual is not None:
        words += f"; with the usual network, {usual.settings['steps']} steps: {seen(usual)}"
    return Finding(UNDECIDED, words, f"{stand_ins}; would be decided by {needs}")


def compared(result) -> str:
    """By how much each optimizer is ahead of SGD, and of clipped SGD, seed by seed."""
    logs, words = result.logs, []
    for behind in (x for x in ("SGD", CLIPPED) if x in logs):
        ahead = [x for x in (*_LABELS, "SNGD", CLIPPED, "Adam") if x in logs and x != behind]
        seen = ", ".join(f"{_LABELS.get(x, x)} {span(leads(logs, x, behind))}" for x in ahead)
        words.append(f"{_LEAD.format(behind, 'the others')}, {len(result.seeds)} seeds: {seen}")
    return "; ".join(words)


def last_accuracy(result) -> str:
    """Test accuracy at the end, by optimizer."""
    seen = [
        f"{_LABELS.get(label, label)} {span([log['test_accuracy'][-1] for log in found])}"
        for label, found in result.logs.items()
    ]
    return "test accuracy at the end by seed: " + ", ".join(seen)


def norms_grow(result) -> str:
    """Least growth of a weight matrix, by optimizer."""
    seen = []
    for label in result.logs:
        found = [x for name, x in growth(result.logs, label).items() if ".weight" in name]
        grown = sum(x > 1 for x in found)
        seen.append(f"{_LABELS.get(label, label)} {min(found):.3g} ({grown} of {len(found)})")
    words = "last over first norm, least over matrices and seeds (how many grow in every seed)"
    return f"{words}: " + ", ".join(seen)


def cosines_near_zero(result) -> str:
    """The shares of small cosines, by data."""
    return "; ".join(
        f"{check.statement.split(': ')[1]} {check.value:.3g}"
        for check in keyed(result.claims, "near")
    )


_BERT = "bert-base-uncased on the paper's data over its 10 epochs, with its lost step sizes and "
_BERT += "caps, beside SGD with clipped gradients"
_VIT = "the paper's ViT over its {} epochs with its step sizes and caps"
_CHAPTERS = {
    1: "chap-fine-tuning",
    4: "chap-fine-tuning",
    6: "chap-vision",
    7: "chap-vision",
    10: "chap-head-training",
}
_MNIST, _CIFAR = _VIT.format(40), _VIT.format(80)


def on(number: int, source: str = "Section 5", provenance: str = "a"):
    """A sentence on the recorded runs of that figure."""
    calls = f'experiments.load("fig{number}"'
    return claim(provenance, calls, f"{source}, Fig. {number}", _CHAPTERS[number])


@claim("a", 'experiments.load("fig1"', "Section 5, first sentence", "chap-fine-tuning")
def faster_networks(e):
    """Normalised steps converge faster than SGD on synthetic and real-world data."""
    seen = []
    for number in (1, 4, 6, 7):
        result = e.recorded(f"fig{number}")
        if result is None:
            return without_run(f"fig{number}")
        seen.append(f"Fig. {number} {span(leads(result.logs, 'SNGD', 'SGD'))}")
    return Finding(
        UNDECIDED,
        f"{_LEAD.format('SGD', 'SNGD')}, by seed: {', '.join(seen)}",
        "on synthetic data it holds (Figs. 2 and 9); the paper's own text on Figs. 6 and 7 says "
        "that SNGD trains slower than SGD, so that the sentence is not true of all its figures; on "
        f"networks it would be decided by {_BERT} and {_VIT.format('40 and 80')}",
    )


@on(1)
def fig1(e):
    """Fine-tuning BERT on MultiNLI, normalised and Polyak steps train significantly faster than
    SGD."""
    return _undecided(e, "fig1", compared, _BERT)


@on(1, provenance="d")
def fig1_test(e):
    """Fine-tuning BERT on MultiNLI, the optimizers' test dynamics compare like their train
    dynamics."""
    return _undecided(e, "fig1", last_accuracy, _BERT)


@on(4)
def fig4(e):
    """So they do on CivilComments."""
    return _undecided(e, "fig4", compared, _BERT)


@on(6, "Section 5, Appendix C")
def fig6_sps(e):
    """On MNIST Polyak steps train faster than SGD."""
    return _undecided(e, "fig6", compared, _MNIST)


@on(6, "Section 5, Appendix C")
def fig6_sngd(e):
    """On MNIST normalised steps train slower than SGD."""
    return _undecided(e, "fig6", compared, _MNIST)


@on(6, "Section 5, Appendix C")
def adam_vision(e):
    """On vision data there is no significant gap between Adam and SGD."""
    return _undecided(e, "fig6", compared, _MNIST)


@on(7, "Section 5, Appendix C")
def fig7_sps(e):
    """On CIFAR-10 Polyak steps train faster than SGD."""
    return _undecided(e, "fig7", compared, _CIFAR)


@on(7, "Section 5, Appendix C")
def fig7_sngd(e):
    """On CIFAR-10 normalised steps train slower than SGD."""
    return _undecided(e, "fig7", compared, _CIFAR)


@on(7, "Appendix C")
def fig7_norms(e):
    """The norms of the layers of the ViT grow."""
    return _undecided(e, "fig7", norms_grow, _CIFAR)


@on(10, "Appendix C.3")
def fig10(e):
    """A significant fraction of the cosines between a sentence's token embeddings is near 0."""
    needs = "the embeddings of bert-base-uncased on MultiNLI and CivilComments"
    return _undecided(e, "fig10", cosines_near_zero, needs)
