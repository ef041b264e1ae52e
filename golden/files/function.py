"""A function of a Python file, by its name: a black box, or a kernel that can be called."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from golden.errors import OperandError, UnknownNameError, nearest, one_line
from golden.files import inputs


def named_function(text: str) -> Callable[..., Any]:
    """The function of `file.py:function`, whose file is executed.

    Raises:
        OperandError: the text names none, or the file cannot be loaded. UnknownNameError: it has no such
            function. FileFormatError: the file cannot be read.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier():
        raise OperandError(f"'{text}' names no function, expected python:file.py:function")
    inputs.read_text(file)
    spec = importlib.util.spec_from_file_location(f"black_box_{Path(file).stem}", file)
    if spec is None or spec.loader is None:
        raise OperandError(f"{file} is no Python file, expected a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        what = one_line(error)
        raise OperandError(f"{file} cannot be loaded: {what}") from error
    found = getattr(module, name, None)
    if not callable(found):
        known = [key for key, value in vars(module).items() if callable(value)]
        raise UnknownNameError(f"{file} has no function '{name}'{nearest(name, known)}")
    function: Callable[..., Any] = found
    return function
