"""Claims of our own on the margins that optimizers come nearest to."""

import functools

import torch

from attnbias import Check
from attnbias.beyond.optimizers.margins import FAMILY, family
from attnbias.beyond.optimizers.measure import draw_tokens, optimizer_margins
from book.studies.optimizers import PREDICTED, measured

from ..claim import Section, refuted
from ..seeds import SEEDS

claim = Section("Beyond the paper", 275, source="ours", chapter="chap-optimizer-atlas")

ALONG = PREDICTED["frobenius"].split()
SIGNS = ("signsgd", "tiger")


@functools.cache
def table_shares(seeds: range) -> dict[str, dict[str, float]]:
    """The shares of the table of these data sets, by optimizer; without shares all are 0."""
    none = dict.fromkeys(("frobenius", "max", "spectral", "nuclear"), 0.0)
    return {name: each.shares or none for name, each in measured(seeds[0] // 1000).items()}


def _exchanged(one: str, other: str):
    """The same table with two norms in each other's place."""

    def change(shares: dict) -> dict:
        return {name: each | {one: each[other], other: each[one]} for name, each in shares.items()}

    return change


@claim("d", "tables = {seed: table(seed) for seed in TABLES}")
@refuted("Frobenius and max norm change places", table_shares=_exchanged("frobenius", "max"))
@refuted(
    "Frobenius and spectral norm change places", table_shares=_exchanged("frobenius", "spectral")
)
def named_families(e):
    """Of twenty optimizers that step along the gradient or its averages at least fifteen have the
    Frobenius norm as their family, and none another; of three that take signs signSGD and Tiger
    come within a tenth of the max norm's largest margin, and Lion, which remembers longest, does
    not."""
    shares = e.run(table_shares, SEEDS["named-families"].fresh)
    found = [family(shares[name]) for name in ALONG]
    yield Check("of twenty along the gradient, Frobenius", found.count("frobenius"), 15, ">=")
    others = sum(norm not in ("frobenius", None) for norm in found)
    yield Check("of twenty along the gradient, another family", others, 0)
    for name in SIGNS:
        yield Check(f"share of the max norm, {name}", shares[name]["max"], FAMILY, ">=")
    yield Check("share of the max norm, Lion", shares["lion"]["max"], FAMILY)
    return "five data sets of the second table, defaults but for the step size"


@functools.cache
def adam_shares(seed: int) -> dict[float, float]:
    """Adam's share of the max norm's margin after 1,000 steps, by its memory of squares."""
    tokens, found = draw_tokens(seed, count=1), {}
    for beta in (0.95, 0.999):
        make = functools.partial(torch.optim.Adam, eps=1e-100, betas=(0.9, beta))
        found[beta] = optimizer_margins(make, tokens, steps=(1000, 1000)).shares["max"]
    return found


@claim("d", "found = {name: optimizer_margins(rule, tokens, steps=(1000, 1000))")
@refuted(
    "memories change places",
    adam_shares=lambda found: dict(zip(found, reversed(found.values()), strict=True)),
)
@refuted("memory makes no difference", adam_shares=lambda found: found | {0.95: found[0.999]})
def adam_memory(e):
    """Without epsilon, Adam that remembers squares by 0.95 comes nearer to the max norm's largest
    margin than by 0.999, by at least a tenth of it, after 1,000 steps of the size that lowers the
    loss most in 400."""
    for seed in SEEDS["adam-memory"].fresh:
        found = e.run(adam_shares, seed)
        words = "share of the max norm, memory 0.95 less 0.999"
        yield Check(words, found[0.95] - found[0.999], 0.1, ">=")
    return "five data sets of five sequences"
