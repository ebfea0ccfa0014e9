"""Models that come with Poise: lattices and graphs of spins, networks from files, RBMs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import choice, documented, files_may_be_missing, path, real, text, whole

if TYPE_CHECKING:
    from ._marginals import Marginals

# The text of a spec or a path, or the name of a spec and its settings; the files of a field and of evidence.
_Source = tuple[str, list[tuple[str, str]] | None, str, str]
_LARGEST = 1e100  # of fields and couplings, as in the program


class Model:
    """What can be sampled. Made by :func:`ising`, :func:`potts`, :func:`read` and the like, not by hand.

    >>> import poise
    >>> model = poise.ising(size=8, coupling=0.4)
    >>> model.variables, model.shape, model.labels
    (64, (8, 8), (-1, 1))
    """

    def __init__(
        self,
        core: _core.Model,
        network: _core.Network | Callable[[], _core.Network] | None = None,
        source: _Source | None = None,
    ):
        self._core = core
        self._network = network  # or what makes it, since few ask for it
        self._source = source  # what the model can be made from again; None where it exists in memory only

    @property
    def name(self) -> str:
        """The model as it is written on the command line."""
        return self._core.name

    @property
    def variables(self) -> int:
        """How many variables there are."""
        return self._core.variables

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one state: ``(rows, columns)`` for lattices, ``(variables,)`` otherwise."""
        if self._core.rows and self._core.columns:
            return self._core.rows, self._core.columns
        return (self.variables,)

    @property
    def labels(self) -> tuple[int, ...]:
        """What stands for the levels 0, 1, ... in draws: (-1, 1) for spins; empty where it is the level itself."""
        return tuple(self._core.labels)

    @property
    def cardinalities(self) -> npt.NDArray[np.int64]:
        """How many levels each variable has."""
        return np.asarray(self._core.cardinalities, dtype=np.int64)

    @property
    def names(self) -> list[str]:
        """Of the variables; empty where they have none."""
        return list(self._core.names)

    @documented(_core.marginals_options())
    def marginals(self, method: str = "auto", **options: Any) -> Marginals:
        """The probability of every level of every variable, of all models but ``rbm``.

        {options}
        - ``progress``: a bar by default in terminals and notebooks.

        >>> import poise
        >>> answer = poise.potts(size=3, levels=3, coupling=0.5).marginals()
        >>> answer.method
        'exact'
        >>> answer[0].round(3)
        array([0.333, 0.333, 0.333])
        """
        from ._marginals import find_marginals

        return find_marginals(self, method, options)

    def network(self) -> _core.Network:
        """The model as a network of factors, where it is one."""
        if isinstance(self._network, _core.Network):
            return self._network
        if self._network is not None:
            self._network = self._network()
        else:
            name, settings, field, evidence = self._source or ("", None, "", "")
            values = [value for _, value in settings or []]
            text_of = name + "".join(f"{',' if k else ':'}{key}={v}" for k, (key, v) in enumerate(settings or []))
            if self._source is None or any("," in v for v in values) or not _core.has_network(text_of):
                raise ValueError(
                    "marginals: only networks have them, which all models but rbm are where names of files hold no commas"
                )
            self._network = _core.network_from_text(text_of, field, evidence)
        return self._network

    def __repr__(self) -> str:
        return f"<poise model {self.name}: {self.variables} variables>"


def model(spec: str) -> Model:
    """A model as it is written on the command line of the program: a spec or a file.

    >>> import poise
    >>> poise.model("ising:size=4,lambda=0.2")
    <poise model ising:size=4,lambda=0.2: 16 variables>
    """
    spec = text("spec", spec)
    with files_may_be_missing(*_paths_in(spec)):
        return Model(_core.model_from_text(spec), source=(spec, None, "", ""))


def ising(
    size: int | tuple[int, int] | None = None,
    coupling: float | None = None,
    *,
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

    - A lattice: ``size`` (30) is the side or ``(rows, columns)``, ``coupling`` (1) that of neighbours, ``boundary``
      ``"torus"`` or ``"open"``. Its field is an array of that shape, or a path to an image or to numbers; or it is drawn
      as for the segmentation of a noisy image: strength ``mu`` of a drawn object (``image="square"``, ``"disc"`` or ``"shapes"``),
      noise of width ``sigma`` (``noise="uniform"`` or ``"gaussian"``) by ``seed``; ``case`` 1 to 4 are the settings of
      the literature.
    - A graph: ``edges`` are three arrays, both ends of every edge and its coupling, with ``field`` an array; or ``graph``
      is a path to an edge list.

    >>> import numpy as np, poise
    >>> poise.ising(size=(4, 6), coupling=0.4).shape
    (4, 6)
    >>> ring = np.arange(5)
    >>> poise.ising(edges=(ring, (ring + 1) % 5, np.ones(5)), field=np.zeros(5)).variables
    5
    """
    boundary = choice("boundary", boundary, ["torus", "open"])
    if edges is not None:
        given = {"size": size, "coupling": coupling, "graph": graph, "mu": mu, "sigma": sigma, "seed": seed, "case": case,
                 "image": image, "noise": noise, "boundary": None if boundary == "torus" else boundary}
        return _ising_graph(edges, field, given)
    if field is not None and not isinstance(field, (str, os.PathLike)):
        given = {"mu": mu, "sigma": sigma, "seed": seed, "case": case, "image": image, "noise": noise, "graph": graph}
        return _ising_lattice(size, 1.0 if coupling is None else real("coupling", coupling), field, boundary, given)
    keys: list[tuple[str, str]] = []
    if size is not None:
        rows, columns = _side(size)
        keys.append(("size", f"{rows}x{columns}" if rows != columns else str(rows)))
    if case is not None:
        keys.append(("case", str(whole("case", case))))
    for name, key, value in [("coupling", "lambda", coupling), ("mu", "mu", mu), ("sigma", "sigma", sigma)]:
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
    size: int | tuple[int, int] = 30,
    levels: int = 3,
    coupling: float = 1.0,
    *,
    field: float = 0.0,
    sigma: float = 0.0,
    seed: int | None = None,
    boundary: str = "torus",
) -> Model:
    """A lattice of variables with several levels that like to agree with their neighbours.

    ``field`` is that of level 0. With ``sigma`` every level of every site has a field of its own beside it, drawn from
    U(-sigma, sigma) by ``seed`` (1).

    >>> import poise
    >>> poise.potts(size=2, levels=3, coupling=0.5).cardinalities
    array([3, 3, 3, 3])
    """
    rows, columns = _side(size)
    boundary = choice("boundary", boundary, ["torus", "open"])
    spec = (
        f"potts:size={rows}x{columns},levels={whole('levels', levels, 2)},coupling={real('coupling', coupling)!r},"
        f"field={real('field', field)!r},boundary={boundary}"
    )
    if sigma != 0.0:
        spec += f",sigma={real('sigma', sigma)!r}"
    if seed is not None:
        spec += f",seed={whole('seed', seed)}"
    return Model(_core.model_from_text(spec), source=(spec, None, "", ""))


def bernoulli(size: int = 10000, *, mu: float = 0.0, sigma: float = 0.5, seed: int = 1) -> Model:
    """Independent variables, whose log odds of being up are drawn from N(mu, sigma^2).

    >>> import poise
    >>> poise.bernoulli(size=20).variables
    20
    """
    spec = (
        f"bernoulli:size={whole('size', size)},mu={real('mu', mu)!r},sigma={real('sigma', sigma)!r},"
        f"seed={whole('seed', seed)}"
    )
    return Model(_core.model_from_text(spec), source=(spec, None, "", ""))


def fhmm(
    length: int = 200, chains: int = 50, *, start: float = 0.1, stay: float = 0.8, sigma: float = 2.0, seed: int = 1
) -> Model:
    """A factorial hidden Markov model: hidden chains of zeros and ones, given a noisy sum of them.

    A chain is on at first with probability ``start`` and stays as it was with probability ``stay``. Seen at each of
    ``length`` times is b + the sum of the weights of the chains that are on + sigma N(0, 1). Weights, b and what is seen
    are drawn by ``seed``. Variable t * chains + k is chain k at time t.

    >>> import poise
    >>> poise.fhmm(length=5, chains=3).variables
    15
    """
    spec = (
        f"fhmm:length={whole('length', length)},chains={whole('chains', chains)},start={real('start', start)!r},"
        f"stay={real('stay', stay)!r},sigma={real('sigma', sigma)!r},seed={whole('seed', seed)}"
    )
    return Model(_core.model_from_text(spec), source=(spec, None, "", ""))


def maxcut(file: str | os.PathLike[str], beta: float = 1.0) -> Model:
    """Cuts of a graph with weights, p(x) proportional to exp(beta cut(x)); the file is in the format of the G-set.

    ``log_prob`` is beta cut(x), and log Z the log of the sum of exp(beta cut(x)).
    """
    return _from_file("maxcut", file, [("beta", repr(real("beta", beta)))])


def qubo(file: str | os.PathLike[str], beta: float = 1.0, sense: str = "min") -> Model:
    """A quadratic function of zeros and ones as a distribution; the file is in the format of dimod or qbsolv.

    Draws are zeros and ones, or -1 and +1 where the file says ``# vartype=SPIN``. ``log_prob`` is -beta energy(x), or beta energy(x) with ``sense="max"``, and log Z the log of the sum of its exponentials.
    """
    return _from_file(
        "qubo", file, [("beta", repr(real("beta", beta))), ("sense", choice("sense", sense, ["min", "max"]))]
    )


def rbm(
    weights: npt.ArrayLike | str | os.PathLike[str],
    visible_bias: npt.ArrayLike | None = None,
    hidden_bias: npt.ArrayLike | None = None,
    *,
    shape: tuple[int, int] | None = None,
) -> Model:
    """A restricted Boltzmann machine with its hidden units summed out.

    ``weights`` is a ``.safetensors`` or ``.npz`` file, or an array ``[hidden, visible]`` with the biases (0 where they
    are not given). ``shape`` says that the visible units are an image.

    >>> import numpy as np, poise
    >>> poise.rbm(np.zeros((3, 6)), shape=(2, 3)).shape
    (2, 3)
    """
    if isinstance(weights, (str, os.PathLike)):
        if visible_bias is not None or hidden_bias is not None or shape is not None:
            raise ValueError("rbm: a file of weights has biases and shape of its own")
        file = path("weights", weights)
        with files_may_be_missing(file):
            return Model(_core.model_from_parts("rbm", [("weights", file)]), source=("rbm", [("weights", file)], "", ""))
    matrix = _numbers("weights", weights, 2).astype(np.float32)
    hidden, visible = matrix.shape
    first = np.zeros(visible) if visible_bias is None else _numbers("visible_bias", visible_bias, 1)
    second = np.zeros(hidden) if hidden_bias is None else _numbers("hidden_bias", hidden_bias, 1)
    for name, found, expected in [("visible_bias", first.size, visible), ("hidden_bias", second.size, hidden)]:
        if found != expected:
            raise ValueError(f"{name}: found {found} numbers, expected {expected}, as the weights have it")
    rows, columns = (0, 0) if shape is None else _side(shape)
    if shape is not None and rows * columns != visible:
        raise ValueError(f"shape: found {rows} x {columns}, expected {visible} units in all")
    name = f"rbm with {visible} visible and {hidden} hidden units"
    return Model(
        _core.model_from_rbm(
            np.ascontiguousarray(matrix), first.astype(np.float32), second.astype(np.float32), (rows, columns), name
        )
    )


def read(
    file: str | os.PathLike[str], evidence: str | os.PathLike[str] | Mapping[Any, Any] | None = None
) -> Model:
    """A model from a file, by its ending: networks (``.uai``, ``.bif``), cuts (``.mc``), quadratic functions (``.qubo``,
    ``.coo``).

    Evidence for a network is a file, or a mapping from variables (names or numbers) to levels (names or numbers).

    >>> import pathlib, tempfile, poise
    >>> folder = tempfile.TemporaryDirectory()
    >>> net = pathlib.Path(folder.name) / "net.uai"
    >>> _ = net.write_text("MARKOV 2  2 2  1  2 0 1  4  1 2 3 4")
    >>> model = poise.read(net, evidence={0: 1})
    >>> model.marginals()[1].round(3)
    array([0.429, 0.571])
    """
    name = path("file", file)
    if not name.endswith((".uai", ".bif", ".mc", ".qubo", ".coo")):
        raise ValueError(f"file: found {name!r}, expected one that ends in .uai, .bif, .mc, .qubo or .coo")
    if evidence is not None and not name.endswith((".uai", ".bif")):
        raise ValueError("evidence: only networks take evidence (.uai and .bif files), and this model is none")
    if evidence is None or isinstance(evidence, (str, os.PathLike)):
        given = "" if evidence is None else path("evidence", evidence)
        with files_may_be_missing(name, given):
            if name.endswith((".uai", ".bif")):
                network = _core.network_from_text(name, evidence=given)
                return Model(_core.model_from_network(network), network, (name, None, "", given))
            return Model(_core.model_from_text(name, evidence=given), source=(name, None, "", given))
    if not isinstance(evidence, Mapping):
        raise TypeError(f"evidence: found {type(evidence).__name__}, expected a path or a mapping of variables to levels")
    with files_may_be_missing(name):
        whole_network = _core.network_from_text(name)
    pairs = [_observation(whole_network, variable, level) for variable, level in evidence.items()]
    said = ", ".join(f"{variable} = {level}" for variable, level in evidence.items())
    network = _core.observe(whole_network, pairs, f"{name} given {said}" if said else name)
    return Model(_core.model_from_network(network), network=network)


def _observation(network: _core.Network, variable: Any, level: Any) -> tuple[int, int]:
    if isinstance(variable, str):
        if variable not in network.names:
            raise ValueError(f"evidence: the network has no variable named {variable!r}")
        i = network.names.index(variable)
    else:
        i = whole("evidence, a variable", variable)
        if i >= len(network.cardinalities):
            raise ValueError(f"evidence: variable {i} does not exist, the network has {len(network.cardinalities)}")
    if isinstance(level, str):
        names = network.level_names[i] if network.level_names else []
        if level not in names:
            levels = f"levels {', '.join(names)}" if names else "levels without names"
            raise ValueError(f"evidence: {network.variable_name(i)} has {levels}, found {level!r}")
        return i, names.index(level)
    k = whole(f"evidence, the level of {network.variable_name(i)}", level)
    if k >= network.cardinalities[i]:
        raise ValueError(
            f"evidence: level {k} of {network.variable_name(i)} does not exist, it has {network.cardinalities[i]} levels"
        )
    return i, k


def _ising_lattice(
    size: Any, coupling: float, field: npt.ArrayLike, boundary: str, given: Mapping[str, Any]
) -> Model:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: does not go with a field that is an array, in which nothing is drawn")
    numbers = _numbers("field", field, 2)
    if size is not None and _side(size) != numbers.shape:
        rows, columns = _side(size)
        raise ValueError(
            f"field: found {numbers.shape[0]} x {numbers.shape[1]} numbers, expected {rows} x {columns}, as size has it"
        )
    if abs(coupling) > _LARGEST:
        raise ValueError(f"coupling: found {coupling:g}, expected at most {_LARGEST:g} in size")
    rows, columns = numbers.shape
    name = f"ising:size={rows}x{columns},lambda={coupling!r} with a field given as numbers"
    ising = _core.ising_lattice(rows, columns, boundary == "torus", coupling, numbers.ravel(), name)
    return Model(ising.model(), ising.network)


def _ising_graph(edges: Any, field: Any, given: Mapping[str, Any]) -> Model:
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
        pairs[:, 0].astype(np.uint32), pairs[:, 1].astype(np.uint32), np.ascontiguousarray(strength), numbers, name
    )
    return Model(ising.model(), ising.network)


def _from_file(kind: str, file: str | os.PathLike[str], keys: list[tuple[str, str]]) -> Model:
    name = path("file", file)
    settings = [("file", name), *keys]
    with files_may_be_missing(name):
        return Model(_core.model_from_parts(kind, settings), source=(kind, settings, "", ""))


def _side(size: Any) -> tuple[int, int]:
    if isinstance(size, (tuple, list)):
        if len(size) != 2:
            raise ValueError(f"size: found {size!r}, expected a side or (rows, columns)")
        return whole("size", size[0], 1), whole("size", size[1], 1)
    return whole("size", size, 1), whole("size", size, 1)


def _numbers(name: str, values: npt.ArrayLike, dimensions: int) -> npt.NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected an array of numbers") from None
    if array.ndim != dimensions:
        raise ValueError(f"{name}: found an array of {array.ndim} dimensions, expected {dimensions}")
    if array.size == 0 and dimensions == 2:
        raise ValueError(f"{name}: found an empty array")
    array = np.ascontiguousarray(array)
    if array.size and not np.all(np.abs(array) <= _LARGEST):
        raise ValueError(f"{name}: found a number that is not finite or too large")
    return array


def _paths_in(spec: str) -> list[str]:
    """The files that a spec names."""
    if spec.endswith((".uai", ".bif", ".mc", ".qubo", ".coo")):
        return [spec]
    settings = [part.partition("=") for part in spec.partition(":")[2].split(",")]
    return [value for key, _, value in settings if key in ("file", "graph", "weights")]
