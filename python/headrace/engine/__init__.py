"""Engines: a recipe's batches made by native threads, in this machine's memory or on a device."""
