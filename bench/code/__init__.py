"""Programs as people write them, timed in torch's DataLoader and in headrace's, with only the import changed."""
