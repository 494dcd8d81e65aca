"""The speed of each transform of docs/transforms.md's table, beside torch's loader on one core."""
