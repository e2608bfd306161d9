"""The exponents of convergence, measured and predicted."""
