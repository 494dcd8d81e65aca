"""Publishes what the loaders of this process do: `headrace top`, Prometheus, OpenTelemetry.

Decision: 0056.
"""
