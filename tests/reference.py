"""The dynamics in multiprecision arithmetic, written straight from Eq. 1 and Eq. 2.

Nothing here is shared with the library, and no formula is rearranged for stability: the
softmax is exp over its sum, the gradient goes through the softmax's Jacobian, L - L* and
1 - cosine are subtractions. What makes plain subtraction right is the number of digits.
A softmax that sits on one token loses log10 of 1 - its largest entry; `run` keeps the
largest such loss and refuses its own result when fewer than GUARD digits were left.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpmath import lu_solve, matrix, mp, mpf

GUARD = 25  # correct digits asked of every difference: far more than the 9 that tests compare


@dataclass(frozen=True)
class PlainRule:
    """A step-size rule as its definition; `cap` bounds the step size, `floor` stands for L*."""

    kind: str
    step_size: float = 1.0
    momentum: float = 0.0
    cap: float | None = None
    floor: float | None = None

    def size(self, gap, excess, norm):
        """eta_t from L - L*, L - floor and |grad L|."""
        if self.kind == "gd":
            size = mpf(self.step_size)
        elif self.kind == "ngd":
            size = mpf(self.step_size) / norm
        else:
            size = (gap if self.floor is None else excess) / (2 * norm**2)
        return size if self.cap is None else min(size, mpf(self.cap))


class Layer:
    """Eq. 1 on given sequences: exact copies of the library's float64 tokens."""

    def __init__(self, data, loss: str):
        self.loss = loss
        lengths = data.lengths.tolist()
        self.X = [
            [[mpf(v) for v in token] for token in rows[:length]]
            for rows, length in zip(data.X.double().tolist(), lengths, strict=True)
        ]
        u = [mpf(v) for v in data.u.double().tolist()]
        self.scores = [
            [mpf(label) * dot(u, token) for token in tokens]
            for label, tokens in zip(data.y.tolist(), self.X, strict=True)
        ]
        self.opt = [scores.index(max(scores)) for scores in self.scores]
        self.d = data.d

    def value(self, z):
        return mp.exp(-z) if self.loss == "exponential" else mp.log(1 + mp.exp(-z))

    def slope(self, z):
        """-l'(z)."""
        return mp.exp(-z) if self.loss == "exponential" else 1 / (1 + mp.exp(z))

    def softmax(self, W):
        maps = []
        for tokens in self.X:
            moved = [dot(row, tokens[0]) for row in W]
            powers = [mp.exp(dot(token, moved)) for token in tokens]
            total = sum(powers)
            maps.append([power / total for power in powers])
        return maps

    def risk(self, maps):
        pairs = zip(maps, self.scores, strict=True)
        return sum(self.value(dot(phi, score)) for phi, score in pairs) / len(maps)

    def best_risk(self):
        return sum(self.value(max(score)) for score in self.scores) / len(self.scores)

    def descent(self, maps):
        """-grad L, a d x d list of lists."""
        G = [[mpf(0)] * self.d for _ in range(self.d)]
        for tokens, phi, score in zip(self.X, maps, self.scores, strict=True):
            margin = dot(phi, score)
            weights = [
                self.slope(margin) * p * (s - margin) for p, s in zip(phi, score, strict=True)
            ]
            pulled = [dot(weights, column) for column in zip(*tokens, strict=True)]
            for a in range(self.d):
                for b in range(self.d):
                    G[a][b] += pulled[a] * tokens[0][b] / len(maps)
        return G

    def hard_margin(self, support):
        """W_mm from its active constraints, by a linear system; refused unless KKT holds."""
        rows = []
        for tokens, opt in zip(self.X, self.opt, strict=True):
            for token in tokens[:opt] + tokens[opt + 1 :]:
                step = [a - b for a, b in zip(tokens[opt], token, strict=True)]
                rows.append([a * b for a in step for b in tokens[0]])
        active = [rows[k] for k in support]
        gram = matrix([[dot(a, b) for b in active] for a in active])
        dual = lu_solve(gram, matrix([mpf(1)] * len(active)))
        flat = [sum(dual[k] * row[j] for k, row in enumerate(active)) for j in range(self.d**2)]
        tiny = mpf(10) ** (GUARD - mp.dps)
        if min(dual) <= 0 or min(dot(row, flat) for row in rows) < 1 - tiny:
            raise ArithmeticError("the given support is not that of W_mm")
        return [flat[a * self.d : (a + 1) * self.d] for a in range(self.d)]


def dot(a, b):
    return mp.fdot(a, b)


def inner(A, B):
    return sum(dot(a, b) for a, b in zip(A, B, strict=True))


def run(data, rule: PlainRule, steps: int, record, *, loss, W0, support, digits: int) -> dict:
    """Recorded quantities of one run, as lists of floats.

    Parameters
    ----------
    data : Dataset
        With tokens and decoder whose scores are exact in float64.
    rule : PlainRule
    steps : int
    record : sequence of int
    loss : {"exponential", "logistic"}
    W0 : (d, d) tensor
    support : sequence of int
        The constraints of (W-SVM) with positive weights, counted by sequence, then token;
        verified here.
    digits : int
        Decimal digits to compute with.
    """
    with mp.workdps(digits):
        layer = Layer(data, loss)
        target = layer.hard_margin(support)
        best = layer.best_risk()
        W = [[mpf(v) for v in row] for row in W0.tolist()]
        speed = [[mpf(0)] * layer.d for _ in range(layer.d)]
        series, narrowest = {}, mpf(1)
        for step in range(steps + 1):
            maps = layer.softmax(W)
            narrowest = min(narrowest, *(1 - max(phi) for phi in maps))
            G = layer.descent(maps)
            norm = mp.sqrt(inner(G, G))
            recording, polyak = step in record, rule.kind == "polyak"
            risk = layer.risk(maps) if recording or polyak else mpf(0)
            size = rule.size(risk - best, risk - mpf(rule.floor or 0), norm)
            if recording:
                values = _record(layer, maps, risk, best, norm, size, W, target)
                for name, value in values.items():
                    series.setdefault(name, []).append(value)
            for a in range(layer.d):
                for b in range(layer.d):
                    speed[a][b] = mpf(rule.momentum) * speed[a][b] + size * G[a][b]
                    W[a][b] += speed[a][b]
        if narrowest <= 0 or digits + mp.log10(narrowest) < GUARD:
            raise ArithmeticError(f"{digits} digits are too few for this run")
    return series


def _record(layer, maps, risk, best, norm, size, W, target) -> dict:
    nonopt = sum(1 - phi[o] for phi, o in zip(maps, layer.opt, strict=True)) / len(maps)
    length = mp.sqrt(inner(W, W))
    cosine = inner(W, target) / (length * mp.sqrt(inner(target, target))) if length else mp.nan
    gap, error = risk - best, 1 - cosine
    with mp.workdps(GUARD):  # the differences are made; their logarithms need no more
        return {
            "log_loss": float(mp.log(risk)),
            "log_loss_gap": float(mp.log(gap)),
            "log_grad_norm": float(mp.log(norm)),
            "log_step_size": float(mp.log(size)),
            "log_nonopt_score": float(mp.log(nonopt)),
            "W_norm": float(length),
            "W_alignment_error": float(error),
        }
