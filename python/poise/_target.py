"""Targets of your own: log p in your code, sampled by every kernel there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import choice, text, whole
from ._checks import check_code
from ._frameworks import default_dtype, guess, make_code, parameters_of
from ._models import Model

if TYPE_CHECKING:
    from ._marginals import Marginals

_DTYPES = ("float32", "float64", "int8", "uint8", "int32", "int64")
_MOST_LEVELS = 128  # draws are kept as signed bytes


class Target:
    """A distribution given by your code. Made by :func:`target`."""

    def __init__(
        self,
        code: Any,
        name: str,
        cardinalities: npt.NDArray[np.int64],
        looks: dict[str, Any],
        check: bool,
        is_energy: bool = False,
    ):
        self._code = code
        self._is_energy = is_energy  # optimize then counts and minimises the energy
        self._name = name
        self._cardinalities = cardinalities
        self._looks = looks
        self._must_check = check

    @property
    def variables(self) -> int:
        return len(self._cardinalities)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one state, as your code sees it."""
        return tuple(self._looks["shape"])

    @property
    def framework(self) -> str:
        return self._code.framework

    def check(self) -> None:
        """Calls the code on random states and looks for the mistakes that would make the draws wrong: shape, dtype,
        finiteness, numbers that change from call to call or with the rest of the batch, a gradient that does not belong
        to log p. Done by itself before the first run.
        """
        check_code(self._code, self._cardinalities, self._looks)
        self._must_check = False

    def marginals(
        self,
        sampler: str = "auto",
        *,
        draws: int = 1000,
        warmup: int | None = None,
        chains: int = 4,
        seed: int = 1,
        thin: int | None = None,
        seconds: float | None = None,
        init: str | npt.ArrayLike = "dispersed",
        progress: bool | None = None,
    ) -> Marginals:
        """The probability of every level of every variable, with standard errors, from a run of chains.

        What is averaged is P(variable at level | all others), which tells more than a count of levels does: ``gibbs`` has it
        at every update, other samplers ask for it once per draw. That is one call of ``log_ratios``, or of log_prob with
        every neighbour where there is none. Arguments are those of :func:`sample`.

        >>> import numpy as np, poise
        >>> weights = np.array([0.5, -1.0, 2.0])
        >>> ratios = lambda x: (1 - 2 * x) * weights
        >>> mine = poise.target(lambda x: x @ weights, variables=3, log_ratios=ratios)
        >>> answer = mine.marginals("lb", progress=False)
        >>> answer[2].round(3)  # the variables are independent, so there is no error but rounding
        array([0.119, 0.881])
        """
        from ._sample import run_marginals

        given = {"draws": draws, "warmup": warmup, "chains": chains, "seed": seed, "thin": thin, "seconds": seconds}
        return run_marginals(self, sampler, progress, {**given, "init": init})

    def __repr__(self) -> str:
        return f"<poise target {self._name}: {self.variables} variables, in {self.framework}>"

    def _user_model(self) -> _core.UserModel:
        if self._must_check:
            self.check()
        return _core.user_model(self._code, self._name, self._cardinalities.tolist(), self._looks)


def target(
    log_prob: Any = None,
    *,
    energy: Any = None,
    variables: int | None = None,
    shape: int | Sequence[int] | None = None,
    levels: int | Sequence[int] | None = None,
    gradient: Callable[[Any], Any] | None = None,
    log_ratios: Callable[[Any], Any] | None = None,
    framework: str | None = None,
    dtype: Any = None,
    labels: Sequence[int] | None = None,
    one_hot: bool | None = None,
    device: Any = None,
    names: Sequence[str] | None = None,
    name: str | None = None,
    check: bool = True,
) -> Target:
    """A target from your own code.

    ``log_prob`` is a function of a batch of states, an array ``[chains, variables]``, that gives an array of as many
    numbers: log p up to a constant, ``-inf`` where there is no probability. It may also be an object with a method of
    that name (and perhaps ``gradient`` and ``log_ratios``, and attributes named like the arguments here), such as a
    ``torch.nn.Module``; a module without one is called itself.

    - ``energy`` in place of ``log_prob``: log p = -energy, up to a constant. ``gradient`` is then that of the energy, and
      :func:`optimize` looks for the smallest energy.
    - ``variables`` is their number; or ``shape`` is that of a state, such as (28, 28), and batches are
      ``[chains, 28, 28]``.
    - ``levels``: how many values a variable has, one number for all or one each. Values are 0, 1, ..., or ``labels``, such
      as (-1, 1). With ``one_hot`` a batch has one more dimension with a 1 at the level.
    - ``gradient(x)`` is the derivative of log p by x, of the shape of x, for the samplers that need it (``gwg``, ``flsb``,
      ``dlsb`` and its kin). PyTorch and JAX find it themselves.
    - ``log_ratios(x)``, where you know a faster way than to evaluate every neighbour: log p(x')/p(x) for every change of
      one variable: ``[chains, variables]`` (the flips), or ``[chains, variables, levels]`` with more than two levels.
    - ``framework``: what arrays your code takes, ``"numpy"``, ``"torch"`` or ``"jax"``. Modules and jitted functions are
      recognised, anything else is taken for NumPy. ``dtype`` is that of x: by default float64 in NumPy, float32 in JAX,
      and that of a module's parameters. ``device``: where a tensor is put before your code sees it, by default where
      the parameters are. Where that is a GPU, ``poise.sample(..., device="cuda")`` keeps states and chains there too, with
      the samplers ``gwg``, ``flsb``, ``dlmc``, ``dlsb`` and ``dmala`` and variables of two levels; so it does for JAX with CUDA.
    - ``check=False`` leaves the checks at the start out.

    >>> import numpy as np, poise
    >>> weights = np.array([0.5, -1.0, 2.0])
    >>> mine = poise.target(lambda x: x @ weights, variables=3, gradient=lambda x: np.broadcast_to(weights, x.shape))
    >>> fit = poise.sample(mine, sampler="gwg", draws=500, seed=1, progress=False)
    >>> bool(abs(fit.draws.mean((0, 1)) - 1 / (1 + np.exp(-weights))).max() < 0.1)
    True
    """
    if (log_prob is None) == (energy is None):
        raise TypeError("target: expected one of log_prob and energy")
    kind_of, owner = ("log_prob", log_prob) if energy is None else ("energy", energy)
    found = getattr(owner, kind_of) if callable(getattr(owner, kind_of, None)) else owner
    if not callable(found):
        raise TypeError(f"{kind_of}: found {type(owner).__name__}, expected a function or an object with {kind_of}(x)")
    log_prob = found if energy is None else _negative(found)

    def own(value: Any, attribute: str) -> Any:
        """What was not given may be an attribute of the object."""
        return value if value is not None else getattr(owner, attribute, None)

    gradient, log_ratios = own(gradient, "gradient"), own(log_ratios, "log_ratios")
    if energy is not None and gradient is not None:
        gradient = _negative(gradient)
    if variables is None and shape is None:
        variables, shape = own(None, "variables"), own(None, "shape")
    state = _state_shape(variables, shape)
    levels = own(levels, "levels")
    cardinalities = _cardinalities(2 if levels is None else levels, math.prod(state))
    library = own(framework, "framework")
    library = "auto" if library is None else choice("framework", library, ["auto", "numpy", "torch", "jax"])
    if library == "auto":
        library = guess(owner) if guess(owner) != "numpy" else guess(found)
    device = own(device, "device")
    if library != "torch":
        device = None
    elif device is None or dtype is None:
        found_dtype, found_device = parameters_of(owner)
        device = found_device if device is None else device
        dtype = found_dtype if own(dtype, "dtype") is None else dtype
    labels, names, dtype = own(labels, "labels"), own(names, "names"), own(dtype, "dtype")
    one_hot = bool(own(one_hot, "one_hot"))
    kind = default_dtype(library) if dtype is None else _dtype(dtype)
    looks = {
        "dtype": kind,
        "shape": list(state),
        "one_hot": one_hot,
        "width": int(cardinalities.max()),
        "labels": _labels(labels, int(cardinalities.max()), one_hot, kind),
        "names": _names(names, len(cardinalities)),
    }
    if one_hot and cardinalities.min() != cardinalities.max():
        raise ValueError("one_hot: every variable must have the same number of levels")
    code = make_code(library, log_prob, gradient, log_ratios, device=device, dtype=kind)
    if not kind.startswith("float") and gradient is None and library != "numpy":
        code.differentiable = False
    code.pick_moves = _MovePicker(cardinalities, looks)
    said = name if name is not None else getattr(owner, "__name__", type(owner).__name__)
    return Target(code, text("name", said), cardinalities, looks, check, is_energy=energy is not None)


def _negative(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What was given as an energy, or its gradient, as log p has it."""

    def negative(x: Any) -> Any:
        value = function(x)
        try:
            return -value
        except TypeError:
            return -np.asarray(value)

    return negative


def as_target(given: Any) -> Any:
    """A model or a target, from whatever the user has."""
    if isinstance(given, (Model, Target)):
        return given
    if isinstance(given, str):
        raise TypeError(f"found the string {given!r}, expected a model; poise.model({given!r}) makes one")
    if not hasattr(given, "log_prob") and callable(getattr(given, "energy", None)):
        return target(energy=given)
    if not hasattr(given, "log_prob"):
        raise TypeError(
            f"found {type(given).__name__}, expected a model (poise.ising, poise.read, ...), a target "
            "(poise.target(function, variables=...)) or an object with log_prob(x) and variables"
        )
    return target(given)


def shape_of(given: Any) -> tuple[int, ...]:
    """Of one state, where the core does not know it: of a target of the user's own, or a lattice of many dimensions."""
    if isinstance(given, Model):
        return given.shape if len(given.shape) > 2 else ()
    return given.shape if isinstance(given, Target) else ()


def as_model(given: Any) -> tuple[_core.Model, _core.UserModel | None]:
    """What the engine takes."""
    if isinstance(given, Model):
        return given._core, None
    user = given._user_model()
    return user.model, user


class _MovePicker:
    """From log ratios as users give them to those of the moves, in the order of the engine."""

    def __init__(self, cardinalities: npt.NDArray[np.int64], looks: dict[str, Any]) -> None:
        self.cardinalities = cardinalities
        self.looks = looks
        self.levels = int(cardinalities.max())

    def __call__(self, x: npt.NDArray[Any], found: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows, n = len(x), len(self.cardinalities)
        if self.levels == 2 and found.shape in ((rows, n), (rows, *self.looks["shape"])):
            free = self.cardinalities > 1
            found = found.reshape(rows, n)
            return np.ascontiguousarray(found if free.all() else found[:, free])
        if found.shape not in ((rows, n, self.levels), (rows, *self.looks["shape"], self.levels)):
            extra = f", {self.levels}" if self.levels > 2 else ""
            raise ValueError(
                f"log_ratios gave shape {found.shape}, expected ({rows}, {n}{extra}): a number for every change of one variable"
            )
        found = found.reshape(rows, n, self.levels)
        here = levels_of(x, self.looks).reshape(rows, n, 1)
        level = np.arange(self.levels)
        moves = (level != here) & (level < self.cardinalities[:, None])
        return np.ascontiguousarray(found[moves].reshape(rows, -1))


def levels_of(x: npt.NDArray[Any], looks: dict[str, Any]) -> npt.NDArray[np.int64]:
    """The levels behind a batch as user code sees it."""
    if looks["one_hot"]:
        return x.argmax(axis=-1)
    if looks["labels"]:
        order = np.argsort(looks["labels"])
        return order[np.searchsorted(np.asarray(looks["labels"])[order], x)]
    return x.astype(np.int64)


def _state_shape(variables: Any, shape: Any) -> tuple[int, ...]:
    if shape is None:
        if variables is None:
            raise TypeError("target: expected either variables, their number, or shape, that of a state")
        return (whole("variables", variables, 1),)
    sides = list(shape) if isinstance(shape, (Sequence, np.ndarray)) else [shape]
    state = tuple(whole("shape", side, 1) for side in sides)
    if not state:
        raise ValueError("shape: found no dimension, expected at least one")
    if variables is not None and whole("variables", variables, 1) != math.prod(state):
        raise ValueError(f"variables: found {variables}, expected {math.prod(state)}, as the shape {state} has it")
    return state


def _dtype(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            pass
    return choice("dtype", name, _DTYPES)


def _cardinalities(levels: Any, variables: int) -> npt.NDArray[np.int64]:
    found = np.asarray(levels)
    if found.dtype.kind not in "iu":
        raise TypeError(f"levels: found {levels!r}, expected a whole number, or one for each variable")
    if found.ndim > 0 and found.size != variables:
        raise ValueError(f"levels: found {found.size} numbers, expected one, or one for each of {variables} variables")
    out = np.broadcast_to(found.reshape(-1), (variables,)).astype(np.int64)
    if out.min() < 1 or out.max() > _MOST_LEVELS or out.max() < 2:
        raise ValueError(f"levels: found {out.min()} to {out.max()}, expected 2 to {_MOST_LEVELS} (1 is a fixed variable)")
    return out


def _labels(labels: Any, levels: int, one_hot: bool, dtype: str) -> list[float]:
    if labels is None:
        return []
    if not isinstance(labels, (Sequence, np.ndarray)) or isinstance(labels, str):
        raise TypeError(f"labels: found {labels!r}, expected a number for each level")
    if len(labels) == 0:
        return []
    if one_hot:
        raise ValueError("labels: they do not go with one_hot, where a level is a place")
    out = [whole("labels", value, -128) for value in labels]
    if len(out) < levels or len(set(out)) != len(out) or max(out) > 127:
        raise ValueError(f"labels: found {list(labels)!r}, expected {levels} different numbers from -128 to 127")
    if dtype == "uint8" and min(out) < 0:
        raise ValueError("labels: negative ones do not go with dtype uint8")
    return [float(value) for value in out]


def _names(names: Sequence[str] | None, variables: int) -> list[str]:
    if names is None:
        return []
    out = [text("names", value) for value in names]
    if len(out) != variables:
        raise ValueError(f"names: found {len(out)}, expected one for each of {variables} variables")
    return out
