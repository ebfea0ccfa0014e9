"""A model at several values of a parameter."""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import choice, documented, path, real, text
from ._errors import Interrupted, PoiseWarning
from ._models import Model, model as model_of
from ._progress import ProgressBars
from ._sample import run_settings, sample
from ._target import Target

if TYPE_CHECKING:
    import xarray

_OPTIONS = _core.run_options()


@documented(_OPTIONS)
def scan(
    model: Any,
    over: str | Mapping[str, npt.ArrayLike],
    sampler: str = "auto",
    *,
    exchange: str | bool = "auto",
    draws: int = 1000,
    warmup: int | None = None,
    chains: int = 4,
    seed: int = 1,
    thin: int | None = None,
    threads: int | None = None,
    seconds: float | None = None,
    init: str = "uniform",
    out: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xarray.Dataset:
    """Samples a model at several values of a parameter, as ``poise scan`` does.

    - ``model``: a model of Poise, its spec as on the command line, or a function that makes a model, or a target of your
      own, of a value.
    - ``over``: the parameter and its values, ``{"T": [2.0, 2.1, 2.2]}`` or ``"T=2.0..2.6:13"``.
    - ``exchange``: ``"auto"`` makes all points one replica exchange where the parameter multiplies log p: neighbours swap
      states, and their errors are correlated. ``True`` and ``False`` say so; points are independent of each other without.
    {options}
    - ``out``: a JSON file that a scan that was killed is continued from by the same call, the one of ``poise scan --json``.
    - ``progress``: a bar by default in terminals and notebooks.

    ``seconds`` is for all points together. The dataset has a variable for each observable of a spin model (of other models,
    for each monitor), with ``..._error`` and ``..._tau``, the integrated autocorrelation time in draws; after a replica
    exchange also ``..._correlation``, the correlation matrix of the errors, and ``acceptance``, of swaps with the next
    point. ``warnings`` has the codes at each point.

    >>> import poise
    >>> found = poise.scan(poise.ising(size=4), {"T": [2.0, 3.0]}, "gibbs", draws=200, progress=False)
    >>> found.energy.dims, bool(found.energy[0] < found.energy[1])
    (('T',), True)
    >>> found.energy_correlation.shape
    (2, 2)
    """
    key, values = _range(over)
    swaps = {True: "yes", False: "no"}[exchange] if isinstance(exchange, bool) else exchange
    choice("exchange", swaps, ["auto", "yes", "no"])
    if isinstance(model, str):
        model = model_of(text("model", model))
    name, models = _models_at(model, key, values)
    given = {"chains": chains, "seed": seed, "draws": draws, "warmup": warmup, "thin": thin, "threads": threads,
             "seconds": seconds, "init": init, "keep": "monitors"}  # fmt: skip
    file = "" if out is None else path("out", out)
    if any(isinstance(one, Target) for one in models):
        if swaps == "yes" or file:
            raise ValueError("scan: targets of your own run one by one, without exchange=True and out=")
        return _one_by_one(models, key, values, sampler, given, progress)
    settings = run_settings(models[0]._core, (), **{**given, "first_chain": 0, "memory": None, "device": "cpu"})
    settings |= {"sampler": _core.check_sampler(text("sampler", sampler)), "exchange": swaps}
    with ProgressBars(progress, key) as bars:
        points, how = _core.scan([one._core for one in models], name, key, values, settings, bars.callback, file)
    found = cast("dict[str, Any]", points)
    if found["interrupted"]:
        made = _dataset(found["points"], key) if found["points"] else None
        raise Interrupted(f"interrupted; {'the same call continues it' if file else 'out= would keep what was made'}", made)
    data = _dataset(found["points"], key)
    data.attrs |= {"model": name, "exchange": int(found["exchange"]), "points": how}
    _warn(data, key)
    return data


def _range(over: Any) -> tuple[str, list[float]]:
    if isinstance(over, str):
        return _core.scan_range(over)
    if not isinstance(over, Mapping) or len(over) != 1:
        raise TypeError('over: expected one parameter with its values, such as {"T": [2.0, 2.1]} or "T=2.0..2.6:13"')
    ((key, values),) = over.items()
    numbers = sorted({real(f"over[{key!r}]", value) for value in np.asarray(values).ravel().tolist()})
    if not numbers:
        raise ValueError(f"over: found no value of {key!r}, expected at least one")
    return text("over", key), numbers


def _models_at(model: Any, key: str, values: Sequence[float]) -> tuple[str, list[Any]]:
    if isinstance(model, Model):
        if model._source is None:
            raise ValueError(
                f"model: a model of arrays is made anew for each value: give a function, such as "
                f"lambda {key}: poise.ising(J=J, {key}={key})"
            )
        return model.name, [Model(core) for core in _core.models_at(*model._source, key, values)]
    if not callable(model):
        raise TypeError(f"model: found {type(model).__name__}, expected a model, a spec or a function of a value")
    made = [model(value) for value in values]
    for one in made:
        if not isinstance(one, (Model, Target)):
            raise TypeError(f"model: the function gave {type(one).__name__}, expected a model or a target")
    return getattr(model, "__name__", "function"), made


def _one_by_one(
    models: list[Any], key: str, values: Sequence[float], sampler: str, given: dict[str, Any], progress: bool | None
) -> xarray.Dataset:
    points = []
    if given["seconds"] is not None:
        given = {**given, "seconds": given["seconds"] / len(values)}
    for k, (one, value) in enumerate(zip(models, values, strict=True)):
        with python_warnings.catch_warnings():
            python_warnings.simplefilter("ignore", PoiseWarning)
            fit = sample(one, sampler, progress=progress, **{**given, "seed": given["seed"] + k})
        total = fit.chains * fit.num_draws
        rows = fit.observables or {
            row: {"value": found["mean"], "error": found["mcse"], "tau": total / found["ess"] if found["ess"] else None}
            for row, found in fit.report["monitors"].items()
            if row != "hamming"
        }
        codes = [warning.code for warning in fit.warnings]
        points.append({"value": value, "observables": rows, "warnings": codes, "sampler": fit.sampler})
    data = _dataset(points, key)
    data.attrs |= {"model": "function", "exchange": 0, "points": "points are independent of each other"}
    _warn(data, key)
    return data


def _dataset(points: list[dict[str, Any]], key: str) -> xarray.Dataset:
    import xarray

    def number(value: Any) -> float:
        return np.nan if value is None else float(value)

    names = list(dict.fromkeys(name for point in points for name in point.get("order", point["observables"])))
    columns: dict[str, Any] = {}
    for name in names:
        rows = [point["observables"].get(name, {}) for point in points]
        columns[name] = (key, [number(row.get("value")) for row in rows])
        columns[f"{name}_error"] = (key, [number(row.get("error")) for row in rows])
        columns[f"{name}_tau"] = (key, [number(row.get("tau")) for row in rows])
        if all("correlations" in row for row in rows):
            matrix = [[number(value) for value in row["correlations"]] for row in rows]
            columns[f"{name}_correlation"] = ((key, f"{key}_other"), np.array(matrix))
    if any("acceptance" in point for point in points):
        columns["acceptance"] = (key, [number(point.get("acceptance")) for point in points])
    columns["warnings"] = (key, np.array([" ".join(point["warnings"]) for point in points], dtype=object))
    columns["sampler"] = (key, np.array([point["sampler"] for point in points], dtype=object))
    values = [point["value"] for point in points]
    coordinates = {key: values}
    if any(name.endswith("_correlation") for name in columns):
        coordinates[f"{key}_other"] = values
    return xarray.Dataset(columns, coords=coordinates)


def _warn(data: xarray.Dataset, key: str) -> None:
    codes = [f"{key}={value:g}: {found}" for value, found in zip(data[key].values, data.warnings.values) if found]
    if codes and _core.rank() == 0:
        points = "1 point has" if len(codes) == 1 else f"{len(codes)} points have"
        python_warnings.warn(PoiseWarning(f"{points} warnings ({'; '.join(codes[:5])})"), stacklevel=4)


