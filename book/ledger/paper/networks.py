"""The sentences on trained networks: Section 5 and Appendix C, and what small recorded runs saw.

Nothing here decides: other data, smaller models and a few percent of the paper's epochs, by few
seeds, say neither that a sentence holds nor that it doesn't. Each row gives what was seen.
"""

from attnbias.experiments.networks.claims import CLIPPED, HALF, growth, leads

from ..claim import UNDECIDED, Finding, Section
from ..evidence import Evidence

claim = Section("Networks", 160)

_LEAD = "training loss of {} over that of {}, geometric mean along the run"
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


def compared(e: Evidence, figure: str, needs: str) -> Finding:
    """By how much each optimizer is ahead of SGD, seed by seed."""
    result, logs = _logs(e, figure)
    seeds, words = len(logs.get("SGD", ())), []
    for behind in ("SGD", CLIPPED):
        ahead = [x for x in (*_LABELS, "SNGD", CLIPPED, "Adam") if x in logs and x != behind]
        if behind in logs:
            seen = ", ".join(f"{_LABELS.get(x, x)} {span(leads(logs, x, behind))}" for x in ahead)
            words.append(f"{_LEAD.format(behind, 'the others')}, {seeds} seeds: {seen}")
    words = "; ".join(words)
    return _undecided(result, figure, words, needs)


def last_accuracy(e: Evidence, figure: str, needs: str) -> Finding:
    """Test accuracy at the end, by optimizer."""
    result, logs = _logs(e, figure)
    seen = [
        f"{_LABELS.get(label, label)} {span([log['test_accuracy'][-1] for log in found])}"
        for label, found in logs.items()
    ]
    words = "test accuracy at the end by seed: " + ", ".join(seen)
    return _undecided(result, figure, words, needs)


def norms_grow(e: Evidence, figure: str, needs: str) -> Finding:
    """Least growth of a weight matrix, by optimizer."""
    result, logs = _logs(e, figure)
    seen = []
    for label in logs:
        found = [x for name, x in growth(logs, label).items() if ".weight" in name]
        grown = sum(x > 1 for x in found)
        seen.append(f"{_LABELS.get(label, label)} {min(found):.3g} ({grown} of {len(found)})")
    words = "last over first norm, least over matrices and seeds (how many grow in every seed)"
    return _undecided(result, figure, f"{words}: " + ", ".join(seen), needs)


_BERT = "bert-base-uncased on the paper's data over its 10 epochs, with its lost step sizes and "
_BERT += "caps, beside SGD with clipped gradients"
_VIT = "the paper's ViT over its {} epochs with its step sizes and caps; SNGD has no cap here"
_CHAPTERS = {1: "chap-fine-tuning", 4: "chap-fine-tuning", 6: "chap-vision", 7: "chap-vision",
             10: "chap-figure10"}  # fmt: skip
_MNIST, _CIFAR = _VIT.format(40), _VIT.format(80)


def on(number: int, source: str = "Section 5", provenance: str = "a"):
    """A sentence on the recorded runs of that figure."""
    calls = f'experiments.load("fig{number}"'
    return claim(provenance, calls, f"{source}, Fig. {number}", _CHAPTERS[number])


@on(1)
def fig1(e):
    """Fine-tuning BERT on MultiNLI, normalised and Polyak steps train significantly faster than
    SGD."""
    return compared(e, "fig1", _BERT)


@on(1, provenance="d")
def fig1_test(e):
    """Fine-tuning BERT on MultiNLI, the optimizers' test dynamics compare like their train
    dynamics."""
    return last_accuracy(e, "fig1", _BERT)


@on(4)
def fig4(e):
    """So they do on CivilComments."""
    return compared(e, "fig4", _BERT)


@on(6, "Section 5, Appendix C")
def fig6_sps(e):
    """On MNIST Polyak steps train faster than SGD."""
    return compared(e, "fig6", _MNIST)


@on(6, "Section 5, Appendix C")
def fig6_sngd(e):
    """On MNIST normalised steps train slower than SGD."""
    return compared(e, "fig6", _MNIST)


@on(6, "Section 5, Appendix C")
def adam_vision(e):
    """On vision data there is no significant gap between Adam and SGD."""
    return compared(e, "fig6", _MNIST)


@on(7, "Section 5, Appendix C")
def fig7_sps(e):
    """On CIFAR-10 Polyak steps train faster than SGD."""
    return compared(e, "fig7", _CIFAR)


@on(7, "Section 5, Appendix C")
def fig7_sngd(e):
    """On CIFAR-10 normalised steps train slower than SGD."""
    return compared(e, "fig7", _CIFAR)


@on(7, "Appendix C")
def fig7_norms(e):
    """The norms of the layers of the ViT grow."""
    return norms_grow(e, "fig7", _CIFAR)


@on(10, "Appendix C.3")
def fig10(e):
    """A significant fraction of the cosines between a sentence's token embeddings is near 0."""
    result = e.recorded("fig10")
    shares = [] if result is None else result.claims
    seen = [
        f"{check.statement.split(': ')[1]} {check.value:.3g}"
        for check in shares
        if check.statement.startswith("a significant fraction")
    ]
    needs = "the embeddings of bert-base-uncased on MultiNLI and CivilComments"
    return _undecided(result, "fig10", "; ".join(seen), needs)
