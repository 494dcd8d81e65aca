"""Random chains of transforms: natively, by the oracle, and by torchvision called with the same parameters."""
