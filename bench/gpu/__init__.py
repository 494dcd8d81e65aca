"""Benchmarks that need an NVIDIA GPU. `make gpu-check` and `make gpu-bench` run them."""
