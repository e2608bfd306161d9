"""What the records say to someone who trains networks: four lines, each number from a record.

`python -m book.advice` prints them for the README, from which the book's pages include them.
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
# Without a search [d]: Adam's lr is a value of BERT's authors [b], else torch's default; the other
# two, among those of every search, have the smallest loss at worst, in multiples of its best.
BERT, VIT, CLIPPED_LR, CAP = "3e-05", "0.001", "0.3", "0.3"

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
    """By comparison, the last loss without a search over the lowest of any rule at any lr, medians
    over the seeds.
    """
    rows = {}
    for name, each in results.items():
        lowest = min(min(losses.values()) for losses in each.grid.values())
        lr = {
            "Adam": BERT if name in ("SNLI", "comments") else VIT,
            CLIPPED: CLIPPED_LR,
            "SPS": CAP,
        }
        rows[name] = {rule: each.grid[rule][value] / lowest for rule, value in lr.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def span(values: Iterable[float], digits: int = 2) -> str:
    """The smallest and the largest, or one number where they are the same to these digits."""
    values = [*values]
    low, high = (f"{end:z.{digits}f}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def help_line(results: Results) -> str:
    lead = {rule: len(ahead(results, rule, CLIPPED)) for rule in RULES}
    lag = {rule: len(ahead(results, CLIPPED, rule)) for rule in RULES}
    over = [len(ahead(results, rule, "SGD")) for rule in RULES]
    more = [words for rule, words in RULES.items() if lead[rule] > lag[rule]]
    return (
        f"**Do SNGD and SPS help?** {' and '.join(more) or 'No'} more than gradient clipping at "
        f"norm 1. Tuned, SNGD, SPS with c = 2 and with c = 1/2 are ahead of clipped SGD in "
        f"{', '.join(map(str, lead.values()))} of {len(results)} comparisons, behind it in "
        f"{', '.join(map(str, lag.values()))}; ahead of SGD in {', '.join(map(str, over))}, "
        f"clipped SGD in {len(ahead(results, CLIPPED, 'SGD'))}."
    )


def tuned_line(results: Results) -> str:
    found, behind = ahead(results, "Adam", CLIPPED), ahead(results, CLIPPED, "Adam")
    reach = f" ({span(np.concatenate([*found.values()]))} times)" if found else ""
    return (
        f"**And Adam?** Tuned, it is ahead of clipped SGD in {len(found)} of {len(results)}"
        f"{reach}, behind it in {len(behind)}."
    )


def untuned_line(results: Results) -> str:
    adam, clipped, sps = (f"{round_up(worst, 2):.2f}" for worst in untuned(results).max())
    bert = f"{float(BERT):g}".replace("e-0", "e-")
    return (
        f"**Untuned?** Adam, at {bert} for BERT or {VIT} for a ViT: its last loss is at most "
        f"{adam} times the lowest of all rules and lr. Clipped SGD at {CLIPPED_LR} comes to "
        f"{clipped} times, SPS at c = 2 and cap {CAP}, its defaults, to {sps}; both {CAP} were "
        f"chosen on these runs."
    )


def beside_sgd(times: Mapping[str, float]) -> tuple[list[float], list[float]]:
    """Times of a step of SNGD and SPS over SGD's, without momentum and with it."""
    found = {name: value for name, value in times.items() if " / SGD, " in name}
    plain, heavy = ([v for k, v in found.items() if ("momentum" in k) is m] for m in (False, True))
    return plain, heavy


def cost_line(times: Mapping[str, float]) -> str:
    plain, heavy = beside_sgd(times)
    return (
        f"**The cost?** A step, without the passes through the network, takes {span(plain)} times "
        f"as long as SGD's on a CPU, {span(heavy)} times with momentum."
    )


def runs_line(results: Results) -> str:
    logs = [each.logs["SGD"][0] for each in results.values()]
    steps = [log.step[-1] for log in logs]
    seeds = [len(each.seeds) for each in results.values()]
    tried = [len(losses) for each in results.values() for losses in each.grid.values()]
    sizes = [f"{log.meta['parameters'] / 1e6:.2g}" for log in logs]
    return (
        f"Ahead: by a factor of {FASTER} in training loss, on average over the run, in every seed. "
        f"Tuned: the best of {min(tried)} to {max(tried)} lr. Short runs ({min(steps)} to "
        f"{max(steps):,} steps, {min(seeds)} to {max(seeds)} seeds): MiniLM ({sizes[0]} million "
        f"weights) on SNLI and on comments, ViTs on MNIST ({sizes[2]} and {sizes[4]} million) and "
        f"CIFAR-10 ({sizes[3]})."
    )


def lines(results: Results | None = None, times: Mapping[str, float] | None = None) -> list[str]:
    """The four lines, and what was run."""
    results, times = results or recorded(), times or timed()
    said = (each(results) for each in (help_line, tuned_line, untuned_line))
    return [*said, cost_line(times), runs_line(results)]


if __name__ == "__main__":
    *questions, runs = lines()
    print(*(fill(f"* {line}", 120, subsequent_indent="  ") for line in questions), sep="\n")
    print("", fill(runs, 120), sep="\n")
