"""Steps without a native twin: lowers them to calls of Python, after analysing what their code may access.

Decisions: 0008, 0068, 0078.
"""
