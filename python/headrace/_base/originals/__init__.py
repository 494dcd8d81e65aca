"""Which functions of other libraries native threads stand for, and whether they are still the libraries' own.

Decision: 0081.
"""
