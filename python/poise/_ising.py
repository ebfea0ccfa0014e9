"""Spins on lattices and graphs, Potts models, cuts and quadratic functions: from numbers, arrays and files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import choice, files_may_be_missing, path, positive, real, whole
from ._arrays import edges_of, fields_of, terms_of
from ._models import _LARGEST, Model, _numbers, _side


def ising(
    size: int | tuple[int, ...] | None = None,
    coupling: float | None = None,
    *,
    beta: float | None = None,
    T: float | None = None,
    J: Any = None,
    h: Any = None,
    field: npt.ArrayLike | str | os.PathLike[str] | None = None,
    edges: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike] | None = None,
    graph: str | os.PathLike[str] | None = None,
    boundary: str = "torus",
    mu: float | None = None,
    sigma: float | None = None,
    seed: int | None = None,
    case: int | None = None,
    image: str | None = None,
    noise: str | None = None,
) -> Model:
    """Spins of -1 and +1: log p(x) = sum of field[i] x[i] + sum over edges of coupling x[i] x[j].

    - A lattice: ``size`` (30) is the side or ``(rows, columns)``, or has three to eight sides; ``coupling`` (1) is that of
      neighbours, ``boundary`` ``"torus"`` or ``"open"``. Its field is an array of that shape, or a path to an image or to numbers; or it is drawn
      as for the segmentation of a noisy image: strength ``mu`` of a drawn object (``image="square"``, ``"disc"`` or ``"shapes"``),
      noise of width ``sigma`` (``noise="uniform"`` or ``"gaussian"``) by ``seed``; ``case`` 1 to 4 are the settings of
      the literature.
    - A graph: ``J`` is a dictionary ``{(i, j): coupling}``, a symmetric or triangular array, a SciPy sparse matrix or a
      networkx graph (attribute ``weight``), ``h`` a number for each variable (an array or a dictionary) or for all, 0 where
      it is not given. Or ``edges`` are three arrays, both ends of every edge and its coupling, with ``field`` an array; or
      ``graph`` is a path to an edge list.
    - ``beta`` multiplies couplings and fields; ``T`` is one over it.

    >>> import numpy as np, poise
    >>> poise.ising(size=(4, 6), coupling=0.4).shape
    (4, 6)
    >>> poise.ising(J={(0, 1): 1.0, (1, 2): -0.5}, h=[0.1, 0, 0], T=2.0).variables
    3
    >>> poise.ising(size=(4, 4, 4), coupling=0.2).shape
    (4, 4, 4)
    >>> ring = np.arange(5)
    >>> poise.ising(edges=(ring, (ring + 1) % 5, np.ones(5)), field=np.zeros(5)).variables
    5
    """
    boundary = choice("boundary", boundary, ["torus", "open"])
    given = {"size": size, "coupling": coupling, "graph": graph, "mu": mu, "sigma": sigma, "seed": seed, "case": case,
             "image": image, "noise": noise, "boundary": None if boundary == "torus" else boundary}
    scale = _beta(beta, T)
    if J is not None:
        return _ising_terms(J, h, scale, {**given, "edges": edges, "field": field})
    if h is not None:
        raise ValueError("h: does not go without J; the field of a lattice is field=")
    if edges is not None:
        return _ising_graph(edges, field, scale, given)
    if field is not None and not isinstance(field, (str, os.PathLike)):
        given = {k: given[k] for k in ("mu", "sigma", "seed", "case", "image", "noise", "graph")}
        strength = 1.0 if coupling is None else real("coupling", coupling)
        return _ising_lattice(size, strength, field, boundary == "torus", scale, given)
    keys: list[tuple[str, str]] = []
    if size is not None:
        keys.append(("size", _size_text(size)))
    if scale != 1.0:
        keys.append(("beta", repr(scale)))
    if case is not None:
        keys.append(("case", str(whole("case", case))))
    for name, key, value in [("coupling", "coupling", coupling), ("mu", "mu", mu), ("sigma", "sigma", sigma)]:
        if value is not None:
            keys.append((key, repr(real(name, value))))
    if seed is not None:
        keys.append(("seed", str(whole("seed", seed))))
    if boundary != "torus":
        keys.append(("boundary", boundary))
    if noise is not None:
        keys.append(("field", choice("noise", noise, ["uniform", "gaussian"])))
    if image is not None:
        keys.append(("image", choice("image", image, ["square", "shapes", "disc"])))
    graph_path = "" if graph is None else path("graph", graph)
    if graph_path:
        keys.append(("graph", graph_path))
    field_path = "" if field is None else path("field", field)
    with files_may_be_missing(field_path, graph_path):
        core = _core.model_from_parts("ising", keys, field_path)
    return Model(core, source=("ising", keys, field_path, ""))


def potts(
    size: int | tuple[int, ...] = 30,
    levels: int = 3,
    coupling: float = 1.0,
    *,
    beta: float | None = None,
    T: float | None = None,
    field: float = 0.0,
    sigma: float = 0.0,
    seed: int | None = None,
    boundary: str = "torus",
) -> Model:
    """A lattice of variables with several levels that like to agree with their neighbours.

    ``size`` is the side or ``(rows, columns)``, or has three to eight sides. ``field`` is that of level 0. ``beta`` multiplies
    coupling, field and sigma; ``T`` is one over it. With ``sigma`` every level of every site has a field of its own beside it, drawn from
    U(-sigma, sigma) by ``seed`` (1).

    >>> import poise
    >>> poise.potts(size=2, levels=3, coupling=0.5).cardinalities
    array([3, 3, 3, 3])
    """
    boundary = choice("boundary", boundary, ["torus", "open"])
    spec = (
        f"potts:size={_size_text(size)},levels={whole('levels', levels, 2)},coupling={real('coupling', coupling)!r},"
        f"field={real('field', field)!r},boundary={boundary}"
    )
    if sigma != 0.0:
        spec += f",sigma={real('sigma', sigma)!r}"
    if seed is not None:
        spec += f",seed={whole('seed', seed)}"
    if _beta(beta, T) != 1.0:
        spec += f",beta={_beta(beta, T)!r}"
    return Model(_core.model_from_text(spec), source=(spec, None, "", ""))


def maxcut(graph: Any = None, beta: float | None = None, *, T: float | None = None, file: Any = None) -> Model:
    """Cuts of a graph with weights, p(x) proportional to exp(beta cut(x)).

    ``graph`` is a path to a file in the format of the G-set; edges ``(i, j)`` or ``(i, j, weight)``; a dictionary
    ``{(i, j): weight}``; two or three arrays, both ends of all edges and their weights; a symmetric or triangular SciPy sparse
    matrix or array of weights; or a networkx graph (attribute ``weight``). ``file`` is another name of ``graph``. ``T`` is one
    over ``beta`` (1). ``log_prob`` is beta cut(x), and log Z the log of the sum of exp(beta cut(x)).

    >>> import poise
    >>> poise.optimize(poise.maxcut([(0, 1), (1, 2), (2, 0, 0.5)])).objective
    2.0
    """
    graph, scale = _one_of("graph", graph, file), _beta(beta, T, least=1e-100)
    if isinstance(graph, (str, os.PathLike)):
        return _from_file("maxcut", graph, [("beta", repr(scale))])
    terms = terms_of("graph", edges_of("graph", graph), matrix="pair")
    if terms.linear.any():
        raise ValueError("graph: an edge joins a vertex with itself")
    name = f"maxcut with {terms.linear.size} vertices and {terms.values.size} edges given as numbers, beta={scale!r}"
    cut = _core.cut_of_edges(terms.first, terms.second, terms.values, terms.linear.size, scale, name)
    return Model(cut.model(terms.names), lambda: cut.network(terms.names))


def qubo(
    Q: Any = None,
    offset: float = 0.0,
    *,
    h: Any = None,
    beta: float | None = None,
    T: float | None = None,
    sense: str = "min",
    vartype: str | None = None,
    file: Any = None,
) -> Model:
    """A quadratic function of zeros and ones as a distribution, p(x) proportional to exp(-beta energy(x)), or to
    exp(beta energy(x)) with ``sense="max"``.

    - ``Q`` is a dictionary ``{(i, j): value}``, where ``(i, i)`` or ``i`` is linear and values of one pair add up; a square array
      or a SciPy sparse matrix, energy(x) = x Q x + offset; a ``BinaryQuadraticModel`` of dimod, whose offset and vartype
      count; or a path to a file in the format of dimod or qbsolv (``file`` is another name).
    - ``h``: linear terms beside those of ``Q``, a dictionary or an array.
    - ``vartype="SPIN"`` makes the variables -1 and +1 in place of 0 and 1; a file says it by ``# vartype=SPIN``.
    - ``T`` is one over ``beta`` (1).

    Whole numbers as variables are positions in a state; other variables, and all of a ``BinaryQuadraticModel``, have the
    order in which they appear, and their text as ``names``. ``log_prob`` is -beta energy(x), or beta energy(x) with
    ``sense="max"``, and log Z the log of the sum of its exponentials.

    >>> import poise
    >>> best = poise.optimize(poise.qubo({("a", "a"): -1, ("b", "b"): -1, ("a", "b"): 2}, offset=1))
    >>> best.objective
    0.0
    >>> poise.optimize(poise.qubo({("a", "b"): 1}, h={"a": -2, "b": 1}, vartype="SPIN")).objective
    -4.0
    """
    Q, scale = _one_of("Q", Q, file), _beta(beta, T, least=1e-100)
    sense, shift = choice("sense", sense, ["min", "max"]), real("offset", offset)
    given = getattr(vartype, "name", vartype)  # dimod.SPIN has a name
    spins = choice("vartype", given or "BINARY", ["BINARY", "SPIN"]) == "SPIN"
    if isinstance(Q, (str, os.PathLike)):
        if spins:
            raise ValueError("vartype: a file says it by a line '# vartype=SPIN'")
        if h is not None:
            raise ValueError("h: does not go with a file, which has linear terms")
        keys = [("beta", repr(scale)), ("sense", sense)]
        return _from_file("qubo", Q, keys + ([("offset", repr(shift))] if shift else []))
    if all(hasattr(Q, part) for part in ("linear", "quadratic", "offset", "vartype")):  # dimod
        if h is not None or vartype is not None:
            raise ValueError("Q: a BinaryQuadraticModel has its linear terms and its vartype")
        spins = getattr(Q.vartype, "name", Q.vartype) == "SPIN"
        shift += float(Q.offset)
        Q, h = dict(Q.quadratic), dict(Q.linear)
        terms = terms_of("Q", Q, matrix="sum", linear=h, ordered=True)
    elif isinstance(Q, Mapping) and isinstance(h, Mapping):
        terms = terms_of("Q", Q, matrix="sum", linear=h)
    else:
        count = len(h) if h is not None and np.ndim(h) == 1 else None
        terms = terms_of("Q", Q, matrix="sum", variables=count)
        terms.linear += fields_of("h", h, terms)
    name = f"qubo with {terms.linear.size} variables given as numbers, beta={scale!r}, sense={sense}"
    function = _core.qubo_of_terms(
        terms.linear, terms.first, terms.second, terms.values, (scale, shift), (sense == "max", spins), name
    )
    return Model(function.model(terms.names), lambda: function.network(terms.names))


def _ising_terms(J: Any, h: Any, beta: float, given: Mapping[str, Any]) -> Model:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: does not go with J, which says it all")
    if not isinstance(J, Mapping) and not hasattr(J, "tocoo") and not hasattr(J, "number_of_nodes"):
        J = edges_of("J", J) if isinstance(J, list) and J and isinstance(J[0], tuple) else J
    only = len(h) if h is not None and not isinstance(h, Mapping) and np.ndim(h) == 1 else None
    terms = terms_of("J", J, matrix="pair", variables=only)
    if terms.linear.any():
        raise ValueError("J: a variable is coupled with itself; x[i] x[i] is 1, and fields are in h")
    numbers = fields_of("h", h, terms)
    name = f"ising with {numbers.size} spins and {terms.values.size} edges given as numbers"
    if beta != 1.0:
        name += f", beta={beta!r}"
    ising = _core.ising_graph(terms.first, terms.second, terms.values * beta, numbers * beta, name)
    return Model(ising.model(terms.names), lambda: ising.network(terms.names))


def _ising_lattice(
    size: Any, coupling: float, field: npt.ArrayLike, torus: bool, beta: float, given: Mapping[str, Any]
) -> Model:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: does not go with a field that is an array, in which nothing is drawn")
    if np.ndim(field) > 2:
        numbers = _numbers("field", field, np.ndim(field))
        if size is not None and _sides(size) != numbers.shape:
            raise ValueError(f"field: found an array of shape {numbers.shape}, expected {_sides(size)}, as size has it")
        name = f"ising:size={_size_text(numbers.shape)},coupling={coupling!r} with a field given as numbers"
        ising = _core.ising_grid(list(numbers.shape), torus, coupling * beta, numbers.ravel() * beta, name)
        return Model(ising.model(), ising.network)
    numbers = _numbers("field", field, 2)
    if size is not None and len(_sides(size)) > 2:
        raise ValueError(f"field: found an array of shape {numbers.shape}, expected {_sides(size)}, as size has it")
    if size is not None and _side(size) != numbers.shape:
        rows, columns = _side(size)
        raise ValueError(
            f"field: found {numbers.shape[0]} x {numbers.shape[1]} numbers, expected {rows} x {columns}, as size has it"
        )
    if abs(coupling) > _LARGEST:
        raise ValueError(f"coupling: found {coupling:g}, expected at most {_LARGEST:g} in size")
    rows, columns = numbers.shape
    name = f"ising:size={rows}x{columns},coupling={coupling!r} with a field given as numbers"
    ising = _core.ising_lattice(rows, columns, torus, coupling * beta, numbers.ravel() * beta, name)
    return Model(ising.model(), ising.network)


def _ising_graph(edges: Any, field: Any, beta: float, given: Mapping[str, Any]) -> Model:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: does not go with edges, which say it all")
    try:
        first, second, couplings = edges
    except (TypeError, ValueError):
        raise TypeError("edges: expected three arrays, both ends of every edge and its coupling") from None
    ends = [np.asarray(first), np.asarray(second)]
    for end in ends:
        if end.ndim != 1 or end.dtype.kind not in "iu":
            raise TypeError("edges: the ends of edges must be whole numbers, one array for each end")
    strength = _numbers("edges, the couplings", couplings, 1)
    if not ends[0].size == ends[1].size == strength.size:
        raise ValueError(
            f"edges: found {ends[0].size} first ends, {ends[1].size} second ends and {strength.size} couplings, expected "
            "as many of each"
        )
    if field is None or isinstance(field, (str, os.PathLike)):
        raise TypeError("field: expected an array with a number for each variable of the graph")
    numbers = _numbers("field", field, 1)
    for end in ends:
        if end.size and (end.min() < 0 or end.max() >= numbers.size):
            raise ValueError(f"edges: an end is not one of the {numbers.size} variables that field has numbers for")
    pairs = np.stack([np.minimum(*ends), np.maximum(*ends)], axis=1) if ends[0].size else np.zeros((0, 2), int)
    if np.any(pairs[:, 0] == pairs[:, 1]):
        raise ValueError("edges: an edge joins a variable with itself")
    if len(np.unique(pairs, axis=0)) != len(pairs):
        raise ValueError("edges: two edges join the same variables; add their couplings up")
    name = f"ising with {numbers.size} spins and {len(pairs)} edges given as numbers"
    ising = _core.ising_graph(
        pairs[:, 0].astype(np.uint32), pairs[:, 1].astype(np.uint32), strength * beta, numbers * beta, name
    )
    return Model(ising.model(), ising.network)


def _from_file(kind: str, file: str | os.PathLike[str], keys: list[tuple[str, str]]) -> Model:
    name = path("file", file)
    settings = [("file", name), *keys]
    with files_may_be_missing(name):
        return Model(_core.model_from_parts(kind, settings), source=(kind, settings, "", ""))


def _one_of(name: str, value: Any, file: Any) -> Any:
    if (value is None) == (file is None):
        raise TypeError(f"{name}: expected one of {name} and file")
    return value if file is None else path("file", file)


def _beta(beta: float | None, temperature: float | None, least: float = 0.0) -> float:
    """The inverse temperature, by whichever name it was given."""
    if temperature is not None:
        if beta is not None:
            raise ValueError("T: says the same as beta, expected one of them")
        return 1.0 / positive("T", temperature)
    value = 1.0 if beta is None else real("beta", beta)
    if value < least:
        raise ValueError(f"beta: found {value:g}, expected a number {'above 0' if least > 0 else 'of at least 0'}")
    return value


def _sides(size: Any) -> tuple[int, ...]:
    if isinstance(size, (tuple, list)) and len(size) > 2:
        if len(size) > 8:
            raise ValueError(f"size: found {len(size)} sides, expected a side, (rows, columns) or up to 8 sides")
        return tuple(whole("size", side, 1) for side in size)
    return _side(size)


def _size_text(size: Any) -> str:
    sides = _sides(size)
    return str(sides[0]) if len(sides) == 2 and sides[0] == sides[1] else "x".join(str(side) for side in sides)
