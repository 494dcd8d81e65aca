"""The arguments of each command. Commands are imported when they run, so that --help does not import torch."""
