"""Storage of images: the index of tar shards."""
