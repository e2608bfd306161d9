"""The dynamics in multiprecision arithmetic, written straight from Eq. 1 and Eq. 2.

Nothing here is shared with the library, and no formula is rearranged for stability: the
softmax is exp over its sum, the gradient goes through the softmax's Jacobian, L - L* and
1 - cosine are subtractions. What makes plain subtraction right is the number of digits.
A softmax that sits on one token loses log10 of 1 - its largest entry; `run` keeps the
largest such loss and refuses its own result when fewer than GUARD digits were left.
"""

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

    def sizes(self, step, gap, excess, norms) -> list:
        """eta_t of each part from L - L*, L - floor and the norms of their gradients; 0/0 = 0."""
        whole = mp.sqrt(sum(norm**2 for norm in norms))
        separate, found = self.kind == "ngd" and not self.shared, []
        for own, power in zip(norms, self.decay[-len(norms) :], strict=True):
            norm = own if separate else whole
            if self.kind == "gd":
                size = mpf(self.step_size)
            elif self.kind == "ngd":
                size = mpf(self.step_size) / norm if norm else mpf(0)
            else:
                size = (gap if self.floor is None else excess) / (2 * norm**2)
            size *= mpf(step + 1) ** -mpf(power)
            found.append(size if self.cap is None else min(size, mpf(self.cap)))
        return found


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


def run(data, rule: PlainRule, steps, record, *, loss, W0, supports, digits, u0=None) -> dict:
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
    supports : list of sequences of int
        The constraints of (W-SVM) with positive weights, counted by sequence, then token, and in
        joint training those of (u-SVM); verified here.
    digits : int
        Decimal digits to compute with.
    u0 : (d,) tensor, optional
        The start of joint training.
    """
    with mp.workdps(digits):
        layer, joint = Layer(data, loss), u0 is not None
        parts, targets = [_exact(W0)], [layer.hard_margin(supports[0])]
        best = mpf(0) if joint else layer.best_risk()
        if joint:
            parts.insert(0, _exact(u0[None]))
            targets.insert(0, [layer.decoder_margin(supports[1])])
        speeds = [[[mpf(0)] * layer.d for _ in part] for part in parts]
        paths, series, narrowest = [mpf(0) for _ in parts], {}, mpf(1)
        for step in range(steps + 1):
            if joint:
                layer.set_decoder(parts[0][0])
            maps = layer.softmax(parts[-1])
            narrowest = min(narrowest, *(1 - max(phi) for phi in maps))
            gradients = [[layer.decoder_descent(maps)]] if joint else []
            gradients.append(layer.descent(maps))
            norms = [mp.sqrt(inner(G, G)) for G in gradients]
            needed = step in record or rule.kind == "polyak"
            risk = layer.risk(maps) if needed else mpf(0)
            sizes = rule.sizes(step, risk - best, risk - mpf(rule.floor or 0), norms)
            if step in record:
                values = _record(layer, maps, risk, best, norms)
                for name, *each in zip(
                    "uW"[-len(parts) :], parts, targets, sizes, paths, strict=True
                ):
                    values |= _of_part(name, *each)
                for name, value in values.items():
                    series.setdefault(name, []).append(value)
            for k, (part, speed, G) in enumerate(zip(parts, speeds, gradients, strict=True)):
                paths[k] += sizes[k] * norms[k]
                for a, row in enumerate(G):
                    for b, value in enumerate(row):
                        speed[a][b] = mpf(rule.momentum) * speed[a][b] + sizes[k] * value
                        part[a][b] += speed[a][b]
        if narrowest <= 0 or digits + mp.log10(narrowest) < GUARD:
            raise ArithmeticError(f"{digits} digits are too few for this run")
    if rule.momentum:
        del series["path_length"]  # no step is a size times a gradient
    return series


def _exact(tensor) -> list:
    return [[mpf(value) for value in row] for row in tensor.tolist()]


def _record(layer, maps, risk, best, norms) -> dict:
    nonopt = sum(1 - phi[o] for phi, o in zip(maps, layer.opt, strict=True)) / len(maps)
    gap, norm = risk - best, mp.sqrt(sum(each**2 for each in norms))
    with mp.workdps(GUARD):  # the differences are made; their logarithms need no more
        logs = {"loss": risk, "loss_gap": gap, "grad_norm": norm, "nonopt_score": nonopt}
        return {f"log_{name}": float(mp.log(value)) for name, value in logs.items()}


def _of_part(name, part, target, size, path) -> dict:
    length = mp.sqrt(inner(part, part))
    cosine = inner(part, target) / (length * mp.sqrt(inner(target, target))) if length else mp.nan
    error, u = 1 - cosine, "u_" if name == "u" else ""
    with mp.workdps(GUARD):
        return {
            f"log_{u}step_size": float(mp.log(size)) if size else -float("inf"),
            f"{u}path_length": float(path),
            f"{name}_norm": float(length),
            f"{name}_alignment_error": float(error),
        }
