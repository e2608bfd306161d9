"""One setting for all property tests, and one torch thread for each of the two test workers."""

import torch
from hypothesis import settings

settings.register_profile("attnbias", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("attnbias")
torch.set_num_threads(1)
