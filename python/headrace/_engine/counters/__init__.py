"""The pace of an epoch: how long its consumer and the threads that serve it work and wait.

Decision: 0039.
"""
