"""Log Z, the distance between draws, and what a model is made of: what the program has as commands."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping
from typing import Any, cast

from . import _core
from ._arguments import described, positive, whole
from ._errors import PoiseWarning, as_warnings
from ._fit import Fit
from ._models import Model
from ._table import ShownAsText
from ._target import Target, as_model

_MOST_DRAWS = 10_000  # of each run: the kernel of twice as many pooled takes 800 MB


class LogPartition(ShownAsText):
    """Log Z of a model; ``float(answer)`` is the natural logarithm."""

    def __init__(self, found: dict[str, Any], text: str) -> None:
        #: All there is to say, with the keys of the program's JSON.
        self.report: dict[str, Any] = found
        self._text = text
        #: What the user should know before using it.
        self.warnings: list[PoiseWarning] = as_warnings(found["warnings"])

    @property
    def log_partition(self) -> float:
        """The natural logarithm: exact where it is known, else the estimate."""
        of_rbm = self.report.get("exact") or self.report.get("ais")
        return float((of_rbm or self.report)["log_partition"])

    @property
    def log10_partition(self) -> float:
        of_rbm = self.report.get("exact") or self.report.get("ais")
        return float((of_rbm or self.report)["log10_partition"])

    @property
    def mcse(self) -> float | None:
        """The standard error of the natural logarithm; None where it is exact."""
        if "ais" in self.report:
            return None if self.report["exact"] else self.report["ais"]["mcse"]
        return self.report["mcse"]

    @property
    def evidence_probability(self) -> float | None:
        """P(evidence) of a Bayesian network with evidence."""
        return self.report.get("evidence_probability")

    def __float__(self) -> float:
        return self.log_partition

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<poise log Z: {self.log_partition:.10g}>"


def logz(model: Model | Target, method: str = "auto", **options: Any) -> LogPartition:
    """The partition function of a model: of a network by a junction tree where it fits, else by tempering; of an RBM by
    annealing, and exactly where one of its sides is small.

    ``method`` is ``"auto"``, ``"exact"`` or ``"sample"``; of an RBM ``"auto"``, ``"ais"``, ``"exact"`` or ``"both"``. Other
    options are those of ``poise logz``: ``chains``, ``seed``, ``threads``; ``memory`` and ``seconds``; of an RBM ``temperatures``.

    >>> import math, poise
    >>> float(poise.logz(poise.ising(size=(1, 2), coupling=0.5, boundary="open"))) == math.log(4 * math.cosh(0.5))
    True
    """
    if not isinstance(model, (Model, Target)):
        raise TypeError(f"model: found {type(model).__name__}, expected a model or a target of Poise")
    core, _user = as_model(model)
    rows = {row["name"]: row for row in (_core.logz_options_of_rbm() if _core.is_rbm(core) else _core.logz_options())}
    settings = {}
    for name, value in {"method": method, **options}.items():
        if name not in rows:
            raise TypeError(f"logz: there is no option {name!r} for this model; there are {', '.join(rows)}")
        if value is not None:
            settings[name] = described(rows[name], value)
    answered, text = _core.logz(core, _network_of(model), settings, shutil.get_terminal_size((100, 24)).columns)
    found = cast("dict[str, Any]", answered)
    if found["interrupted"] and found.get("log_partition") is None and not found.get("ais"):
        raise KeyboardInterrupt("logz: interrupted before there was an answer")
    answer = LogPartition(found, text)
    for warning in answer.warnings:
        warnings.warn(warning, stacklevel=2)
    return answer


def _network_of(model: Model | Target) -> _core.Network | None:
    if isinstance(model, Target) or _core.is_rbm(model._core):
        return None
    try:
        return model.network()
    except ValueError:
        return None  # fields and couplings that no table can hold, or a model that is none


def info(model: Model, *, memory: float = 4.0) -> dict[str, Any]:
    """What a model is made of, and whether an exact answer fits ``memory`` GiB, with the keys of ``poise info --json``.

    >>> import poise
    >>> found = poise.info(poise.potts(size=4, levels=3))
    >>> found["variables"], found["method"]
    (16, 'exact')
    """
    if not isinstance(model, Model):
        raise TypeError(f"model: found {type(model).__name__}, expected a model of Poise")
    limit = positive("memory", memory) * 2**30
    network = _network_of(model)
    if network is None:
        return {"version": _core.version(), "model": model.name, "variables": model.variables, "method": "sample"}
    return _core.network_info(network, limit)


def mmd(
    first: Fit,
    second: Fit,
    *,
    draws: int = 1000,
    permutations: int = 1000,
    seed: int = 1,
    threads: int = 0,
    correlated: bool = False,
) -> Mapping[str, Any]:
    """How far apart the draws of two runs are (maximum mean discrepancy), and a permutation test of whether that is more than
    chance: ``mmd``, ``p_value``, ``mmd2_u`` (without bias) and ``mmd2_v``, ``used`` and ``independent`` draws of each.

    At most ``draws`` of each run are used, so far apart that they are near independent, unless ``correlated``.

    >>> import poise
    >>> model = poise.ising(size=4, coupling=0.1)
    >>> a, b = (poise.sample(model, "gibbs", seed=seed, draws=500, progress=False) for seed in (1, 2))
    >>> poise.mmd(a, b)["p_value"] > 1e-3
    True
    """
    for name, fit in (("first", first), ("second", second)):
        if not isinstance(fit, Fit):
            raise TypeError(f"{name}: found {type(fit).__name__}, expected a fit")
    settings = {
        "permutations": whole("permutations", permutations, 0, 10_000_000),
        "seed": whole("seed", seed),
        "threads": whole("threads", threads, 0, 1_000_000),
    }
    return _core.mmd(first._core, second._core, whole("draws", draws, 1, _MOST_DRAWS), bool(correlated), settings)

