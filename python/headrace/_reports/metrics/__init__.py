"""What the loaders of this process do, told to others: `headrace top`, Prometheus, OpenTelemetry.

Decision: 0056.
"""
