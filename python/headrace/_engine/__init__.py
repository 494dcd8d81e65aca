"""A recipe's batches from native threads; the counters of these threads."""
