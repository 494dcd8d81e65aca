"""Other libraries' datasets, as sources."""
