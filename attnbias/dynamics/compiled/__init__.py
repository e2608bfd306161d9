"""The compiled engine: the two named losses on the CPU."""
