"""A run that has ended: its draws, its diagnostics, its file."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import pathlib
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import files_may_be_missing, folder_may_be_missing, path, positive, whole
from ._diagnostics import Expectation, expectation
from ._errors import PoiseWarning, as_warnings
from ._picture import Picture, framed, write_text
from ._table import ShownAsText, Table

_SUMMARY = ("mean", "sd", "mcse", "ess", "ess_tail", "r_hat")


class Fit(ShownAsText):
    """The result of :func:`sample` and :func:`load`. ``print(fit)`` shows the summary table.

    >>> import poise
    >>> fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=200, chains=2, seed=1, progress=False)
    >>> fit.draws.shape, fit.draws.dtype
    ((2, 200, 4, 4), dtype('int8'))
    >>> fit["magnetization"].shape
    (2, 200)
    """

    def __init__(
        self, core: _core.Fit, account: dict[str, float] | None = None, shape: tuple[int, ...] | None = None
    ) -> None:
        self._core = core
        self._shape = shape  # of a state, where the core does not know it
        #: For targets of your own: ``calls`` of it, ``rows`` evaluated, ``seconds`` spent in it. None otherwise.
        self.target_account = account
        #: What the run was made from, so that it can be extended.
        self._origin: Any = None

    @property
    def draws(self) -> npt.NDArray[np.int8]:
        """Labels of all variables: ``[chain, draw, variable]``, or ``[chain, draw, row, column]`` for lattices.

        No copy is made; the array is read-only. Raises ValueError where ``keep="monitors"`` left nothing to show, and
        where the draws are in a file because they exceed ``memory``: :meth:`to_datatree` then reads what is asked for.
        """
        found = cast("npt.NDArray[np.int8] | None", self._core.draws)
        if found is None and self._core.path:
            raise ValueError(
                f"the draws exceed the memory for them and are in {self._core.path} only: to_datatree() reads from there what "
                "is asked for, and a larger memory= holds them"
            )
        if found is None:
            raise ValueError("the draws were not kept: the run was made with keep='monitors'")
        return found if self._shape is None else found.reshape(self.chains, self.num_draws, *self._shape)

    @property
    def monitors(self) -> dict[str, npt.NDArray[np.float64]]:
        """``log_prob``, the model's own statistics and the Hamming distance to a fixed state, each ``[chain, draw]``."""
        return self._core.monitors

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name == "x":
            return self.draws
        return self.monitors[name]

    @property
    def log_prob(self) -> npt.NDArray[np.float64]:
        """log p of every draw, up to a constant: ``[chain, draw]``."""
        return self.monitors["log_prob"]

    @property
    def chains(self) -> int:
        return self._core.chains

    @property
    def num_draws(self) -> int:
        """Draws per chain."""
        return self._core.num_draws

    @property
    def best(self) -> dict[str, Any] | None:
        """The draw of the best objective, or of the highest log p where the model has none, whatever was kept:
        ``log_prob`` or ``objective`` (and its ``name``), ``state`` in labels, ``chain`` and ``draw``. None where it is not
        known, as of a run that was killed.

        >>> import poise
        >>> fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=200, keep="monitors", progress=False)
        >>> bool(fit.best["log_prob"] == fit.log_prob.max()), fit.best["state"].shape
        (True, (4, 4))
        """
        found = self.report.get("best")
        if found is None:
            return None
        state = np.array(found["state"], dtype=np.int8)
        shape = self._shape or tuple(self._core.shape)
        return {**found, "state": state.reshape(shape) if state.size else None}

    def to_pandas(self) -> Any:
        """A data frame with a row for each draw: ``chain``, ``draw``, ``log_prob`` and every variable by name, at its label
        or the name of its level (as a category).

        >>> import poise
        >>> fit = poise.sample(poise.ising(size=2, coupling=0.2), draws=20, chains=2, progress=False)
        >>> list(fit.to_pandas().columns)
        ['chain', 'draw', 'log_prob', 'x[0]', 'x[1]', 'x[2]', 'x[3]']
        """
        import pandas

        states = self.draws.reshape(self.chains * self.num_draws, -1)
        names = list(self._core.names) or [f"x[{i}]" for i in range(states.shape[1])]
        index = np.arange(self.chains * self.num_draws)
        columns: dict[str, Any] = {
            "chain": index // self.num_draws,
            "draw": index % self.num_draws,
            "log_prob": self.log_prob.reshape(-1),
        }
        levels = self._core.level_names
        for i, name in enumerate(names):
            column = states[:, i]
            columns[name] = pandas.Categorical.from_codes(column.astype(np.int16), levels[i]) if levels else column
        return pandas.DataFrame(columns)

    @property
    def warnings(self) -> list[PoiseWarning]:
        """What the user should know before using the draws, most serious first; empty when all is well."""
        return as_warnings(self._core.warnings)

    @property
    def interrupted(self) -> bool:
        return self._core.interrupted

    @property
    def report(self) -> dict[str, Any]:
        """All there is to say of the run, with the keys of the program's JSON."""
        return self._core.report()

    @property
    def sampler(self) -> str:
        """The sampler that made the draws."""
        return self.report["sampler"]

    @property
    def choice(self) -> dict[str, Any] | None:
        """Where the sampler was ``"auto"``: which one it chose (``sampler``), why (``reason``), and ``thin`` where it
        chose that too. None otherwise.

        >>> import poise
        >>> fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=200, progress=False)
        >>> fit.choice["sampler"] == fit.sampler
        True
        """
        return self.report.get("choice")

    @property
    def tempering(self) -> dict[str, Any] | None:
        """Of ``temper``: the ladder (``betas``), the ``acceptance`` of swaps, ``barrier``, ``round_trips``, and
        ``log_partition`` with its error; None for other samplers.

        >>> import poise
        >>> fit = poise.sample(poise.ising(size=4, coupling=0.8), sampler="temper", draws=200, progress=False)
        >>> fit.tempering["betas"][0], fit.tempering["betas"][-1]
        (0.0, 1.0)
        """
        return self.report.get("tempering")

    @property
    def empirical_marginals(self) -> npt.NDArray[np.float64] | None:
        """Part of all steps, not of draws alone, spent at each (variable, level > 0); for binary variables that is the
        mean of the level. None for runs that were loaded."""
        found = self._core.empirical_marginals
        return found if found.size else None

    @property
    def warmup_log_prob(self) -> npt.NDArray[np.float64]:
        """Rows of (step, log p, mean over chains) along the warm-up; empty for runs that were loaded."""
        return self._core.warmup_trace

    def extend(self, draws: int, *, progress: bool | None = None) -> Fit:
        """So many draws per chain more, by chains that continue where they were: a new result with all draws, the same as
        if they had been asked for at first.

        >>> import poise
        >>> model = poise.ising(size=4, coupling=0.2)
        >>> fit = poise.sample(model, sampler="gibbs", draws=20, progress=False).extend(30, progress=False)
        >>> bool((fit.draws == poise.sample(model, sampler="gibbs", draws=50, progress=False).draws).all())
        True
        """
        from ._sample import extend

        return extend(self, draws, progress=progress)

    def summary(self) -> Table:
        """A row per monitor: mean, sd, mcse, ess, ess_tail, r_hat. Undefined numbers are NaN."""
        rows = list(self._core.monitor_names)
        found = self.report["monitors"]
        columns = {
            key: np.array([np.nan if found[row][key] is None else found[row][key] for row in rows]) for key in _SUMMARY
        }
        return Table(rows, columns)

    def variables(self) -> Table:
        """A row per variable, or per level of a variable with more than two: mean, mcse, ess, r_hat, transitions, status. In
        long runs of many variables ``estimated`` marks rows whose ess and mcse come from batch means."""
        columns = self._core.variables()
        columns["estimated"] = columns["estimated"].astype(bool)
        return Table(columns.pop("name"), columns)

    @property
    def observables(self) -> dict[str, dict[str, float]]:
        """Of spin models: energy, order parameter, specific heat, susceptibility and Binder cumulant, each with ``value``,
        ``error`` and ``tau``, the integrated autocorrelation time in draws. Empty for other models.

        >>> import poise
        >>> fit = poise.sample(poise.ising(size=8, coupling=0.3), draws=500, seed=1, progress=False)
        >>> sorted(fit.observables)
        ['abs_m', 'binder', 'energy', 'm2', 'm4', 'specific_heat', 'susceptibility']
        """
        return self.report.get("observables", {})

    def expect(self, function: Callable[[npt.NDArray[np.int8]], npt.ArrayLike], *, batch: int = 4096) -> Expectation:
        """The mean of a function of states, with its error. The function takes a batch of states, ``[state, variable]`` or
        ``[state, row, column]``, and gives a value, or an array of them, for each.

        >>> import poise
        >>> fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=500, seed=1, progress=False)
        >>> found = fit.expect(lambda x: x[:, 0, 0] * x[:, 0, 1])
        >>> bool(abs(found.mean - 0.24) < 5 * found.mcse + 0.02)
        True
        """
        states = self.draws.reshape(-1, *self.draws.shape[2:])
        parts = []
        for first in range(0, len(states), whole("batch", batch, 1)):
            given = states[first : first + batch]
            value = np.asarray(function(given), dtype=float)
            if value.ndim == 0 or len(value) != len(given):
                raise ValueError(
                    f"function: found a result of shape {value.shape} for {len(given)} states, expected one value for each"
                )
            parts.append(value)
        values = np.concatenate(parts)
        return expectation(values.reshape(self.chains, self.num_draws, *values.shape[1:]))

    def plot(self) -> Picture:
        """Traces, rank histograms and autocorrelations of the monitors, and the learned balancing function or the ladder of
        temperatures where there is one: SVG that a notebook draws, and ``fit.plot().save("run.svg")`` keeps."""
        return Picture(self._core.plot())

    def to_html(self, file: str | os.PathLike[str] | None = None) -> str:
        """One page that needs no other file: warnings, tables that sort, and the pictures of :meth:`plot`. Written to ``file``
        where one is named. A notebook shows it in place of the text.

        >>> import poise
        >>> fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=50, progress=False)
        >>> fit.to_html().startswith("<!doctype html>")
        True
        """
        page: str = self._core.html()
        if file is not None:
            write_text(file, page)
        return page

    def _repr_html_(self) -> str:
        return framed(self.to_html())

    def to_datatree(self) -> Any:
        """The run for ArviZ: an ``xarray.DataTree`` for ArviZ 1, an ``InferenceData`` where ArviZ 0 is installed.

        Its groups, names and dimensions are those of the store that :meth:`save` writes. Draws that are on the disk because
        they exceed the memory stay there, and what is asked for is read when it is.
        """
        if self._core.path:
            return _open_store(self._core.path)
        datasets = self._datasets()
        version = _arviz_version()
        if version is not None and version < 1:
            import arviz

            data = arviz.InferenceData(attrs=self._attributes(), **datasets)
            return data
        import xarray

        tree = xarray.DataTree.from_dict(datasets)
        tree.attrs.update(self._attributes())
        return tree

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the run as the program does, a Zarr store like ``run.zarr``, which ArviZ opens as it is and :func:`load`
        reads. A name that ends in ``.nc`` gets a NetCDF file for other programs, by xarray and netCDF4."""
        name = path("file", file)
        kept = self._core.path
        with folder_may_be_missing(name):
            if name.lower().endswith(".nc"):
                if not any(importlib.util.find_spec(package) for package in ("netCDF4", "h5netcdf")):
                    raise ImportError(
                        "save: NetCDF files need the package netCDF4 (pip install netCDF4); the command "
                        "'poise export run.zarr run.nc' needs none"
                    )
                _as_datatree(self.to_datatree()).to_netcdf(name)
            elif not kept:
                self._core.save(name)
            elif not (os.path.exists(name) and os.path.samefile(name, kept)):
                shutil.copytree(kept, name, ignore=shutil.ignore_patterns("*.tmp", "lock"))

    def __reduce__(self) -> tuple[Any, ...]:
        with tempfile.TemporaryDirectory() as folder:
            self.save(os.path.join(folder, "run.zarr"))
            archive = io.BytesIO()
            with zipfile.ZipFile(archive, "w") as files:  # chunks are compressed already
                for file in pathlib.Path(folder).rglob("*"):
                    files.write(file, file.relative_to(folder))
            return _unpickle, (archive.getvalue(), self.target_account, self._shape)

    def _datasets(self) -> dict[str, Any]:
        import xarray

        coordinates = {"chain": np.arange(self.chains), "draw": np.arange(self.num_draws)}
        series = ("chain", "draw")
        posterior: dict[str, Any] = {}
        place = dict(coordinates)
        kept = self._core.draws
        for name, values in self.monitors.items():
            if name != "log_prob":
                posterior[name] = (series, values)
        if kept is not None:
            inner = ("row", "column") if self._core.is_lattice else ("x_variable",)
            posterior["x"] = ((*series, *inner), kept)
            if self._core.names and not self._core.is_lattice:
                place["x_variable"] = np.array(self._core.names, dtype=object)
        statistics = {
            "lp": (series, self.log_prob),
            "acceptance_rate": (series, self._core.acceptance_rate),
            "n_steps": (series, self._core.n_steps),
        }
        attributes = {"sample_dims": list(series)}
        return {
            "posterior": xarray.Dataset(posterior, coords=place, attrs=attributes),
            "sample_stats": xarray.Dataset(statistics, coords=coordinates, attrs=attributes),
        }

    def _attributes(self) -> dict[str, Any]:
        return {
            "inference_library": "poise",
            "inference_library_version": _core.version(),
            "sample_dims": ["chain", "draw"],
            "settings": self._core.settings,
            "results": self._core.results,
        }

    def __str__(self) -> str:
        return self._core.text(shutil.get_terminal_size((100, 24)).columns)

    def __repr__(self) -> str:
        settings = json.loads(self._core.settings)
        return (
            f"<poise fit of {settings.get('model', 'a model')} by {settings.get('sampler', 'a sampler')}"
            f"{', chosen by auto' if 'choice' in settings else ''}: "
            f"{self.chains} chains of {self.num_draws} draws>"
        )


def load(file: str | os.PathLike[str], *, memory: float | None = None) -> Fit:
    """A run that the program or :meth:`Fit.save` stored, also one that was killed on its way or still grows.

    Draws that take more than ``memory`` GiB (by default a third of the machine's) stay on the disk: the diagnostics are
    made from there, and :meth:`Fit.to_datatree` reads what is asked for.

    >>> import poise, tempfile
    >>> fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=20, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(folder + "/run.zarr")
    ...     again = poise.load(folder + "/run.zarr")
    >>> bool((again.draws == fit.draws).all())
    True
    """
    name = path("file", file)
    with files_may_be_missing(name):
        return Fit(_core.load(name, _third_of_memory() if memory is None else positive("memory", memory)))


def _third_of_memory() -> float:
    """In GiB."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 3 / 2**30


def _open_store(folder: str) -> Any:
    """The run in a store for ArviZ, read when it is asked for."""
    import xarray

    tree = xarray.open_datatree(folder, engine="zarr")
    version = _arviz_version()
    if version is None or version >= 1:
        return tree
    import arviz

    return arviz.InferenceData.from_datatree(tree)


def _as_datatree(data: Any) -> Any:
    """``to_datatree`` of ArviZ 0 gives its InferenceData."""
    import xarray

    return data if isinstance(data, xarray.DataTree) else data.to_datatree()


def _unpickle(content: bytes, account: dict[str, float] | None, shape: tuple[int, ...] | None) -> Fit:
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(io.BytesIO(content)) as files:
            files.extractall(folder)
        return Fit(_core.load(os.path.join(folder, "run.zarr"), float("inf")), account, shape)


def _arviz_version() -> int | None:
    import importlib.metadata

    try:
        return int(importlib.metadata.version("arviz").split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return None
