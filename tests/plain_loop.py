"""The loop that everyone writes first: plain float64 and autograd. Right until saturation."""

import math

import torch

from attnbias import SelfAttention, solve_u_svm, solve_w_svm
from attnbias.geometry.tokens import resolve_opt
from attnbias.losses import as_loss
from attnbias.model import attention_map, empirical_risk


def autograd_run(
    data, rule, steps, record, *, loss="exponential", W0=None, u0=None, train_u=False
) -> dict:
    """Recorded quantities as lists, by autograd and plain differences; of u too with `train_u`."""
    layer = SelfAttention(data.d, W=W0, u=u0 if train_u else data.u, train_u=train_u)
    parts = {"u": layer.u, "W": layer.W} if train_u else {"W": layer.W}
    targets = {"W": solve_w_svm(data).weights}
    opt, best = resolve_opt(data)[:, None], 0.0
    if train_u:
        targets["u"] = solve_u_svm(data).weights
    else:
        top = (data.y[:, None] * (data.X @ data.u)).gather(1, opt).flatten()
        best = as_loss(loss).log_value(top).exp().mean()
    speeds = {name: torch.zeros_like(part) for name, part in parts.items()}
    paths, longest, least, series = dict.fromkeys(parts, 0.0), 0.0, math.inf, {}
    for step in range(steps + 1):
        risk = empirical_risk(data, layer.W, layer.u, loss)
        gradients = dict(zip(parts, torch.autograd.grad(risk, list(parts.values())), strict=True))
        with torch.no_grad():
            norms = {name: gradient.norm() for name, gradient in gradients.items()}
            sizes = _step_sizes(rule, step, risk, best, norms)
            phi = attention_map(data.X, layer.W, data.lengths).gather(1, opt)
            least = min(least, float(phi.min()))
            if step in record:
                values = {
                    "log_loss": risk.log(),
                    "log_loss_gap": (risk - best).log(),
                    "log_grad_norm": torch.stack(list(norms.values())).norm().log(),
                    "log_nonopt_score": (1 - phi.mean()).log(),
                    "least_opt_score": least,
                    "longest_step": longest,
                }
                for name, part in parts.items():
                    u = "u_" if name == "u" else ""
                    values[f"log_{u}step_size"] = sizes[name].log()
                    values[f"{u}path_length"] = paths[name]
                    values[f"{name}_norm"] = part.norm()
                    values[f"{name}_alignment_error"] = _cosine_error(part, targets[name])
                for name, value in values.items():
                    series.setdefault(name, []).append(float(value))
            if step < steps:
                for name, part in parts.items():
                    length = sizes[name] * norms[name]
                    paths[name] = paths[name] + length
                    longest = max(longest, float(length)) if name == "W" else longest
                    speeds[name] = rule.momentum * speeds[name] - sizes[name] * gradients[name]
                    part += speeds[name]
    return series | {name: part.detach() for name, part in parts.items()}


def _cosine_error(one, two) -> torch.Tensor:
    return 1 - (one * two).sum() / (one.norm() * two.norm())


def _step_sizes(rule, step, risk, best, norms) -> dict[str, torch.Tensor]:
    """eta_t of each part by the definition; a gradient over its own norm 0 is 0."""
    whole = torch.stack(list(norms.values())).norm()
    separate = rule.name.startswith("NGD") and rule.normalise == "separate"
    sizes = {}
    for name, own in norms.items():
        norm = own if separate else whole
        if norm == 0:
            sizes[name] = torch.zeros_like(norm)
            continue
        size = _uncapped(rule, risk, best, norm) * (step + 1) ** -rule.decay[name == "W"]
        sizes[name] = size.clamp(max=math.exp(min(rule.log_max_step, 709.0)))
    return sizes


def _uncapped(rule, risk, best, norm) -> torch.Tensor:
    if rule.name.startswith("GD"):
        return torch.tensor(math.exp(rule.log_scale), dtype=norm.dtype)
    if rule.name.startswith("NGD"):
        return math.exp(rule.log_scale) / norm
    floor = best if rule.loss_floor is None else rule.loss_floor
    return (risk - floor) / (2 * norm**2)
