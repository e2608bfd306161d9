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
    """A step-size rule as its definition; `cap` bounds the step size, `floor` stands for L*.

    `shared` and `decay` = (p, q), factors (t + 1)^-p for u and (t + 1)^-q for W, are those of
    joint training.
    """

    kind: str
    step_size: float = 1.0
    momentum: float = 0.0
    cap: float | None = None
    floor: float | None = None
    shared: bool = False
    decay: tuple[float, float] = (0.0, 0.0)

    def joint_sizes(self, step, risk, norm_u, norm_W):
        """eta_t of u and of W; 0/0 = 0."""
        whole = mp.sqrt(norm_u**2 + norm_W**2)
        separate = self.kind == "ngd" and not self.shared
        sizes = []
        for norm, power in zip((norm_u, norm_W), self.decay, strict=True):
            if separate and norm == 0:
                sizes.append(mpf(0))
                continue
            factor = mpf(step + 1) ** -mpf(power)
            free = PlainRule(self.kind, self.step_size, floor=self.floor)
            size = factor * free.size(
                risk, risk - mpf(self.floor or 0), norm if separate else whole
            )
            sizes.append(size if self.cap is None else min(size, mpf(self.cap)))
        return sizes

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
        self.y = [mpf(label) for label in data.y.tolist()]
        self.d = data.d
        if data.u is not None:
            self.set_decoder([mpf(v) for v in data.u.double().tolist()])
        given = None if data.opt is None else data.opt.tolist()
        self.opt = given or [scores.index(max(scores)) for scores in self.scores]

    def set_decoder(self, u):
        self.scores = [
            [label * dot(u, token) for token in tokens]
            for label, tokens in zip(self.y, self.X, strict=True)
        ]

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

    def decoder_descent(self, maps):
        """-grad_u L, a list."""
        total = [mpf(0)] * self.d
        parts = zip(self.X, self.y, maps, self.scores, strict=True)
        for tokens, label, phi, score in parts:
            weight = label * self.slope(dot(phi, score)) / len(maps)
            for a, column in enumerate(zip(*tokens, strict=True)):
                total[a] += weight * dot(phi, column)
        return total

    def hard_margin(self, support):
        """W_mm from its active constraints, by a linear system; refused unless KKT holds."""
        rows = []
        for tokens, opt in zip(self.X, self.opt, strict=True):
            for token in tokens[:opt] + tokens[opt + 1 :]:
                step = [a - b for a, b in zip(tokens[opt], token, strict=True)]
                rows.append([a * b for a in step for b in tokens[0]])
        flat = self._from_support(rows, support)
        return [flat[a * self.d : (a + 1) * self.d] for a in range(self.d)]

    def decoder_margin(self, support):
        """u_mm, likewise."""
        parts = zip(self.y, self.X, self.opt, strict=True)
        return self._from_support([[y * a for a in X[opt]] for y, X, opt in parts], support)

    def _from_support(self, rows, support):
        active = [rows[k] for k in support]
        gram = matrix([[dot(a, b) for b in active] for a in active])
        dual = lu_solve(gram, matrix([mpf(1)] * len(active)))
        flat = [sum(dual[k] * row[j] for k, row in enumerate(active)) for j in range(len(rows[0]))]
        tiny = mpf(10) ** (GUARD - mp.dps)
        if min(dual) <= 0 or min(dot(row, flat) for row in rows) < 1 - tiny:
            raise ArithmeticError("the given support is not that of W_mm")
        return flat


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


def joint_run(data, rule, steps, record, *, loss, W0, u0, supports, digits: int) -> dict:
    """`run` for joint training: u and W from (u0, W0); supports of W_mm and of u_mm."""
    with mp.workdps(digits):
        layer = Layer(data, loss)
        targets = layer.hard_margin(supports[0]), [layer.decoder_margin(supports[1])]
        W = [[mpf(v) for v in row] for row in W0.tolist()]
        u, series, narrowest = [mpf(v) for v in u0.tolist()], {}, mpf(1)
        paths = [mpf(0), mpf(0)]
        for step in range(steps + 1):
            layer.set_decoder(u)
            maps = layer.softmax(W)
            narrowest = min(narrowest, *(1 - max(phi) for phi in maps))
            G, h, risk = layer.descent(maps), layer.decoder_descent(maps), layer.risk(maps)
            norm_W, norm_u = mp.sqrt(inner(G, G)), mp.sqrt(dot(h, h))
            size_u, size_W = rule.joint_sizes(step, risk, norm_u, norm_W)
            if step in record:
                norm = mp.sqrt(norm_u**2 + norm_W**2)
                values = _record(layer, maps, risk, mpf(0), norm, size_W, W, targets[0])
                other = _record(layer, maps, risk, mpf(0), norm, size_u, [u], targets[1])
                renamed = {"u_norm": "W_norm", "u_alignment_error": "W_alignment_error"}
                renamed["log_u_step_size"] = "log_step_size"
                values |= {name: other[theirs] for name, theirs in renamed.items()}
                values |= {"path_length": float(paths[0]), "u_path_length": float(paths[1])}
                for name, value in values.items():
                    series.setdefault(name, []).append(value)
            paths = [paths[0] + size_W * norm_W, paths[1] + size_u * norm_u]
            u = [a + size_u * b for a, b in zip(u, h, strict=True)]
            for a in range(layer.d):
                W[a] = [w + size_W * x for w, x in zip(W[a], G[a], strict=True)]
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
            "log_step_size": float(mp.log(size)) if size else -float("inf"),
            "log_nonopt_score": float(mp.log(nonopt)),
            "W_norm": float(length),
            "W_alignment_error": float(error),
        }
