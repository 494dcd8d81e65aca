"""headrace top: what the loaders of other processes do."""
