"""What the records say to someone who trains networks: four lines, each number from a record.

They stand on the first page, at the head of the part on real networks and, as
`python -m book.advice` prints them, in the README.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import fill

import numpy as np
import pandas as pd

from attnbias import experiments
from attnbias.experiments import ExperimentResult
from attnbias.experiments.claims.networks import CLIPPED, FASTER, HALF, leads
from benchmarks.record import read
from book.rounding import round_up

RESULTS = Path(__file__).parent / "results"
RECORDS = {
    "SNLI": "fig1",
    "comments": "fig4",
    "MNIST": "fig6",
    "CIFAR-10": "fig7",
    "MNIST, usual ViT": "usual/fig6",
}
RULES = {"SNGD": "SNGD", "SPS": "SPS with c = 2", HALF: "SPS with c = 1/2"}
DEFAULT_CAP, DEFAULT_LR = "0.3", "0.001"  # of `SPS`, and of torch's Adam
# What one takes without a search [d]: a value of BERT's authors, else torch's default.
USUAL = {"SNLI": "3e-05", "comments": "3e-05"}

Results = Mapping[str, ExperimentResult]


def recorded() -> dict[str, ExperimentResult]:
    """The five comparisons, by name."""
    paths = {name: RESULTS / place for name, place in RECORDS.items()}
    return {name: experiments.load(path.name, path.parent) for name, path in paths.items()}


def timed() -> dict[str, float]:
    """Times of a step over those of another optimizer's, by name."""
    return {row["name"]: row["value"] for row in read(RESULTS / "bench.json")["optimizers"]["rows"]}


def ahead(results: Results, rule: str, behind: str) -> dict[str, np.ndarray]:
    """The leads by seed, of the comparisons in which each reaches the threshold."""
    found = {name: leads(each.logs, rule, behind) for name, each in results.items()}
    return {name: lead for name, lead in found.items() if lead.min() >= FASTER}


def untuned(results: Results) -> pd.DataFrame:
    """By comparison, how many seeds Adam at its usual lr ends below SPS at its defaults, of how
    many; and losses at a default over those at the best value, medians over the seeds.
    """
    rows = {}
    for name, each in results.items():
        adam = np.array(each.losses["Adam"][USUAL.get(name, DEFAULT_LR)])
        sps = np.array(each.losses["SPS"][DEFAULT_CAP])
        rows[name] = {"Adam below SPS": int((adam < sps).sum()), "of": len(adam)}
        for rule, value in (("SPS", DEFAULT_CAP), ("Adam", DEFAULT_LR)):
            grid = each.grid[rule]
            rows[name][f"{rule} {value}"] = grid[value] / min(grid.values())
    return pd.DataFrame.from_dict(rows, orient="index")


def span(values: Iterable[float]) -> str:
    values = [*values]
    return f"{min(values):.2f} to {max(values):.2f}"


def help_line(results: Results) -> str:
    more = [
        f"{words} on {name} ({span(lead)} times)"
        for rule, words in RULES.items()
        for name, lead in ahead(results, rule, CLIPPED).items()
    ]
    over = [str(len(ahead(results, rule, "SGD"))) for rule in (*RULES, CLIPPED)]
    under = [str(len(ahead(results, CLIPPED, rule))) for rule in RULES]
    return (
        "**Do SNGD and SPS help?** No more than gradient clipping does"
        + (f", but for {' and '.join(more)}" if more else "")
        + f". In every seed, by {FASTER - 1:.0%} or more, SNGD, SPS with c = 2 and with c = 1/2 "
        f"are ahead of SGD in {', '.join(over[:-1])} of {len(results)} comparisons, clipped SGD in "
        f"{over[-1]}; behind clipped SGD they are in {', '.join(under)}."
    )


def tuned_line(results: Results) -> str:
    found = ahead(results, "Adam", CLIPPED)
    reach = f", {span(np.concatenate([*found.values()]))} times" if found else ""
    return (
        f"**With a tuned lr?** Adam is ahead of clipped SGD in {len(found)} of "
        f"{len(results)} comparisons{reach}."
    )


def untuned_line(results: Results) -> str:
    table = untuned(results)
    below = (table["Adam below SPS"] == table["of"]).sum()
    above = (table["Adam below SPS"] == 0).sum()
    sps, adam = table[f"SPS {DEFAULT_CAP}"], table[f"Adam {DEFAULT_LR}"]
    usual = f"{float(USUAL['SNLI']):g} for BERT, {DEFAULT_LR} for a ViT".replace("e-0", "e-")
    return (
        f"**Untuned?** Adam at a usual lr ({usual}) ends below SPS at its defaults, c = 2 and "
        f"cap {DEFAULT_CAP}, in every seed in {below} of {len(table)}, and above it in "
        f"{above or 'none'}. With no usual lr take SPS: its last loss is at most "
        f"{round_up(sps.max(), 2):.2f} times that at its best cap, Adam's at {DEFAULT_LR} up to "
        f"{round_up(adam.max(), 2):.2f} times that at its best lr."
    )


def beside_sgd(times: Mapping[str, float]) -> tuple[list[float], list[float]]:
    """Times of a step of SNGD and SPS over SGD's, without momentum and with it."""
    found = {name: value for name, value in times.items() if " / SGD, " in name}
    plain, heavy = ([v for k, v in found.items() if ("momentum" in k) is m] for m in (False, True))
    return plain, heavy


def cost_line(times: Mapping[str, float]) -> str:
    plain, heavy = beside_sgd(times)
    return (
        f"**What do they cost?** A step takes {span(plain)} times as long as SGD's, and "
        f"{span(heavy)} times with momentum; SPS also needs the loss."
    )


def lines(results: Results | None = None, times: Mapping[str, float] | None = None) -> list[str]:
    """The four lines, and what was run."""
    results, times = results or recorded(), times or timed()
    seeds = [len(each.seeds) for each in results.values()]
    assert all(each.substitutes for each in results.values())
    return [
        help_line(results),
        tuned_line(results),
        untuned_line(results),
        cost_line(times),
        f"Ahead: by the ratio of training losses, a mean over the run. The runs are short, on a "
        f"CPU, with substitutes for data and models, {min(seeds)} to {max(seeds)} seeds each: "
        f"MiniLM on SNLI and on Wikipedia comments with tweets, small ViTs on MNIST and CIFAR-10, "
        f"the usual ViT for one epoch.",
    ]


if __name__ == "__main__":
    *questions, runs = lines()
    print(*(fill(f"* {line}", 120, subsequent_indent="  ") for line in questions), sep="\n")
    print("", fill(runs, 120), sep="\n")
