"""Objects that a command line names as ``module:object`` or ``file.py:object``."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from headrace._base.safe_exceptions import named_message_of

_NAMED = re.compile(r"(?P<module>[A-Za-z_][\w.]*|.+\.py):(?P<object>[A-Za-z_][\w.]*)")


def is_object(text: str) -> bool:
    """Whether a text has the form ``module:object`` or ``file.py:object``."""
    return _NAMED.fullmatch(text) is not None


def named_object(text: str) -> object:
    """Returns the object that a text names; a function or a class is called without arguments.

    The current folder is searched for modules, as ``python -m`` does.

    Raises:
        ValueError: there is no such module, file or object, or its code raises an error.
    """
    match = _NAMED.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} does not name an object; write module:object or file.py:object")
    found: object = _import_module(match["module"])
    for name in match["object"].split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise ValueError(f"{match['module']} has no {match['object']}") from None
    if hasattr(found, "__getitem__") and hasattr(found, "__len__") and not isinstance(found, type):
        return found
    if not callable(found):
        return found
    try:
        return found()
    except Exception as error:
        raise ValueError(f"{text}() raised {named_message_of(error)}") from error


def _import_module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return _load_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = f"there is no module {error.name}" if error.name else str(error)
        raise ValueError(f"{name} cannot be imported: {missing}") from error
    except Exception as error:
        raise ValueError(f"{name} cannot be imported: {named_message_of(error)}") from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError("there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError("it is not Python code")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # so that its functions can be pickled
    spec.loader.exec_module(module)
    return module
