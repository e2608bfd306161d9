"""Several selected tokens a sequence, and nonlinear read-outs."""
