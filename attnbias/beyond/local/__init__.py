"""Locally optimal tokens, and how far the global one reaches."""
