"""Functions of states that are evaluated while a run samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Function = Callable[[npt.NDArray[np.int8]], npt.ArrayLike]


def values_of(name: str, function: Function, states: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    """What a function gives for a batch of states: one number for each."""
    found = np.asarray(function(states))
    if found.shape != (len(states),):
        raise ValueError(
            f"{name}: found a result of shape {found.shape} for {len(states)} states, expected one number for each"
        )
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{name}: found a result of {found.dtype}, expected numbers")
    return np.ascontiguousarray(found, dtype=np.float64)


def observers(observe: Mapping[str, Function] | None, shape: tuple[int, ...]) -> list[tuple[str, Any]]:
    """The functions as the engine calls them, with batches of flat states."""
    if observe is None:
        return []
    if not isinstance(observe, Mapping):
        raise TypeError(f'observe: found {type(observe).__name__}, expected a dictionary such as {{"name": function}}')
    out = []
    for name, function in observe.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"observe: found the name {name!r}, expected a string")
        if not callable(function):
            raise TypeError(f"observe: found {function!r} for {name!r}, expected a function of a batch of states")
        out.append((name, _Observer(f"observe[{name!r}]", function, shape)))
    return out


class _Observer:
    def __init__(self, name: str, function: Function, shape: tuple[int, ...]) -> None:
        self.name = name
        self.function = function
        self.shape = shape

    def __call__(self, states: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
        return values_of(self.name, self.function, states.reshape(-1, *self.shape))
