"""The loop that everyone writes first: plain float64 and autograd. Right until saturation."""

from __future__ import annotations

import math

import torch

from attnbias import SelfAttention, optimal_tokens, solve_u_svm, solve_w_svm
from attnbias.geometry.tokens import resolve_opt
from attnbias.losses import as_loss
from attnbias.model import attention_map, empirical_risk


def autograd_run(data, rule, steps, record, *, loss="exponential", W0=None) -> dict:
    """Recorded quantities as lists, by autograd and plain differences."""
    layer = SelfAttention(data.d, W=W0, u=data.u)
    target = solve_w_svm(data).weights
    opt = optimal_tokens(data)[:, None]
    top = (data.y[:, None] * (data.X @ data.u)).gather(1, opt).flatten()
    best = as_loss(loss).log_value(top).exp().mean()
    speed, series = torch.zeros_like(layer.W), {}
    for step in range(steps + 1):
        risk = empirical_risk(data, layer.W, layer.u, loss)
        (gradient,) = torch.autograd.grad(risk, layer.W)
        with torch.no_grad():
            size = _step_size(rule, risk, best, gradient)
            if step in record:
                phi = attention_map(data.X, layer.W, data.lengths).gather(1, opt).mean()
                values = {
                    "log_loss": risk.log(),
                    "log_loss_gap": (risk - best).log(),
                    "log_grad_norm": gradient.norm().log(),
                    "log_step_size": size.log(),
                    "log_nonopt_score": (1 - phi).log(),
                    "W_norm": layer.W.norm(),
                    "W_alignment_error": 1
                    - torch.cosine_similarity(layer.W.flatten(), target.flatten(), dim=0, eps=0),
                }
                for name, value in values.items():
                    series.setdefault(name, []).append(float(value))
            speed = rule.momentum * speed - size * gradient
            layer.W += speed
    return series | {"W": layer.W.detach() - speed}


def joint_autograd_run(data, rule, steps, record, *, loss="exponential", W0=None, u0=None) -> dict:
    """`autograd_run` for joint training of W and u, from the optimal tokens of the data."""
    layer = SelfAttention(data.d, W=W0, u=u0, train_u=True)
    targets = solve_w_svm(data).weights, solve_u_svm(data).weights
    opt = resolve_opt(data)[:, None]
    path = u_path = torch.zeros((), dtype=torch.float64)
    least, series = math.inf, {}
    for step in range(steps + 1):
        risk = empirical_risk(data, layer.W, layer.u, loss)
        grad_W, grad_u = torch.autograd.grad(risk, (layer.W, layer.u))
        with torch.no_grad():
            size_u, size_W = _joint_sizes(rule, step, risk, grad_u, grad_W)
            phi = attention_map(data.X, layer.W, data.lengths).gather(1, opt)
            least = min(least, float(phi.min()))
            if step in record:
                values = {
                    "log_loss": risk.log(),
                    "log_loss_gap": risk.log(),
                    "log_grad_norm": torch.hypot(grad_u.norm(), grad_W.norm()).log(),
                    "log_step_size": size_W.log(),
                    "log_u_step_size": size_u.log(),
                    "log_nonopt_score": (1 - phi.mean()).log(),
                    "W_norm": layer.W.norm(),
                    "W_alignment_error": _cosine_error(layer.W, targets[0]),
                    "u_norm": layer.u.norm(),
                    "u_alignment_error": _cosine_error(layer.u, targets[1]),
                    "path_length": path,
                    "u_path_length": u_path,
                    "least_opt_score": least,
                }
                for name, value in values.items():
                    series.setdefault(name, []).append(float(value))
            if step < steps:
                path = path + size_W * grad_W.norm()
                u_path = u_path + size_u * grad_u.norm()
                layer.W -= size_W * grad_W
                layer.u -= size_u * grad_u
    return series | {"W": layer.W.detach(), "u": layer.u.detach()}


def _cosine_error(one, two) -> torch.Tensor:
    return 1 - (one * two).sum() / (one.norm() * two.norm())


def _joint_sizes(rule, step, risk, grad_u, grad_W) -> list[torch.Tensor]:
    """Step sizes of u and W by the definition; a gradient over its own norm 0 is 0."""
    whole = torch.hypot(grad_u.norm(), grad_W.norm())
    separate = rule.name.startswith("NGD") and rule.normalise == "separate"
    sizes = []
    for gradient, power in zip((grad_u, grad_W), rule.decay, strict=True):
        norm = gradient.norm() if separate else whole
        if norm == 0:
            sizes.append(torch.zeros_like(norm))
            continue
        size = _uncapped(rule, risk, 0.0, norm) * (step + 1) ** -power
        sizes.append(size.clamp(max=math.exp(min(rule.log_max_step, 709.0))))
    return sizes


def _step_size(rule, risk, best, gradient) -> torch.Tensor:
    """eta_t by the rule's definition, from plain numbers."""
    size = _uncapped(rule, risk, best, gradient.norm())
    return size.clamp(max=math.exp(min(rule.log_max_step, 709.0)))


def _uncapped(rule, risk, best, norm) -> torch.Tensor:
    if rule.name.startswith("GD"):
        return torch.tensor(math.exp(rule.log_scale), dtype=norm.dtype)
    if rule.name.startswith("NGD"):
        return math.exp(rule.log_scale) / norm
    floor = best if rule.loss_floor is None else rule.loss_floor
    return (risk - floor) / (2 * norm**2)
