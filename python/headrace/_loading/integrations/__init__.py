"""Adapters that make other libraries keep headrace's loader; each library's module is imported only when needed."""

__all__: list[str] = []
