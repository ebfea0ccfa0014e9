"""Chains in your hands: a few steps, a look at the states, a few steps more."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import text, whole
from ._errors import PoiseWarning
from ._sample import levels_from_labels, run_settings
from ._target import as_model, as_target, shape_of


class Stepper:
    """Persistent chains for training loops and experiments.

    ``target`` is anything :func:`sample` takes. A target of your own may change between calls of :meth:`step`, as the
    weights of a network do in training: log p is computed anew at the beginning of each. ``device`` is as in
    :func:`sample`; states are given back in the memory of this machine.

    >>> import poise
    >>> stepper = poise.Stepper(poise.ising(size=4, coupling=0.2), chains=3, sampler="gibbs", seed=1)
    >>> states = stepper.step(10)
    >>> states.shape, states.dtype
    ((3, 4, 4), dtype('int8'))
    """

    def __init__(
        self,
        target: Any,
        chains: int = 64,
        sampler: str = "gwg",
        *,
        seed: int = 1,
        init: str | npt.ArrayLike = "uniform",
        threads: int | None = None,
        device: str = "cpu",
    ) -> None:
        with warnings.catch_warnings():
            # A target in training is not yet what it will be, so a poor gradient says little.
            warnings.simplefilter("ignore", PoiseWarning)
            target = as_target(target)
            model, self._user = as_model(target)
        self._model = model
        settings = run_settings(
            model, shape_of(target), chains=chains, seed=seed, init=init, threads=threads, device=device
        )
        inner = shape_of(target) or ((model.rows, model.columns) if model.rows else (model.variables,))
        self._shape = (settings["chains"], *inner)
        self._core = _core.Stepper(model, text("sampler", sampler), settings)
        self._labels = np.asarray(model.labels, dtype=np.int8) if model.labels else None

    def step(self, steps: int = 1) -> npt.NDArray[np.int8]:
        """Moves all chains on and gives back their states."""
        steps = whole("steps", steps)
        if self._user is not None:
            self._core.target_changed()
        self._core.step(steps)
        return self.states

    def warm_up(self, steps: int) -> None:
        """Learns the balancing function of a sampler that has one to learn; other samplers just make the steps."""
        if self._user is not None:
            self._core.target_changed()
        self._core.warm_up(whole("steps", steps))

    @property
    def states(self) -> npt.NDArray[np.int8]:
        """Labels of all variables, ``[chains, ...]``: a new array. Assign to it to put chains elsewhere."""
        levels = self._core.levels
        values = levels.astype(np.int8) if self._labels is None else self._labels[levels]
        return values.reshape(self._shape)

    @states.setter
    def states(self, values: npt.ArrayLike) -> None:
        levels = levels_from_labels(self._model, values, self._shape[0], self._shape[1:])
        self._core.set_levels(np.ascontiguousarray(np.broadcast_to(levels, (self._shape[0], self._model.variables))))

    @property
    def log_prob(self) -> npt.NDArray[np.float64]:
        """log p of the present states."""
        if self._user is not None:
            self._core.target_changed()
        return self._core.log_prob()

    @property
    def acceptance_rate(self) -> float:
        """Mean acceptance probability of all steps so far."""
        return self._core.acceptance_rate

    @property
    def steps_per_sweep(self) -> int:
        """Steps that give every variable one chance to change, on average."""
        return self._core.steps_per_sweep

    @property
    def evals(self) -> dict[str, int]:
        """What the steps have cost so far, by kind of evaluation."""
        return self._core.evals
