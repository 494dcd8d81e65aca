"""Tar shards in WebDataset's layout as a dataset with random access."""
