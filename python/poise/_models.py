"""Models that come with Poise: lattices and graphs of spins, networks from files, RBMs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import documented, files_may_be_missing, path, real, text, whole

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
        """Of one state: the sides of a lattice, ``(rows, columns)`` or more, and ``(variables,)`` otherwise."""
        if self._core.rows and self._core.columns:
            return self._core.rows, self._core.columns
        return tuple(self._core.sides) or (self.variables,)

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

        ``query`` may be a list of names or numbers; ``answer.joint`` then has their joint distribution.

        >>> import poise
        >>> poise.ising(size=3, coupling=0.2).marginals(query=[0, 1]).joint.round(3)
        array([[0.317, 0.183],
               [0.183, 0.317]])
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
    >>> poise.model("ising:size=4,coupling=0.2")
    <poise model ising:size=4,coupling=0.2: 16 variables>
    """
    spec = text("spec", spec)
    with files_may_be_missing(*_paths_in(spec)):
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

    Evidence for a network is a file, a string such as ``"xray=yes,dysp=yes"`` where no file has that name, or a mapping
    from variables (names or numbers) to levels (names or numbers).

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
        with files_may_be_missing(name, "" if "=" in given else given):
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
