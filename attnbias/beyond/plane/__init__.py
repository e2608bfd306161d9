"""Two-dimensional replications: free queries and the modes of a factorisation."""
