"""One setting for all property tests, and one torch thread for each of the two test workers."""

# torch's compiler imports setuptools when it is first used; behind hundreds of tests that import
# has been seen to find the standard library's distutils in place of its own, and to refuse it.
import setuptools  # noqa: F401, I001
import torch
from hypothesis import settings

settings.register_profile("attnbias", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("attnbias")
torch.set_num_threads(1)
