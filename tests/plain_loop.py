"""The loop that everyone writes first: plain float64 and autograd. Right until saturation."""

from __future__ import annotations

import math

import torch

from attnbias import SelfAttention, optimal_tokens, solve_w_svm
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


def _step_size(rule, risk, best, gradient) -> torch.Tensor:
    """eta_t by the rule's definition, from plain numbers."""
    norm = gradient.norm()
    if rule.name.startswith("GD"):
        size = torch.tensor(math.exp(rule.log_scale), dtype=norm.dtype)
    elif rule.name.startswith("NGD"):
        size = math.exp(rule.log_scale) / norm
    else:
        floor = best if rule.loss_floor is None else rule.loss_floor
        size = (risk - floor) / (2 * norm**2)
    return size.clamp(max=math.exp(min(rule.log_max_step, 709.0)))
