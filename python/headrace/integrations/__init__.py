"""What other libraries must be told to keep headrace's loader, one module a library, which is imported when needed."""

__all__: list[str] = []
