"""Twenty runs of the laboratory's engine, and the same ones as the library makes them."""

import torch

from attnbias import GD, NGD, Dataset, Polyak, make_bad_start, make_separation_pair
from attnbias.data import make_degenerate, make_score_lock, make_two_sample_trap


def drawn(seed, n, T, d):
    """Tokens of two digits, with labels of both signs and a decoder."""
    generator = torch.Generator().manual_seed(seed)
    X, u = torch.randn(n, T, d, generator=generator), torch.randn(d, generator=generator)
    return Dataset(X.mul(64).round() / 64, [1, -1, 1][:n], u=u.mul(64).round() / 64)


def start(d, seed, size=1.0):
    """A start of two digits."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(d, d, generator=generator, dtype=torch.float64) * 64 * size).round() / 64


# name: data, the rule's name and its arguments, what train takes besides
SETUPS = {
    "one pair, NGD": (drawn(1, 1, 2, 2), ("NGD", 0.1), {"W0": start(2, 1)}),
    "pair of Section 3.3, GD": (make_separation_pair(), ("GD", 1.0), {"W0": start(2, 2)}),
    "degenerate triple, NGD": (make_degenerate(), ("NGD", 0.1), {}),
    "degenerate triple, Polyak": (make_degenerate(), ("Polyak",), {}),
    "clash, NGD": (make_two_sample_trap(), ("NGD", 0.1), {}),
    "clash, GD": (make_two_sample_trap(), ("GD", 0.5), {}),
    "score lock, NGD": (make_score_lock(0.01), ("NGD", 0.1), {}),
    "scores apart, momentum": (make_score_lock(0.1), ("NGD", 0.02, 0.9), {}),
    "Figure 8, GD": (make_bad_start(4)[0], ("GD", 1.0), {"W0": make_bad_start(4)[1]}),
    "Figure 8, NGD": (make_bad_start(8)[0], ("NGD", 0.1), {"W0": make_bad_start(8)[1]}),
    "three of six in the plane, NGD": (drawn(3, 3, 6, 2), ("NGD", 0.1), {}),
    "three of six, momentum": (drawn(4, 3, 6, 4), ("NGD", 0.05, 0.9), {"W0": start(4, 4, 0.1)}),
    "three of six, Polyak": (drawn(5, 3, 6, 4), ("Polyak",), {}),
    "three of three, capped Polyak": (drawn(6, 3, 3, 3), ("Polyak", 100.0), {}),
    "three of three, capped NGD": (drawn(7, 3, 3, 4), ("NGD", 0.1, 0.0, 1e4), {}),
    "both, NGD": (drawn(33, 2, 3, 2), ("NGD", 0.1), {"train_u": True}),
    "both, joint NGD": (drawn(17, 2, 3, 3), ("NGD", 0.1, "shared"), {"train_u": True}),
    "both, Eq. 10": (drawn(10, 3, 2, 4), ("NGD", 0.5, "decay"), {"train_u": True}),
    "both, GD": (drawn(11, 3, 6, 2), ("GD", 0.2), {"train_u": True, "u0": [0.5, -0.25]}),
    "both, Polyak": (drawn(11, 3, 3, 6), ("Polyak",), {"train_u": True}),
}


def rule_of(name, *arguments):
    """The rule, and what the engine's set-up says of it."""
    if name == "GD":
        return GD(*arguments), {"step": arguments[0]}
    if name == "Polyak":
        return Polyak(*arguments), {"cap": arguments[0]} if arguments else {}
    step, *rest = arguments
    if rest == ["shared"]:
        return NGD(step, normalise="shared"), {"step": step, "normalise": "shared"}
    if rest == ["decay"]:
        return NGD(step, decay=(2 / 3, 1)), {"step": step, "decay": [2 / 3, 1]}
    beside = dict(zip(("momentum", "cap"), rest, strict=False))
    return NGD(step, *rest[:1], max_step=beside.get("cap", torch.inf)), {"step": step} | beside


def setup_of(name):
    """A set-up as json holds it."""
    data, rule, others = SETUPS[name]
    plain = {
        key: value if isinstance(value, bool | list) else value.tolist()
        for key, value in others.items()
    }
    plain["joint"] = plain.pop("train_u", False)
    tokens = {"X": data.X.tolist(), "y": data.y.tolist(), "u": data.u.tolist()}
    return tokens | plain | {"rule": rule[0]} | rule_of(*rule)[1]
