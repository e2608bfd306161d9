"""Rules of a reader's own, a direction and a length, and a problem that any rule runs on."""

import math

import torch

from attnbias.rules import Descent, Gradient, Vector


class Sign(Descent):
    """Sign descent with steps 1 / (t + 2), which is no power law in the loss or the gradient."""

    name = "sign descent"

    def length(self, gradient, step):
        return -math.log(step + 2)

    def direction(self, gradient, step, memory):
        return gradient.vector(gradient.descent.parts.sign())


class Remembering(Descent):
    """The mean of all unit directions so far."""

    name = "the mean of all directions"
    momentum = 1.0

    def memory(self, start):
        return {"sum": torch.zeros_like(start)}

    def length(self, gradient, step):
        return math.log(0.1) - gradient.log_norm

    def carry(self, move, gradient, step, memory):
        memory["sum"] = memory["sum"] + move
        return memory["sum"] / (step + 1)


class Bowl:
    """Half the square of a vector: the least that is a problem of the loop."""

    name, loss, coordinates, stops = "bowl", "half the square", "dense", True

    def __init__(self):
        self.start = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
        self.identity = (self.start,)

    def gradient(self, x):
        return Gradient(Vector(-x, torch.zeros(1), self.norms(x)), self.norms)

    @staticmethod
    def norms(x):
        return x.norm()[None]

    def spread(self, factors):
        return factors

    def record(self, x, gradient):
        return {"W": x}
