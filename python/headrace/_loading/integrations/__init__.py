"""Adapters that make other libraries keep headrace's loader; each library's module is imported only when needed.

Decision: 0010.
"""

__all__: list[str] = []
