"""Models from what users have in memory: dictionaries, arrays, sparse matrices and graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

_LARGEST = 1e100  # of fields and couplings, as in the program
_MOST_VARIABLES = 100_000_000


@dataclass
class Terms:
    """Numbers of single variables and of pairs i < j, each pair once."""

    linear: npt.NDArray[np.float64]
    first: npt.NDArray[np.uint32]
    second: npt.NDArray[np.uint32]
    values: npt.NDArray[np.float64]
    names: list[str]  # empty where variables are numbers


def terms_of(
    name: str,
    given: Any,
    *,
    matrix: str,
    variables: int | None = None,
    linear: Mapping[Any, Any] = MappingProxyType({}),
    ordered: bool = False,
) -> Terms:
    """Terms from a mapping of pairs to numbers, a square array or sparse matrix, or a networkx graph.

    ``matrix`` says what entries (i, j) and (j, i) of an array are: ``"sum"``, both count, or ``"pair"``, the one number
    of a pair, as in a symmetric or a triangular matrix. ``linear`` has terms of single variables beside a mapping. Variables
    that are whole numbers are positions, or with ``ordered`` names in the order in which they appear.
    """
    if hasattr(given, "number_of_nodes") and hasattr(given, "edges"):  # networkx
        labels = list(given)
        number = {vertex: k for k, vertex in enumerate(labels)}
        edges = [(number[i], number[j], data.get("weight", 1.0)) for i, j, data in given.edges(data=True)]
        rows, columns, values = _columns(name, edges)
        return _gather(name, rows, columns, values, len(labels), _names(labels))
    if isinstance(given, Mapping):
        labels, keys = _labels(name, given, linear)
        number = {label: k for k, label in enumerate(labels)}
        numbers = [*linear.values(), *given.values()]
        edges = [(number[i], number[j], value) for (i, j), value in zip(keys, numbers, strict=True)]
        rows, columns, values = _columns(name, edges)
        if not ordered and all(_is_number(label) for label in labels):
            at = np.array([int(label) for label in labels], dtype=np.int64)
            if at.size and at.min() < 0:
                raise ValueError(f"{name}: found a variable {at.min()}, expected numbers from 0 on")
            most = int(at.max()) + 1 if at.size else 0
            return _gather(name, at[rows], at[columns], values, max(most, variables or 0), [])
        return _gather(name, rows, columns, values, len(labels), _names(labels))
    if hasattr(given, "tocoo"):
        entries = given.tocoo()
        shape, rows, columns = entries.shape, np.asarray(entries.row), np.asarray(entries.col)
        values = np.asarray(entries.data)
    else:
        try:
            dense = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name}: expected a dictionary of pairs, a square array, a sparse matrix or a networkx graph"
            ) from None
        shape = dense.shape
        rows, columns = np.nonzero(dense) if dense.ndim == 2 else (np.zeros(0, int), np.zeros(0, int))
        values = dense[rows, columns] if dense.ndim == 2 else np.zeros(0)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ValueError(f"{name}: found an array of shape {tuple(shape)}, expected a square one")
    values = values.astype(np.float64)
    if matrix == "pair":
        rows, columns, values = _one_of_each_pair(name, rows, columns, values, shape[0])
    return _gather(name, rows.astype(np.int64), columns.astype(np.int64), values, shape[0], [])


def edges_of(name: str, given: Any) -> Any:
    """A list of edges, with or without a weight, as a mapping; anything else as it is."""
    if isinstance(given, Mapping) or hasattr(given, "tocoo") or hasattr(given, "number_of_nodes"):
        return given
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[0] == given.shape[1] and given.shape[0] > 3:
        return given
    sides = list(given) if isinstance(given, Iterable) else None
    if sides is None:
        raise TypeError(f"{name}: expected edges (i, j) or (i, j, weight), a sparse matrix or a networkx graph")
    if 2 <= len(sides) <= 3 and all(isinstance(side, np.ndarray) for side in sides):  # both ends, and weights
        if any(side.ndim != 1 or side.shape != sides[0].shape for side in sides):
            raise ValueError(f"{name}: found arrays of different shapes, expected both ends of all edges, and weights")
        sides = [tuple(edge) for edge in zip(*(side.tolist() for side in sides), strict=True)]
    out: dict[tuple[Any, Any], float] = {}
    for edge in sides:
        if not isinstance(edge, Iterable) or isinstance(edge, str) or len(pair := tuple(edge)) not in (2, 3):
            raise TypeError(f"{name}: found {edge!r}, expected an edge (i, j) or (i, j, weight)")
        key = (pair[0], pair[1])
        if key in out or (key[1], key[0]) in out:
            raise ValueError(f"{name}: two edges join {key[0]!r} and {key[1]!r}; add their weights up")
        out[key] = pair[2] if len(pair) == 3 else 1.0
    return out


def fields_of(name: str, given: Any, terms: Terms) -> npt.NDArray[np.float64]:
    """A number for each variable, from None, one number, a mapping or an array."""
    if given is None:
        return np.zeros(terms.linear.size)
    if isinstance(given, Mapping):
        out = np.zeros(terms.linear.size)
        place = {label: k for k, label in enumerate(terms.names)}
        for key, value in given.items():
            k = place.get(str(key)) if terms.names else (int(key) if _is_number(key) else None)
            if k is None or not 0 <= k < out.size:
                raise ValueError(f"{name}: found {key!r}, expected one of the {out.size} variables")
            out[k] = value
        return _checked(name, out)
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a number for each variable, as an array or a dictionary") from None
    if numbers.ndim == 0:
        numbers = np.full(terms.linear.size, float(numbers))
    if numbers.shape != (terms.linear.size,):
        raise ValueError(f"{name}: found an array of shape {numbers.shape}, expected {terms.linear.size} numbers")
    return _checked(name, np.ascontiguousarray(numbers))


def _labels(
    name: str, given: Mapping[Any, Any], linear: Mapping[Any, Any]
) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Variables in the order in which they appear, and the pair of each key; a key alone is a linear term."""
    keys: list[tuple[Any, Any]] = [(label, label) for label in linear]
    labels: dict[Any, None] = dict.fromkeys(linear)
    for key in given:
        pair = key if isinstance(key, tuple) else (key, key)
        if len(pair) != 2:
            raise ValueError(f"{name}: found the key {key!r}, expected a pair of variables")
        keys.append((pair[0], pair[1]))
        labels[pair[0]] = labels[pair[1]] = None
    # Where variables are tuples, a linear term with a variable as its key would be read as a pair.
    tuples = [label for label in labels if isinstance(label, tuple)]
    if tuples and len(tuples) < len(labels):
        other = next(label for label in labels if not isinstance(label, tuple))
        raise ValueError(
            f"{name}: found the variables {tuples[0]!r} and {other!r}, expected all or none to be tuples; "
            "a tuple as a key is a pair, and the linear term of i has the key (i, i), or is in h"
        )
    return list(labels), keys


def _is_number(label: Any) -> bool:
    return isinstance(label, (int, np.integer)) and not isinstance(label, bool)


def _names(labels: list[Any]) -> list[str]:
    if all(_is_number(label) for label in labels) and [int(label) for label in labels] == list(range(len(labels))):
        return []
    return [str(label) for label in labels]


def _columns(
    name: str, edges: list[tuple[int, int, Any]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    try:
        values = np.array([float(edge[2]) for edge in edges], dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: found a value that is not a number") from None
    rows = np.array([edge[0] for edge in edges], dtype=np.int64)
    columns = np.array([edge[1] for edge in edges], dtype=np.int64)
    return rows, columns, values


def _one_of_each_pair(name: str, rows: Any, columns: Any, values: Any, size: int) -> tuple[Any, Any, Any]:
    upper, lower = rows < columns, rows > columns
    if not upper.any() or not lower.any():
        return rows, columns, values
    above = sorted(zip((rows[upper] * size + columns[upper]).tolist(), values[upper].tolist(), strict=True))
    below = sorted(zip((columns[lower] * size + rows[lower]).tolist(), values[lower].tolist(), strict=True))
    if above != below:
        raise ValueError(f"{name}: found a matrix that is neither symmetric nor triangular; what a pair has is not clear")
    return rows[~lower], columns[~lower], values[~lower]


def _checked(name: str, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if numbers.size and not np.all(np.abs(numbers) <= _LARGEST):
        raise ValueError(f"{name}: found a number that is not finite or too large")
    return numbers


def _gather(name: str, rows: Any, columns: Any, values: Any, size: int, names: list[str]) -> Terms:
    """Linear terms apart, values of a pair added up."""
    if size == 0:
        raise ValueError(f"{name}: found no variable, expected at least one")
    if size > _MOST_VARIABLES:
        raise ValueError(f"{name}: found {size} variables, expected at most {_MOST_VARIABLES}")
    if len(set(names)) != len(names):
        raise ValueError(f"{name}: found two variables whose names are the same text")
    _checked(name, values)
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    linear = np.zeros(size)
    single = low == high
    np.add.at(linear, low[single], values[single])
    keys, place = np.unique(low[~single] * size + high[~single], return_inverse=True)
    pairs = np.zeros(keys.size)
    np.add.at(pairs, place, values[~single])
    return Terms(linear, (keys // size).astype(np.uint32), (keys % size).astype(np.uint32), pairs, names)
