"""Sets of vertices of a graph: independent sets and cliques."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import files_may_be_missing, path, whole
from ._ising import _beta
from ._models import Model


def mis(graph: Any, *, vertices: int | None = None, beta: float | None = None, T: float | None = None) -> Model:
    """The independent sets of a graph, at level 1: p(x) is proportional to exp(beta * size).

    :func:`optimize` finds the largest; :func:`sample` draws from this law, the hard-core model of physics. ``graph`` is
    a path to an edge list or a DIMACS file, two arrays with both ends of every edge (counted from 0; ``vertices`` is
    then the largest number and one, unless it is given), a SciPy sparse adjacency matrix, or a networkx graph, whose
    vertices are taken in its order.

    >>> import poise
    >>> ring = poise.mis(([0, 1, 2, 3, 4], [1, 2, 3, 4, 0]))
    >>> best = poise.optimize(ring)
    >>> best.objective, best.optimal
    (2.0, True)
    """
    return _sets("mis", graph, vertices, _fugacity(beta, T))


def clique(graph: Any, *, vertices: int | None = None, beta: float | None = None, T: float | None = None) -> Model:
    """The cliques of a graph, at level 1: p(x) is proportional to exp(beta * size). See :func:`mis`.

    >>> import poise
    >>> poise.optimize(poise.clique(([0, 0, 1, 2], [1, 2, 2, 3]))).state.tolist()
    [1, 1, 1, 0]
    """
    return _sets("clique", graph, vertices, _fugacity(beta, T))


def _fugacity(beta: float | None, temperature: float | None) -> float:
    return _beta(beta, temperature, least=-300.0)


def _sets(name: str, graph: Any, vertices: int | None, beta: float) -> Model:
    if not -300.0 <= beta <= 300.0:
        raise ValueError(f"beta: found {beta:g}, expected a number from -300 to 300")
    if isinstance(graph, (str, os.PathLike)):
        if vertices is not None:
            raise ValueError("vertices: a file says how many there are")
        file = path("graph", graph)
        keys = [("file", file), ("beta", repr(beta))]
        with files_may_be_missing(file):
            return Model(_core.model_from_parts(name, keys), source=(name, keys, "", ""))
    first, second, most = _edges(graph)
    if vertices is not None:
        given = whole("vertices", vertices, 1, 100_000_000)
        if given < most:
            raise ValueError(f"vertices: found {given}, but the graph has {most}")
        most = given
    if most == 0:
        raise ValueError("graph: found no vertex, expected at least one")
    return Model(_core.model_of_sets(first, second, most, name == "clique", beta))


def _edges(graph: Any) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], int]:
    """Both ends of every edge, and the number of vertices."""
    if hasattr(graph, "number_of_nodes") and hasattr(graph, "edges"):  # networkx
        number = {vertex: k for k, vertex in enumerate(graph)}
        pairs = [(number[edge[0]], number[edge[1]]) for edge in graph.edges]
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        least = graph.number_of_nodes()
    elif hasattr(graph, "tocoo"):  # a SciPy sparse matrix
        matrix = graph.tocoo()
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"graph: found a matrix of shape {matrix.shape}, expected a square one")
        ends = np.stack([matrix.row, matrix.col]).astype(np.int64)[:, matrix.data != 0]
        least = matrix.shape[0]
    else:
        try:
            first, second = (np.asarray(side) for side in graph)
        except (TypeError, ValueError):
            raise TypeError(
                "graph: expected a path, two arrays with the ends of all edges, a sparse matrix or a networkx graph"
            ) from None
        if first.ndim != 1 or first.shape != second.shape:
            raise ValueError(f"graph: found arrays of shape {first.shape} and {second.shape}, expected two equal lengths")
        if first.size and not (np.issubdtype(first.dtype, np.integer) and np.issubdtype(second.dtype, np.integer)):
            raise TypeError("graph: found arrays that are not of whole numbers, expected numbers of vertices")
        ends = np.stack([first, second]).astype(np.int64)
        least = 0
    if ends.size and ends.min() < 0:
        raise ValueError(f"graph: found a vertex {ends.min()}, expected numbers from 0 on")
    if ends.size and ends.max() >= 100_000_000:
        raise ValueError(f"graph: found a vertex {ends.max()}, expected numbers below 100000000")
    if (ends[0] == ends[1]).any():
        raise ValueError(f"graph: found an edge from {ends[0][ends[0] == ends[1]][0]} to itself, expected two vertices")
    most = max(least, int(ends.max()) + 1 if ends.size else 0)
    return ends[0].astype(np.uint32), ends[1].astype(np.uint32), most
