"""Arguments are checked before anything runs, and what is wrong is said in one sentence."""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def whole(name: str, value: Any, least: int = 0, most: int = 2**62) -> int:
    """An integer of any integer type, from ``least`` to ``most``."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: found {value!r}, expected a whole number")
    is_whole = isinstance(value, (float, np.floating)) and float(value).is_integer()  # as 1e6 is
    try:
        number = int(value) if is_whole else operator.index(cast("SupportsIndex", value))
    except TypeError:
        raise TypeError(f"{name}: found {value!r}, expected a whole number") from None
    if number < least:
        raise ValueError(f"{name}: found {number}, expected a whole number of at least {least}")
    if number > most:
        raise ValueError(f"{name}: found {number}, expected a whole number of at most {most}")
    return number


def real(name: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"{name}: found {value!r}, expected a number")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: found {value!r}, expected a number") from None
    if not np.isfinite(number):
        raise ValueError(f"{name}: found {number}, expected a finite number")
    return number


def positive(name: str, value: Any) -> float:
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name}: found {number:g}, expected a number greater than 0")
    return number


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: found {value!r}, expected one of {', '.join(options)}")
    if value not in options:
        raise ValueError(f"{name}: found {value!r}, expected one of {', '.join(options)}")
    return value


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: found {value!r}, expected a string")
    return value


def described(row: dict[str, Any], value: Any) -> Any:
    """The value of an option that the core describes, checked."""
    name, kind = row["name"], row["kind"]
    if kind == "whole":
        return whole(name, value, row["least"], row["most"])
    if kind == "choice":
        return choice(name, value, row["choices"])
    return positive(name, value) if kind == "real" else text(name, value)


def documented(rows: list[dict[str, Any]]) -> Callable[[F], F]:
    """Writes the options of a function into its docstring, at ``{options}``: help and defaults are the core's."""

    def write(function: F) -> F:
        keywords = inspect.signature(function).parameters
        known = [row for row in rows if row["name"] in keywords or "options" in keywords]
        default = [f" (default {row['default_text']})." if row["default_text"] else "." for row in known]
        lines = [f"- ``{row['name']}``: {row['help']}{end}" for row, end in zip(known, default, strict=True)]
        before, found, after = (function.__doc__ or "").partition("{options}")
        indent = before[len(before.rstrip(" ")) :]
        function.__doc__ = before + f"\n{indent}".join(lines) + after if found else before
        return function

    return write


def path(name: str, value: Any) -> str:
    """A path as a string; whether it exists is for the reader to say."""
    try:
        found = os.fsdecode(os.fspath(value))
    except TypeError:
        raise TypeError(f"{name}: found {value!r}, expected a path") from None
    try:
        found.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: found {found!r}, expected a path in UTF-8") from None
    return found


class files_may_be_missing:
    """Turns the core's word on a file that is not there into a FileNotFoundError with the same sentence."""

    def __init__(self, *paths: str) -> None:
        self.paths = [p for p in paths if p]

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, ValueError) and any(p in str(error) and not os.path.exists(p) for p in self.paths):
            raise FileNotFoundError(str(error)) from None


class folder_may_be_missing:
    """The same for a file that is to be written."""

    def __init__(self, target: str) -> None:
        self.target = target

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if not self.target or not isinstance(error, ValueError) or self.target not in str(error):
            return
        if os.path.isdir(self.target) and not self.target.rstrip("/").endswith(".zarr"):
            raise IsADirectoryError(str(error)) from None
        if not os.path.isdir(os.path.dirname(self.target) or "."):
            raise FileNotFoundError(str(error)) from None
