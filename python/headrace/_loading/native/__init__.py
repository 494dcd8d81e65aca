"""Turns an epoch's order into the batches that the caller gets."""
