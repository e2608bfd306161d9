"""The paper's statements on training W alone."""
