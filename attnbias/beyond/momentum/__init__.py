"""Momentum and dual acceleration beside the paper's rules."""
