"""From an epoch's order to the batches that the caller gets."""
