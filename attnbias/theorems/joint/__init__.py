"""The paper's statements on training W and u jointly."""
