"""How far to trust series of draws: R-hat, effective sample sizes and Monte Carlo errors of any array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import choice

_ESS = {"bulk": _core.ess_bulk, "tail": _core.ess_tail, "mean": _core.ess_mean}
_MCSE = {"mean": _core.mcse_mean, "sd": _core.mcse_sd}


def ess(x: npt.ArrayLike, kind: str = "bulk") -> Any:
    """Effective sample size of ``x[chain, draw]``, or of every series of ``x[chain, draw, ...]``: ``"bulk"`` of the
    rank-normalised draws, ``"tail"`` in the tails, ``"mean"`` for the mean. NaN where it is not defined.

    >>> import numpy as np, poise
    >>> x = np.random.default_rng(0).normal(size=(4, 1000))
    >>> bool(poise.ess(x) > 3000)
    True
    """
    return _each(x, _ESS[choice("kind", kind, list(_ESS))])


def rhat(x: npt.ArrayLike) -> Any:
    """Rank-normalised split R-hat of ``x[chain, draw]``, or of every series of ``x[chain, draw, ...]``: 1 where chains agree."""
    return _each(x, _core.r_hat)


def mcse(x: npt.ArrayLike, kind: str = "mean") -> Any:
    """Monte Carlo standard error of the ``"mean"`` or the ``"sd"`` of ``x[chain, draw]``, or of every series of
    ``x[chain, draw, ...]``."""
    return _each(x, _MCSE[choice("kind", kind, list(_MCSE))])


@dataclass(frozen=True)
class Expectation:
    """The mean of a function over draws, with its Monte Carlo error, effective sample size and R-hat: numbers, or arrays
    of the shape of one value of the function."""

    mean: Any
    mcse: Any
    ess: Any
    rhat: Any


def expectation(values: npt.ArrayLike) -> Expectation:
    array = np.asarray(values, dtype=float)
    mean = array.mean(axis=(0, 1))
    return Expectation(float(mean) if mean.ndim == 0 else mean, mcse(array), ess(array, "mean"), rhat(array))


def _each(x: npt.ArrayLike, diagnostic: Callable[[Any], float]) -> Any:
    array = np.asarray(x, dtype=float)
    if array.ndim < 2:
        raise ValueError(f"x: found {array.ndim} dimensions, expected x[chain, draw] or more of them")
    if array.ndim == 2:
        return diagnostic(np.ascontiguousarray(array))
    series = np.ascontiguousarray(np.moveaxis(array, (0, 1), (-2, -1)))
    out = np.empty(series.shape[:-2])
    for place in np.ndindex(out.shape):
        out[place] = diagnostic(series[place])
    return out
