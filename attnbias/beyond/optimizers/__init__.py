"""Any torch optimizer on exact gradients, and which margin it comes nearest to."""
