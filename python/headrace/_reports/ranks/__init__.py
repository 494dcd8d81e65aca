"""The ranks of a job compared: which one the others wait for, why, and what that costs.

Decision: 0120.
"""
