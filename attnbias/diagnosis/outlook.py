"""The words on where training goes, and on what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .words import about, count, iterations, number, some

# A label, "" for a bullet point, and a text.
Lines = Iterator[tuple[str, str]]


def short_lines(report) -> Lines:
    """Where the run from zero is in the end."""
    for run in report.forecast["runs"][:1]:
        if run["off"] is not None:
            off = f"other tokens in {len(run['off'])} of {report.summary['sequences']} sequences"
            where = off if run["off"] else "the optimal token of every sequence"
            error = run["error"]
            close = "" if math.isnan(error) else f"; 1 - cosine with W_mm is then {error:.2g}"
            yield "", f"A run of {iterations(run['steps'])} from W_0 = 0 ends on {where}{close}."


def training_lines(report) -> Lines:
    """What the runs show, the forecast, and the bounds."""
    f = report.forecast
    yield "goal", f"1 - cosine <= {f['target']:g} by NGD at step size {f['step_size']:g}"
    for run in f["rules"]:
        yield run["rule"], f"after {iterations(run['steps'])}: {run['ending']}"
    if report.svm is None:
        yield "runs", "none, as there is no W_mm to turn to"
        return
    if f["runs"]:
        yield "from W_0 = 0", _run_words(f["runs"][0], report.summary["sequences"])
    if drawn := f["runs"][1:]:
        yield "random starts", _starts_words(drawn)
    yield "forecast", _forecast_words(f)
    bound = f"at most {count(f['bound_log'])} iterations"
    if f["bound"] == "conditional":
        bound = f"not proved here; {bound} if every optimal softmax score stays above phi_low"
    if f["bound"] == "none":
        bound = "none, as M1 needs Assumption 2"
        if report.hypotheses["coherence"].holds:
            bound += "; for unequal scores it counts from where all sequences are settled"
    yield "bound (M1)", bound
    largest = report.constants.largest_gd_step_size
    if math.isfinite(largest) and report.hypotheses["assumption2"].holds:
        yield (
            "GD",
            f"a step size of at most {number(largest)} keeps every step as short as Lemma 3 asks; "
            "longer steps may saturate a softmax on a wrong token, where GD hardly moves any more",
        )


def _run_words(run: dict, sequences: int) -> str:
    if not run["steps"]:
        return f"the run ends there: {run['status']}"
    off = run["off"]
    where = f"all {sequences} sequences are"
    if off:
        one = "are" if sequences - len(off) != 1 else "is"
        where = f"{sequences - len(off)} of {sequences} sequences {one}"
    words = f"after {iterations(run['steps'])} {where} on their optimal token"
    words += f" (not: {some([str(i) for i in off])})" if off else ""
    if not math.isnan(run["error"]):
        words += f"; 1 - cosine with W_mm is {run['error']:.2g}"
    if run["selected_error"] is not None:
        words += f", with the W-SVM of the selected tokens {run['selected_error']:.2g}"
    if off:
        words += ", and there it stays" if run["ended"] else ", and the run has not ended there yet"
    return words


def _starts_words(runs: list[dict]) -> str:
    there = [run["iterations"] for run in runs if not math.isnan(run["iterations"])]
    words = f"{len(there)} of {len(runs)} arrive"
    if there:
        least, most = about(min(there)), about(max(there))
        words += f", after about {least}" + (f" to {most}" if most != least else "") + " iterations"
    return f"{words}; each ran {iterations(runs[0]['steps'])} from a W_0 with logit gaps of size 1"


def _forecast_words(f: dict) -> str:
    if f["how"] == "counted":
        return f"{iterations(f['iterations'])} from W_0 = 0, counted in that run"
    if f["how"] == "extrapolated":
        return (
            f"about {about(f['iterations'])} iterations from W_0 = 0, extrapolated from that run "
            "by 1 - cosine ~ 1/t^2"
        )
    if f["how"] == "dual":
        return (
            f"of the order of {about(max(f['iterations'], 2))} iterations from W_0 = 0, if W turns "
            "towards W_mm: an estimate from the dual variables, as no run was made"
            + ("" if f["offset_complete"] else "; constraints outside the support add to it")
        )
    return "none from W_0 = 0: " + (
        "the run has not arrived"
        if f["runs"]
        else "no run was made, and the dual variables of these rows fix no offset"
    )


def next_lines(report) -> tuple[str, ...]:
    """What to do next, in a sentence or two."""
    verdicts = {key: each.holds for key, each in report.hypotheses.items()}
    if not verdicts["optimal"]:
        return (
            "Drop the repeated tokens of the tied sequences, or change u; then diagnose again.",
        )
    if verdicts["feasible"] is None:
        return ("Center or rescale the features, or drop nearly repeated tokens.",)
    if not verdicts["feasible"]:
        places = [f"{b['token']} of {b['sequence']}" for b in report.separation["blocking"]]
        return (
            f"Drop one of the tokens in the way ({some(places)}) or its sequence, give that "
            "sequence another first token, which is its query, or add features. Longer training "
            "does not help.",
        )
    return tuple(_next_of_runs(report.forecast, verdicts))


def _next_of_runs(f: dict, verdicts: dict) -> Iterator[str]:
    arrived = [not math.isnan(run["iterations"]) for run in f["runs"]]
    call = f"NGD({f['step_size']:g})"
    if not arrived:
        yield "Let it run: diagnose(data, steps=2000) says where training goes."
    elif arrived[0] and f["iterations"] > 1e9:
        yield "Take a coarser target, which a run can reach."
    elif arrived[0]:
        plain = int(float(f"{2 * f['iterations'] + 1:.1e}"))
        yield f"Train: train(data, {call}, {plain}) should reach the goal."
    elif f["runs"][0]["ended"]:
        yield (
            "From W_0 = 0 training ends on other tokens. Of trace = train(data, ...) they are "
            "trace.selected, and W turns to solve_w_svm(data, trace.selected). To end on the "
            "optimal ones change u, or add features."
        )
    elif not f["runs"][0]["steps"]:
        yield "Take another step size, with which a run can begin."
    else:
        yield f"Run longer: diagnose(data, steps={10 * max(f['runs'][0]['steps'], 100)})."
    if arrived and not arrived[0] and any(arrived):
        yield f"Or start elsewhere: train(data, {call}, ..., W0=W0) arrives from some random W0."
    if any(arrived) and not all(arrived[1:]):
        yield "From a start of your own, look at trace.selected: not every start arrives."
    longest = f["largest_step_size"]
    if verdicts["assumption1"] and verdicts["assumption2"] and f["step_size"] > longest:
        yield f"Take a step size of at most {number(longest)}, for which convergence is proved."
