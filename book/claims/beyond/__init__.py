"""Claims of our own beyond the paper, one file a room of `attnbias.beyond`."""
