"""A small classifier, examples and plain steps, which tests of optimizers train by hand."""

import torch

INPUTS = torch.randn(8, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


class Points(torch.nn.Module):
    """A classifier as transformers has them, which gives its loss."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        start = torch.randn(5, 2, generator=generator, dtype=torch.float64)
        self.map = torch.nn.Parameter(start)

    def forward(self, x, labels):
        return {"loss": torch.nn.functional.cross_entropy(9 * x @ self.map, labels)}


EXAMPLES = [{"x": x, "labels": k % 2} for k, x in enumerate(INPUTS)]
LABELS = torch.tensor([example["labels"] for example in EXAMPLES])


def by_hand(optimizer, model, steps: int) -> None:
    """Full batches, which two halves in any order add up to."""
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(INPUTS, LABELS)["loss"]
        loss.backward()
        optimizer.step(loss=loss)
