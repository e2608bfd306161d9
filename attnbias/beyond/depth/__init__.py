"""Two layers: attention to the queries of the second."""
