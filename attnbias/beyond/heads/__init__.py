"""Several heads that share one output."""
