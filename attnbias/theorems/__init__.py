"""One function a statement of the paper: checks that read traces and never train."""
