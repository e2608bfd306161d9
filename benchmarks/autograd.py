"""The baseline: the loop one would write with the layer as a torch Module and autograd."""

from __future__ import annotations

import torch

from attnbias import Dataset, SelfAttention, optimal_tokens


def autograd_loop(data: Dataset, step_size: float, steps: int, target: torch.Tensor):
    """NGD by autograd with the four records (loss, |W|, opt score, cosine) each iteration.

    All sequences go through one batched forward; records stay in tensors, so that nothing
    but the arithmetic is timed.
    """
    X, y, unit = data.X, data.y, target / target.norm()
    index, opt = torch.arange(data.n), optimal_tokens(data)
    layer = SelfAttention(data.d, u=data.u)
    W, u = layer.W, layer.u
    records = torch.empty(steps, 4, dtype=X.dtype)
    for step in range(steps):
        phi = layer.attention(X)
        loss = torch.exp(-y * ((phi[:, None] @ X).squeeze(1) @ u)).mean()
        (grad,) = torch.autograd.grad(loss, W)
        with torch.no_grad():
            norm = W.norm()
            records[step, 0] = loss
            records[step, 1] = norm
            records[step, 2] = phi[index, opt].mean()
            records[step, 3] = (W * unit).sum() / norm
            W -= step_size * grad / grad.norm()
    return W.detach(), records
