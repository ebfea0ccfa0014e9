"""The best state of a model: proved where it can be, found by search elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import described, documented, real
from ._models import Model
from ._progress import _somebody_looks, _tqdm
from ._target import Target, as_model

_OPTIONS = {row["name"]: row for row in _core.optimize_options()}


@dataclass(frozen=True, eq=False)
class Solution:
    """One of the best states, and how often the search arrived there."""

    objective: float
    state: npt.NDArray[np.int8]
    count: int


class Optimum:
    """What :func:`optimize` found."""

    def __init__(self, core: _core.Best, shape: tuple[int, ...]) -> None:
        self._core = core
        self._json: dict[str, Any] = core.json()
        self.solutions = [
            Solution(row["objective"], state.reshape(shape), row["count"])
            for row, state in zip(self._json["solutions"], core.states, strict=True)
        ]

    @property
    def objective(self) -> float:
        """Of the best state, as the model counts it: the cut, the energy (of your own target too), the size, or log p."""
        return self._json["best"]["objective"]

    @property
    def state(self) -> npt.NDArray[np.int8]:
        """The best state, in the labels and the shape of the model: -1 and 1 for spins."""
        return self.solutions[0].state

    @property
    def optimal(self) -> bool:
        """Whether no state is better; true only where that is proved."""
        return self._json["optimal"]

    @property
    def bound(self) -> float | None:
        """No state is better than this; ``None`` where nothing is known."""
        return self._json["bound"]

    @property
    def reason(self) -> str:
        """What the answer rests on: how it is proved, or how it was found."""
        return self._json["reason"]

    @property
    def history(self) -> list[tuple[float, float]]:
        """Seconds and objective of every improvement."""
        return [(row["seconds"], row["objective"]) for row in self._json["history"]]

    @property
    def report(self) -> dict[str, Any]:
        """All there is to say, with the keys of the program's JSON."""
        return self._json

    def plot(self) -> str:
        """The objective over time, as SVG."""
        return self._core.plot()

    def __str__(self) -> str:
        return self._core.text(shutil.get_terminal_size((100, 24)).columns)

    def __repr__(self) -> str:
        proof = "optimal" if self.optimal else "not proved"
        return f"<poise optimum: {self._json['objective']} {self.objective:.12g}, {proof}>"


@documented(list(_OPTIONS.values()))
def optimize(
    model: Model | Target,
    *,
    target: float | None = None,
    init: npt.ArrayLike | None = None,
    fix: Mapping[Any, int] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Optimum:
    """The best state of a model: the largest cut or set, the best energy, or the largest log p.

    {options}
    - ``target``: stop as soon as the objective is at least as good.
    - ``init``: a state to start from, or several as rows, in the labels of the model.
    - ``fix``: variables, by number or name, and the label that each must keep.
    - ``progress``: a bar by default in terminals and notebooks.

    Ctrl-C gives the best state so far.

    >>> import numpy as np, poise
    >>> ring = np.arange(6)
    >>> best = poise.optimize(poise.ising(edges=(ring, (ring + 1) % 6, -np.ones(6)), field=np.zeros(6)))
    >>> best.objective, best.optimal, best.bound
    (6.0, True, 6.0)
    >>> best.state.tolist()
    [1, -1, 1, -1, 1, -1]
    """
    if not isinstance(model, (Model, Target)):
        raise TypeError(f"model: found {type(model).__name__}, expected a model or a target of Poise")
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"optimize: there is no option {name!r}; there are {', '.join(_OPTIONS)}")
    settings = {name: described(_OPTIONS[name], value) for name, value in options.items() if value is not None}
    limit = None if target is None else real("target", target)
    show = _somebody_looks() if progress is None else bool(progress)
    look = _Look(*as_model(model), model.shape)
    bar = _Bar() if show else None
    try:
        core = _core.optimize(
            look.core,
            settings,
            limit,
            look.states(init),
            look.fixed(fix),
            isinstance(model, Target) and model._is_energy,
            bar.update if bar else None,
        )
    finally:
        if bar:
            bar.close()
    return Optimum(core, model.shape)


class _Look:
    """How states and labels of a model look, for what users give."""

    def __init__(self, core: _core.Model, user: _core.UserModel | None, shape: tuple[int, ...]) -> None:
        self.core = core
        self.user = user  # kept alive: it has the code of a target
        self.shape = shape

    def levels(self, labels: npt.NDArray[Any], name: str) -> npt.NDArray[np.uint8]:
        known = self.core.labels
        if known:
            levels = np.full(labels.shape, 255, dtype=np.uint8)
            for level, label in enumerate(known):
                levels[labels == label] = level
            wrong = levels == 255
        else:
            wrong = (labels < 0) | (labels > 254) | (labels != np.floor(labels))
            levels = np.where(wrong, 0, labels).astype(np.uint8)
        if wrong.any():
            expected = f"one of {', '.join(map(str, known))}" if known else "numbers of levels from 0 on"
            raise ValueError(f"{name}: found {labels[wrong][0]}, expected {expected}")
        return levels

    def states(self, init: npt.ArrayLike | None) -> npt.NDArray[np.uint8]:
        variables = self.core.variables
        if init is None:
            return np.zeros((0, variables), dtype=np.uint8)
        states = np.asarray(init)
        if states.shape[-len(self.shape) :] != self.shape and states.shape[-1:] != (variables,):
            raise ValueError(f"init: found an array of shape {states.shape}, expected rows of {variables} labels")
        return np.ascontiguousarray(self.levels(states.reshape(-1, variables), "init"))

    def fixed(self, fix: Mapping[Any, int] | None) -> npt.NDArray[np.int16]:
        if not fix:
            return np.zeros(0, dtype=np.int16)
        variables, names = self.core.variables, self.core.names
        fixed = np.full(variables, -1, dtype=np.int16)
        for variable, label in fix.items():
            number = names.index(variable) if variable in names else variable
            if not isinstance(number, (int, np.integer)) or not 0 <= number < variables:
                raise ValueError(f"fix: found the variable {variable!r}, expected a name or a number below {variables}")
            fixed[number] = self.levels(np.asarray([label]), "fix")[0]
        return fixed


class _Bar:
    """A bar in parts of the limit, with the best so far beside it."""

    def __init__(self) -> None:
        self.bar: Any = None

    def update(self, objective: float, seconds: float, done: float) -> None:
        if self.bar is None:
            self.bar = _tqdm()(total=100, desc="optimize", unit="%", bar_format="{desc}: {bar} {n:.0f} %{postfix}")
        self.bar.n = 100 * done
        self.bar.set_postfix({"best": f"{objective:.10g}", "after": f"{seconds:.2f} s"}, refresh=False)
        self.bar.refresh()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
