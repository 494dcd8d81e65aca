"""The version of the package, and whether the package index has one."""

__version__ = "0.1.0"

#: Whether `pip install headrace` works. All texts follow it: errors through `messages.install_command`, README.md and
#: docs through `tools/release/install_texts.py`.
RELEASED = False
