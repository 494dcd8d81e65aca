"""Data in other machines: a server of objects on this one, with latency and faults, and the times of loaders."""
