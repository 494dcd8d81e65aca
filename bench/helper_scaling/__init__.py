"""A simulation of what helpers add to a host with several GPUs."""
