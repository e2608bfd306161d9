"""Speed, side by side in one process, as ratios: `make bench`."""
