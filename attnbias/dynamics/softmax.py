"""The softmax of one layer in the log domain: the readable reference of the compiled loops.

All functions take the logit gaps of each sequence, one row a sequence, and work with
log(1 - softmax of the optimal token) rather than with the softmax itself, which float64
rounds to 1 once a gap passes 37. Shapes: n sequences, m = T - 1 non-optimal tokens.
Source: theory of the gradient, Eq. 14, in the general form that needs no Assumption 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..losses import Loss


@dataclass(frozen=True)
class Scores:
    """Scores laid out for the log domain.

    Attributes
    ----------
    top : (n,) score of the optimal token.
    delta : (n, m) top minus the score of each other token, > 0; 0 at padding.
    """

    top: torch.Tensor
    delta: torch.Tensor


@dataclass(frozen=True)
class SoftmaxState:
    """Everything one iterate's softmax determines, in logs.

    Attributes
    ----------
    log_nonopt, log_opt : (n,) logs of 1 - softmax at the optimal token, and of the softmax.
    log_S : (n,) log of S_i, the score lost to the other tokens; the margin is top - S.
    log_weight : (n, m) log |p|, with -grad L = mean over sequences of sum p z.
    sign : (n, m) sign of p.
    """

    log_nonopt: torch.Tensor
    log_opt: torch.Tensor
    log_S: torch.Tensor
    log_weight: torch.Tensor
    sign: torch.Tensor


def softmax_state(gaps: torch.Tensor, scores: Scores, loss: Loss) -> SoftmaxState:
    """Softmax, lost score and gradient weights from logit gaps (+inf at padding)."""
    log_nonopt, log_opt, log_others = _log_softmax(gaps)
    log_S = torch.logsumexp(log_others + scores.delta.log(), dim=1)
    sign, log_c = signed_excess(log_opt, log_others, scores.delta)
    log_slope = loss.log_slope(scores.top - log_S.exp())
    log_weight = log_slope[:, None] + log_others + log_c
    return SoftmaxState(log_nonopt, log_opt, log_S, log_weight, sign)


@dataclass(frozen=True)
class JointState:
    """`SoftmaxState` of joint training, where score gaps may be of either sign.

    Attributes
    ----------
    log_nonopt, log_opt : (n,)
    softmax : (n, m) at the other tokens.
    margin : (n,) the softmax's mean score, y Phi(X).
    log_slope : (n,) log(-l') there.
    log_weight, sign : (n, m) as in `SoftmaxState`; -inf and 0 where all scores tie.
    """

    log_nonopt: torch.Tensor
    log_opt: torch.Tensor
    softmax: torch.Tensor
    margin: torch.Tensor
    log_slope: torch.Tensor
    log_weight: torch.Tensor
    sign: torch.Tensor


def joint_state(gaps, top, delta, loss: Loss) -> JointState:
    """Softmax, margins and the weights of both gradients from logit gaps and scores.

    -grad_u L is the mean over sequences of exp(log_slope) y (x_opt - sum softmax (x_opt - x)).
    """
    log_nonopt, log_opt, log_others = _log_softmax(gaps)
    softmax = log_others.exp()
    margin = top - (softmax * delta).sum(dim=1)
    log_slope = loss.log_slope(margin)
    sign, log_c = signed_excess(log_opt, log_others, delta)
    log_weight = log_slope[:, None] + log_others + log_c
    return JointState(log_nonopt, log_opt, softmax, margin, log_slope, log_weight, sign)


def _log_softmax(gaps: torch.Tensor):
    """Logs of 1 - softmax at the optimal token, of the softmax there, and at the others."""
    log_rest = torch.logsumexp(-gaps, dim=1)
    log_opt = -torch.nn.functional.softplus(log_rest, threshold=1e9)
    log_opt = torch.where(log_rest > 700, -log_rest, log_opt)  # softplus(x) = x there
    return log_rest + log_opt, log_opt, log_opt[:, None] - gaps


def signed_excess(log_opt, log_others, delta):
    """Sign and log of c_tau = (mean score under the softmax) - (score of tau).

    A signed log-sum over all tokens s of softmax_s (score_s - score_tau): a plain
    difference would cancel when the softmax sits on one token.
    """
    log_phi = torch.cat([log_opt[:, None], log_others], dim=1)
    level = torch.cat([torch.zeros_like(delta[:, :1]), delta], dim=1)  # top - score_s
    difference = delta[:, :, None] - level[:, None, :]  # score_s - score_tau
    terms = log_phi[:, None, :] + difference.abs().log()
    shift = terms.amax(dim=2, keepdim=True)
    shift = torch.where(torch.isfinite(shift), shift, torch.zeros_like(shift))
    total = (difference.sign() * (terms - shift).exp()).sum(dim=2)
    return total.sign(), total.abs().log() + shift.squeeze(2)


def log_loss_gap(state: SoftmaxState, scores: Scores, loss: Loss) -> torch.Tensor:
    """log(L - L*), with L* the loss when every softmax sits on its optimal token."""
    return log_mean_of(loss.gap(scores.top, state.log_S))


def log_mean_loss(state: SoftmaxState, scores: Scores, loss: Loss) -> torch.Tensor:
    """log L."""
    return log_mean_of(loss.log_value(scores.top - state.log_S.exp()))


def log_mean_nonopt(state: SoftmaxState | JointState) -> torch.Tensor:
    """log of the mean of 1 - softmax(opt), from the smaller of the two sides."""
    nonopt = log_mean_of(state.log_nonopt)
    return torch.where(nonopt < -0.7, nonopt, torch.log1p(-log_mean_of(state.log_opt).exp()))


def log_mean_of(logs: torch.Tensor) -> torch.Tensor:
    """log of the mean of exponentials."""
    return torch.logsumexp(logs, dim=0) - math.log(len(logs))
