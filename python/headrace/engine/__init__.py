"""Engines make a recipe's batches with native threads, in this machine's memory or on a device."""
