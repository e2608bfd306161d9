"""Claims of the paper on joint training, and ours that sharpen them."""
