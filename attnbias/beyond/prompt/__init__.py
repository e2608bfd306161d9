"""Prompt tuning: a trained query in front of frozen weights."""
