"""Statements sharper than the paper's, and where its hypotheses end."""
