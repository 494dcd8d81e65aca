"""Steps without a native twin: lowers them to calls of Python, after analysing what their code may access."""
