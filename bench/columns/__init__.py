"""Times batches of rows of arrays."""
