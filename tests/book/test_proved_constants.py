"""The constants that Rocq has checked are those that the library evaluates.

Each constant is read by name from the text of `proofs/Spec.v`, turned into a Python expression, and
compared with what the library makes of tokens whose limits are all finite.
"""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rocq_source import Spec, named, without_comments

from attnbias import NGD, Dataset, check_assumption1, solve_w_svm, train
from attnbias.geometry.coherence import coherence_table, token_coherence
from attnbias.geometry.constants import token_constants
from attnbias.theorems import check_fast_rate
from attnbias.theorems.run import TraceView
from attnbias.theorems.sharper.fast_rate import FLICKER, last_decade, least_lean, offset_before
from attnbias.theorems.sharper.lower_bounds import norm_outside

SPEC = Spec().text
# The same sums of a few hundred products, in another order.
SAME = 1e-9
NUMBER = re.compile(r"\b\d+\b")

# name of the constant: name of the definition or of the field of a record in Spec.v, and where in
# it the expression stands
PIECES = {
    "C1": ("C1", r"-> (eps i <= .+)$"),
    "C2": ("C2", r": (.+)$"),
    "C3": ("C3", r": (.+)$"),
    "f, no gap negative": ("H3", r"e0 = 0 /\\ f = (.+?)\)"),
    "f, a gap negative": ("H3", r"0 <= e0 /\\ f = (.+?) /\\"),
    "H3": ("H3", r"-> (exp e0 .+?)\)\)$"),
    "rho": ("psi", r":= (.+)\.$"),
    "S_1": ("LargeLog", r"-> (ln .+) <= Lam\.$"),
    "Assumption 1, first half": ("first_half", r": (.+)$"),
    "Assumption 1, second half": ("second_half", r": (.+)$"),
    "Lemma 3": ("lemma_3", r"-> (12 / 10 .+? <= .+?) ->"),
    "M1, A": ("A_of", r":= (.+)\.$"),
    "M1": ("M1_bound", r":= (.+)\.$"),
    "M2, lambda": ("SmallLambda", r"-> (lam \^ 2 .+? <= .+)\.$"),
    "M2, rho": ("M2_bound", r"let Q_star := (.+?) in"),
    "M2, bound": ("M2_bound", r"Q_star := .+? in (.+)\.$"),
    "M2, along": ("rate_m2", r"mcorr D \(W t\) Wmm <= (R \^ 2 / .+?)\) /\\"),
    "M2, order": ("rate_m2", r"<= sum t s -> 1 - mcorr D \(W t\) Wmm <= (.+)\)\.$"),
}
UNEQUAL = ("C1", "C2", "C3", "f, no gap negative", "f, a gap negative", "H3", "rho", "S_1")
# terms of Spec.v, and the names under which the values are handed over
TERMS = {
    "mnorm (d D) F": "outside",
    "mnorm (d D) Q": "inside",
    "c t": "height",
    "margin D Wmm": "Xi",
    "Kinv k k": "corner",
    "alpha k": "alpha",
    "Dl i": "Dl",
    "Dh i": "Dh",
    "eps i": "eps",
    "INR (n D)": "n",
    "INR (rows D)": "N",
    "INR ": "",
    "sum t s": "S",
    "(high / low)": "kappa",
    "(M / v)": "kappa",
    "Rmax": "max",
    "^": "**",
    "\n": " ",
}


def sentence(name: str) -> str:
    """A definition, a statement or a field of a record of Spec.v, on one line."""
    texts = named(SPEC)
    if name in texts:
        return " ".join(without_comments(texts[name]).split())
    if field := re.search(rf"^  {name} : [^;}}]+", without_comments(SPEC), re.MULTILINE):
        return " ".join(field.group().split())
    raise LookupError(f"expected {name} in Spec.v, found nothing of this name")


def piece(name: str) -> str:
    where, pattern = PIECES[name]
    found = re.search(pattern, sentence(where))
    if found is None or not found.group(1).strip():
        raise LookupError(f"expected the expression of {name} in {where}")
    return found.group(1)


def value(text: str, values: dict) -> float:
    """A Coq expression of real numbers, evaluated."""
    for term, word in TERMS.items():
        text = text.replace(term, word)
    text = re.sub(r"\bmax \((.+?)\) \((.+?)\)", r"max(\1, \2)", text)
    text = re.sub(r"\bmax (\w+) (\(.+?\))", r"max(\1, \2)", text)
    text = re.sub(r"\b(ln|exp|sqrt) (\w+)", r"\1(\2)", text)
    text = re.sub(r"^/ ", "1 / ", text)  # `/ 3` is one third
    known = {"ln": math.log, "exp": math.exp, "sqrt": math.sqrt, "max": max}
    return eval(text, {"__builtins__": {}}, known | values)


def ratio(text: str, values: dict) -> float:
    """The left side of an inequality over its right side: 1 where its limit is reached."""
    left, right = text.split(" <= ")
    return value(left, values) / value(right, values)


def make(seed: int, scores: list[list[float]]) -> Dataset:
    """Tokens near the axes, whose inner products are small and not zero, with given scores."""
    random = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=random, dtype=torch.float64)  # noqa: E731
    wanted = torch.tensor(scores, dtype=torch.float64)
    axes = torch.linalg.qr(draw(8, 8)).Q[: wanted.numel()]
    tokens = axes * (1 + 0.05 * draw(len(axes), 1).abs()) + 2e-3 * draw(len(axes), 8)
    u = torch.linalg.pinv(tokens) @ wanted.flatten()
    return Dataset(tokens.reshape(*wanted.shape, 8), [1] * len(wanted), u)


def measured(data: Dataset, opt: list[int]) -> dict:
    """What the conditions speak of, from the tokens alone."""
    X = data.X.numpy()
    n, T, _ = X.shape
    scores = X @ data.u.numpy()
    best = scores[range(n), opt]
    low = np.array([(best[i] - np.delete(scores[i], opt[i])).min() for i in range(n)])
    high = best - scores.min(axis=1)
    tops = (X[range(n), opt] ** 2).sum(-1)
    queries = (X[:, 0] ** 2).sum(-1)
    inside = np.abs(np.einsum("iad,ibd->iab", X, X)) * (1 - np.eye(T))
    gram = np.abs(np.einsum("iad,jbd->iajb", X, X)).reshape(n * T, n * T) * (1 - np.eye(n * T))
    others = np.delete(np.arange(n * T), [i * T + opt[i] for i in range(n)])
    return dict(
        n=n,
        T=T,
        N=n * (T - 1),
        B=np.sqrt((X**2).sum(-1).max()),
        w=(tops * queries).min(),
        mu=gram[others].max(),
        bo=np.sqrt(tops.min()),
        b1=np.sqrt(queries.min()),
        Dl=low,
        Dh=high,
        eps=inside.max(axis=(1, 2)) / tops,
        kappa=(high * np.exp(high - best)).max() / (low * np.exp(-best)).min(),
    )


def sides(name: str, given: dict, text: str) -> list[tuple[float, float]]:
    """Pairs of what the text says of a constant and what the library says."""
    c, below, constants = given["coherence"], given["below"], given["constants"]
    v, each = given["values"], given["sequences"]
    if name == "C1":
        check = coherence_table(c)[1]
        return [(max(ratio(text, one) for one in each), check.value / check.bound)]
    if name == "C2":
        check = coherence_table(c)[2]
        return [(ratio(text, v), check.value / check.bound)]
    if name == "C3":
        return [
            (ratio(text, v | {"sbar": c.largest_step}), 1.0),
            (ratio(text, v | {"sbar": below.largest_step, "f": below.f}), 1.0),
        ]
    if name.startswith("f, "):
        return [(value(text, v), (below if name == "f, a gap negative" else c).f)]
    if name == "H3":
        check = coherence_table(below)[3]
        found = max(ratio(text, one | {"e0": below.start}) for one in each)
        return [(found, check.value / check.bound)]
    if name == "rho":
        return [(value(text, v), c.rho), (value(text, v | {"f": below.f}), below.rho)]
    if name == "S_1":
        log = max(value(text, one) for one in each)
        return [
            (log, c.settling_path / c.rho),
            (log + below.start, below.settling_path / below.rho),
        ]
    if name.startswith("Assumption 1"):
        check = check_assumption1(given["equal"])[name.endswith("second half")]
        return [(ratio(text, v | {"phi_s": constants.phi_low}), check.value / check.bound)]
    if name == "Lemma 3":
        assert math.isfinite(constants.largest_step)
        return [(ratio(text, v | {"sbar": constants.largest_step}), 1.0)]
    run, last, table = given["run"], -1, given["table"]
    along = v | dict(phi_low=0.2, Lambda=given["at"].Lambda, S=7.0, sbar=0.3, P=0.4)
    if name == "M1, A":
        Lambda = given["at"].Lambda
        return [(value(text, along), Lambda * math.exp(Lambda))]
    if name == "M1":
        return [(value(text, along), given["at"].m1_bound(7.0, 0.3, 0.4))]
    lean = least_lean(run)
    if name == "M2, lambda":
        corners, alpha = np.diag(np.linalg.inv(run.K)), run.svm.dual.numpy()
        both = zip(corners, alpha, strict=True)
        return [(max(ratio(text, v | dict(lam=lean, corner=k, alpha=a)) for k, a in both), 1.0)]
    longest, floor = run.trace.longest_step[last], run.trace.least_opt_score[last]
    radius = value(piece("M2, rho"), v | dict(phi_low=floor, sbar=longest, lam=lean))
    outside = norm_outside(run)
    ball = v | dict(
        outside=outside, inside=math.sqrt(run.across[0] ** 2 - outside**2), sbar=longest
    )
    if name == "M2, rho":
        radius = value(text, v | dict(phi_low=floor, sbar=longest, lam=lean))
        found = value(piece("M2, bound"), ball | {"Q_star": radius})
        return [(found, table[3].bounds[last] ** 2)]
    if name == "M2, bound":
        wide = ball | {"inside": 99.0}  # the other side of the maximum, by hand
        return [
            (value(text, ball | {"Q_star": radius}), table[3].bounds[last] ** 2),
            (value(text, wide | {"Q_star": radius}), outside**2 + 99.0**2),
        ]
    decade = last_decade(run)
    R = 1.01 * offset_before(run, decade) + FLICKER * longest
    if name == "M2, along":
        return [(value(text, dict(R=R, height=run.along[last])), table[1].bounds[last])]
    # the theorem says it from S_t >= 4 B^2 |W_0| / Xi on, where half of the path is left at least
    path, start = run.trace.path_length[last], 2 * v["B"] ** 2 * run.W_norm[0] / v["Xi"]
    found = value(text, v | dict(R=R, S=2 * (path - start)))
    return [(found, table[2].bounds[last])]


def disagree(name: str, given: dict, text: str) -> bool:
    try:
        pairs = sides(name, given, text)
    except (ArithmeticError, ValueError, SyntaxError):  # such as a division by zero
        return True
    return any(not math.isclose(ours, theirs, rel_tol=SAME) for ours, theirs in pairs)


@pytest.fixture(scope="module", params=range(3))
def given(request):
    seed = request.param
    scores = [[0.5, 1.0, 0.0], [1.2, 0.6, 0.3]]
    spread, equal = make(seed, scores), make(seed, [[0.0, 1.0, 0.0], [1.5, 0.0, 0.0]])
    c, below = token_coherence(spread), token_coherence(spread, least_gap=-0.05)
    assert c.across > 0 and math.isfinite(c.largest_step) and c.start < below.start
    svm = solve_w_svm(equal)
    constants = token_constants(equal, svm=svm)
    W0 = 0.3 * torch.randn(8, 8, generator=torch.Generator().manual_seed(seed)).double()
    trace = train(equal, NGD(0.5), 3000, svm=svm, W0=W0)
    of_spread, of_equal = measured(spread, [1, 0]), measured(equal, [1, 0])
    of_spread |= {"nu": c.across, "f": c.f}
    lists = {k: of_spread[k] for k in ("Dl", "Dh", "eps")}
    return SimpleNamespace(
        spread=[of_spread | {k: x[i] for k, x in lists.items()} for i in range(2)],
        of_spread=of_spread,
        of_equal=of_equal | {"Xi": svm.margin},
        coherence=c,
        below=below,
        constants=constants,
        at=token_constants(equal, svm=svm, phi=0.2),
        equal=equal,
        run=TraceView(equal, trace, svm),
        table=check_fast_rate(equal, trace, svm=svm),
    )


def handed(given, name: str) -> dict:
    unequal = name in UNEQUAL
    values = given.of_spread if unequal else given.of_equal
    return vars(given) | {"values": values, "sequences": given.spread}


@pytest.mark.parametrize("name", PIECES)
def test_the_library_has_the_constant_that_is_proved(given, name):
    assert not disagree(name, handed(given, name), piece(name))


@pytest.mark.parametrize("name", PIECES)
def test_another_number_in_a_proof_is_found(given, name):
    text = piece(name)
    places = list(NUMBER.finditer(text))
    assert places or name == "M2, bound"
    for at in places:
        other = f"{text[: at.start()]}{int(at.group()) + 1}{text[at.end() :]}"
        assert disagree(name, handed(given, name), other), other


def test_a_name_that_is_gone_is_said(monkeypatch):
    monkeypatch.setitem(PIECES, "C1", ("C9", "(.+)"))
    with pytest.raises(LookupError, match=r"C9 in Spec\.v"):
        piece("C1")
    monkeypatch.setitem(PIECES, "C1", ("C2", r": ()"))
    with pytest.raises(LookupError, match="expected the expression of C1"):
        piece("C1")
