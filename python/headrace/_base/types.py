"""Types that several districts name: arrays of any dtype, states for checkpoints, functions of programs.

They are for annotations: numpy is imported for the type checker only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: An array whose dtype is checked where it is used.
Array: TypeAlias = "NDArray[Any]"

#: The path of a file or a folder.
AnyPath: TypeAlias = "str | os.PathLike[str]"

#: What ``state_dict()`` returns: names, and values that can be pickled.
State: TypeAlias = dict[str, Any]

#: A function of a program: its arguments and results are the program's.
Function: TypeAlias = Callable[..., Any]
