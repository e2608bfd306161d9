"""The softmax of one layer in the log domain: the one reference in torch.

All functions take the logit gaps of each sequence, one row a sequence, and work with
log(1 - softmax of the optimal token) rather than with the softmax itself, which float64
rounds to 1 once a gap passes 37. Shapes: n sequences, m = T - 1 non-optimal tokens; in front of
them any others, for many runs or records at once. No function reads a value on the host.
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
    delta : (n, m) top minus the score of each other token; 0 at padding.
    """

    top: torch.Tensor
    delta: torch.Tensor


@dataclass(frozen=True)
class SoftmaxState:
    """Everything one iterate's softmax determines, in logs.

    Attributes
    ----------
    log_nonopt, log_opt : (n,) logs of 1 - softmax at the optimal token, and of the softmax.
    base : (n,) log of the softmax at the best of the other tokens.
    fall : (n, m) log of the softmax at the other tokens, less that: from logits alone.
    margin : (n,) the softmax's mean score, y Phi(X) = top - S.
    """

    log_nonopt: torch.Tensor
    log_opt: torch.Tensor
    base: torch.Tensor
    fall: torch.Tensor
    margin: torch.Tensor
    scores: Scores
    loss: Loss

    @property
    def log_others(self) -> torch.Tensor:
        """(n, m) log of the softmax at the other tokens."""
        return self.base[..., None] + self.fall

    @property
    def log_S(self) -> torch.Tensor:
        """(n,) log of the score lost to the other tokens, for scores below the top."""
        return self.base + self._log_lost

    @property
    def _log_lost(self) -> torch.Tensor:
        return torch.logsumexp(self.fall + self.scores.delta.log(), dim=-1)

    @property
    def log_slope(self) -> torch.Tensor:
        """(n,) log(-l') at the margin, exact below the top score where the loss says how."""
        at = self.loss.log_slope(self.margin)
        if self.loss.log_slope_below is None:
            return at
        below = self.loss.log_slope_below(self.scores.top, self.log_S)
        return torch.where(self.margin <= self.scores.top, below, at)

    def weights(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, m) sign and log of p, with -grad L = mean over sequences of sum p z."""
        sign, log_c = self.excess()
        return sign, self.log_slope[..., None] + self.log_others + log_c

    def gradient(self, P=0.0, log_size=0.0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(n, m) weights p over the largest, and logs: p = exp(P + Q + H) times them.

        exp(P + Q) is the size of L - L*, however small the gradient; P is given, and log_size,
        the logs of the rows' units.
        """
        exponent = self.base + (self.log_slope - P)
        Q = finite_or_zero(exponent.amax(dim=-1))
        sign, log_c = self.excess()
        each = exponent - Q[..., None] + log_size
        weights, H = relative(sign, each[..., None] + self.fall + log_c, (-2, -1))
        return weights, Q, H

    def log_gap(self, less=0.0) -> torch.Tensor:
        """log(L - L*) - less, with L* the loss when every softmax sits on its optimal token."""
        fade = self.loss.fade(self.scores.top, self.log_S)
        each = self.base + self.log_slope - torch.as_tensor(less)[..., None]
        return log_mean_of(each + self._log_lost + fade)

    def excess(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, m) sign and log of c, the mean score minus a token's; -inf where scores tie."""
        log_phi = torch.cat([self.log_opt[..., None], self.log_others], dim=-1)
        delta = self.scores.delta
        lost = torch.cat([torch.zeros_like(delta[..., :1]), delta], dim=-1)  # top - score
        sign, log_c = signed_excess(log_phi, lost)
        return sign[..., 1:], log_c[..., 1:]


def softmax_state(gaps: torch.Tensor, scores: Scores, loss: Loss) -> SoftmaxState:
    """The softmax of logit gaps (+inf at padding), with scores of either sign."""
    low = finite_or_zero(gaps.amin(dim=-1))
    fall = low[..., None] - gaps
    log_E = torch.logsumexp(fall, dim=-1)
    base = -torch.logaddexp(low, log_E)
    log_opt = -torch.nn.functional.softplus(log_E - low, threshold=1e9)
    log_opt = torch.where(log_E - low > 700, low - log_E, log_opt)  # softplus(x) = x there
    margin = scores.top - ((base[..., None] + fall).exp() * scores.delta).sum(dim=-1)
    return SoftmaxState(base + log_E, log_opt, base, fall, margin, scores, loss)


def signed_excess(log_phi: torch.Tensor, values: torch.Tensor):
    """Sign and log of (value of a token) - (mean value under the softmax), each (..., T).

    A signed log-sum over all tokens s of softmax_s (value - value_s): a plain difference would
    cancel when the softmax sits on one token.
    """
    difference = values[..., :, None] - values[..., None, :]
    terms = log_phi[..., None, :] + difference.abs().log()
    shift = finite_or_zero(terms.amax(dim=-1, keepdim=True))
    total = (difference.sign() * (terms - shift).exp()).sum(dim=-1)
    return total.sign(), total.abs().log() + shift.squeeze(-1)


def relative(sign: torch.Tensor, log_weight: torch.Tensor, dim: int | tuple[int, ...] = -1):
    """Weights over the largest along `dim`, and the log of that one: sign exp(log - shift), shift.

    Where all weights are zero the shift is 0, and they stay zero.
    """
    shift = finite_or_zero(log_weight.amax(dim=dim, keepdim=True))
    return sign * (log_weight - shift).exp(), shift.amax(dim=dim)


def finite_or_zero(values: torch.Tensor) -> torch.Tensor:
    """Infinite logarithms replaced by 0, so that a difference to them is none of infinities."""
    return values.nan_to_num(nan=math.nan, posinf=0.0, neginf=0.0)


def log_mean_loss(state: SoftmaxState) -> torch.Tensor:
    """log L."""
    return log_mean_of(state.loss.log_value(state.margin))


def log_mean_nonopt(state: SoftmaxState) -> torch.Tensor:
    """log of the mean of 1 - softmax(opt), from the smaller of the two sides."""
    nonopt = log_mean_of(state.log_nonopt)
    return torch.where(nonopt < -0.7, nonopt, torch.log1p(-log_mean_of(state.log_opt).exp()))


def log_mean_of(logs: torch.Tensor) -> torch.Tensor:
    """log of the mean of exponentials over the last axis."""
    return torch.logsumexp(logs, dim=-1) - math.log(logs.shape[-1])
