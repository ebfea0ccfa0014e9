"""Sampling, and comparing samplers."""

from __future__ import annotations

import os
import shutil
import warnings as python_warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import described, documented, files_may_be_missing, folder_may_be_missing, path, positive, text, whole
from ._errors import Interrupted, PoiseWarning
from ._fit import Fit
from ._marginals import Marginals, warned
from ._models import Model
from ._observe import Function, observers
from ._picture import Picture
from ._progress import ProgressBars
from ._table import ShownAsText, Table
from ._target import as_model, as_target, shape_of

_OPTIONS = _core.run_options()


@documented(_OPTIONS)
def sample(
    model: Any,
    sampler: str = "auto",
    *,
    draws: int = 1000,
    warmup: int | None = None,
    chains: int = 4,
    seed: int = 1,
    thin: int | None = None,
    threads: int | None = None,
    device: str = "cpu",
    seconds: float | None = None,
    init: str | npt.ArrayLike = "uniform",
    keep: str = "draws",
    observe: Mapping[str, Function] | None = None,
    first_chain: int = 0,
    memory: float | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint: bool | float | None = None,
    progress: bool | None = None,
) -> Fit:
    """Runs chains and gives back their draws with all diagnostics.

    ``model`` is one of Poise's (:func:`ising`, :func:`read`, ...) or a target of your own (:func:`target`). The same
    model, sampler, seed and chains give the same draws as the program ``poise sample``, bit by bit.

    - ``sampler``: by default ``"auto"``, one that suits the model; the first part of its warm-up is watched, and where
      its chains do not mix, clusters, exact draws or tempering replace it. ``fit.choice`` says which and why.
      ``poise.samplers()`` lists them all.
    {options}
    - ``observe``: functions of a batch of states, by name: ``{"corner": lambda x: x[:, 0, 0]}``. Their values are monitors
      of the run, in the table and as ``fit["corner"]``; they are found while the run samples, so ``keep="monitors"`` will
      do. States come as in ``fit.draws``, one behind the other.
    - ``out``: a folder like ``run.zarr`` that the draws are also written to while they are made. Without it a run whose
      draws exceed ``memory`` is refused before it starts; ``fit.to_datatree()`` reads what is only on the disk.
    - ``checkpoint``: beside ``out``, a run that lasts over a minute leaves a checkpoint every 30 seconds, from which
      :func:`resume` or the program's ``poise resume`` continues; ``True`` leaves one however short the run, a number says
      how many seconds lie between two, ``False`` leaves none.
    - ``progress``: a bar by default in terminals and notebooks.

    One sweep gives every variable a chance to change. A target of your own runs on a GPU where its code is there already.

    In a script that ``mpirun`` or ``srun`` has started several times, chains are divided among these ranks, a target of
    your own is asked for those of its rank, and every rank gets the same fit: that of one process. Rank 0 (:func:`rank`)
    writes ``out``, shows progress and warns.

    Warnings about the result are issued in categories of :class:`PoiseWarning` (:class:`RHatWarning`, ...) and are in
    ``fit.warnings``. Ctrl-C raises
    :class:`Interrupted`, which holds the draws made so far (in the warm-up,
    the sampler, its speed and the present states).

    >>> import poise
    >>> fit = poise.sample(poise.ising(size=8, coupling=0.2), draws=200, seed=1, progress=False)
    >>> fit.draws.shape
    (4, 200, 8, 8)
    """
    model = as_target(model)
    core, user = as_model(model)
    settings = run_settings(
        core, shape_of(model), chains=chains, seed=seed, draws=draws, warmup=warmup, thin=thin, threads=threads,
        first_chain=first_chain, seconds=seconds, keep=keep, memory=memory, init=init, device=device,
    )  # fmt: skip
    name = text("sampler", sampler)
    file = "" if out is None else path("out", out)
    _read_checkpoint(checkpoint, file, settings)
    source = model._source if isinstance(model, Model) else None
    with ProgressBars(progress) as bars, folder_may_be_missing(file):
        fit = _core.sample(core, name, settings, bars.callback, file, source, observers(observe, _state_shape(model, core)))
    return _ended(fit, model, core, user, name, settings, observe)


def resume(
    file: str | os.PathLike[str],
    model: Any = None,
    *,
    draws: int | None = None,
    threads: int | None = None,
    device: str | None = None,
    observe: Mapping[str, Function] | None = None,
    progress: bool | None = None,
) -> Fit:
    """Resumes a run of :func:`sample` with ``out=file``, or of the program's ``poise sample --out``, that was killed or
    interrupted, or, with ``draws``, makes a finished one longer: so many draws per chain in all.

    Sampler and settings are in the file, and so is the model where it came from a spec or from files. A target of your
    own, or a model of arrays, is given as ``model`` and must be the one that the run was made with. The draws are bitwise
    those of a run that was never stopped. A run that had functions to ``observe`` needs them again. ``device``: ``"cpu"`` or
    ``"cuda"``, where both have the same draws; by default the one that the run was begun on.

    >>> import poise, tempfile
    >>> model = poise.ising(size=4, coupling=0.2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = folder + "/run.zarr"
    ...     fit = poise.sample(model, draws=20, out=file, checkpoint=True, progress=False)
    ...     longer = poise.resume(file, draws=50, progress=False)
    >>> longer.num_draws
    50
    """
    name = path("file", file)
    with files_may_be_missing(name):
        stored = _core.stored_session(name)
    if stored.note and _core.rank() == 0:
        python_warnings.warn(stored.note, PoiseWarning, stacklevel=2)
    model = Model(stored.make_model()) if model is None else as_target(model)
    core, user = as_model(model)
    given = {"draws": draws, "threads": threads, "device": device}
    changed = {row["name"]: described(row, given[row["name"]]) for row in _OPTIONS if given.get(row["name"]) is not None}
    with ProgressBars(progress) as bars:
        seen = observers(observe, _state_shape(model, core))
        fit, settings = _core.resume(stored, core, changed, bars.callback, seen)
    return _ended(fit, model, core, user, stored.sampler, settings, observe)


def extend(fit: Fit, draws: int, *, progress: bool | None = None) -> Fit:
    """What :meth:`Fit.extend` does."""
    if fit._origin is None or not fit._core.can_extend:
        raise ValueError(
            "this run cannot be made longer: it was loaded, interrupted, or has too many variables to be kept; "
            "poise.resume continues from files"
        )
    model, core, user, name, settings, observe = fit._origin
    settings = {k: v for k, v in settings.items() if k not in ("seconds", "checkpoint", "checkpoint_every")}
    settings["draws"] = fit.num_draws + whole("draws", draws, 1, 2**62)
    with ProgressBars(progress) as bars:
        seen = observers(observe, _state_shape(model, core))
        longer = _core.extend(fit._core, core, name, settings, bars.callback, seen)
    return _ended(longer, model, core, user, name, settings, observe)


def run_marginals(target: Any, sampler: str, progress: bool | None, given: dict[str, Any]) -> Marginals:
    """What :meth:`Target.marginals` does."""
    core, _ = as_model(target)
    settings = run_settings(core, shape_of(target), **given)
    settings["rao_blackwell"] = True
    with ProgressBars(progress) as bars:
        fit = _core.sample(core, text("sampler", sampler), settings, bars.callback)
    if fit.interrupted:
        raise KeyboardInterrupt("marginals: interrupted before there was an answer")
    answer = _core.marginals_of_run(fit)
    return warned(Marginals(answer, answer.network))


def _read_checkpoint(checkpoint: bool | float | None, file: str, settings: dict[str, Any]) -> None:
    if checkpoint is None:
        return
    if checkpoint is not False and not file:
        raise ValueError("checkpoint: a run is resumed from its store, so it needs out=")
    settings["checkpoint"] = checkpoint is not False
    if not isinstance(checkpoint, bool):
        settings["checkpoint_every"] = positive("checkpoint", checkpoint)


def _state_shape(model: Any, core: _core.Model) -> tuple[int, ...]:
    """Of one state in ``fit.draws``."""
    return shape_of(model) or ((core.rows, core.columns) if core.rows else (core.variables,))


def _ended(
    fit: _core.Fit, model: Any, core: _core.Model, user: Any, name: str, settings: dict[str, Any], observe: Any
) -> Fit:
    """The result as users see it, with its warnings said."""
    account = None if user is None else {"calls": user.calls, "rows": user.rows, "seconds": user.seconds}
    result = Fit(fit, account, shape_of(model) or None)
    result._origin = (model, core, user, name, settings, observe)
    if fit.interrupted:
        kept = result if fit.num_draws > 0 else None
        report = fit.report()
        present = np.array(report.get("present", ()), dtype=np.int8)
        states = present.reshape(fit.chains, *_state_shape(model, core)) if present.size else None
        message = f"interrupted after {fit.num_draws} draws per chain" if kept else "interrupted in the warm-up"
        raise Interrupted(message, kept, report, states)
    for warning in result.warnings if _core.rank() == 0 else []:
        python_warnings.warn(warning, stacklevel=3)
    return result


class Comparison(ShownAsText, Sequence[Fit]):
    """Runs of several samplers on one model with the same budget. ``print`` shows them side by side."""

    def __init__(self, fits: list[Fit]) -> None:
        self.fits = fits

    def __getitem__(self, k: Any) -> Any:
        return self.fits[k]

    def __len__(self) -> int:
        return len(self.fits)

    def __iter__(self) -> Iterator[Fit]:
        return iter(self.fits)

    @property
    def report(self) -> dict[str, Any]:
        """The keys of the program's ``compare --json``."""
        return _core.comparison_json([fit._core for fit in self.fits])

    def table(self) -> Table:
        """A row per sampler: ESS of log_prob and of all monitors together, by second, evaluation and step."""
        rows, columns = [], {}
        for result in self.report["results"]:
            rows.append(result["sampler"])
            log_prob, combined = result["monitors"]["log_prob"], result["combined"]
            cells = {
                "ess": combined["ess"],
                "ess_per_second": combined["ess_per_second"],
                "ess_per_eval": combined["ess_per_eval"],
                "ess_per_step": combined["ess_per_step"],
                "ess_log_prob": log_prob["ess"],
                "r_hat_log_prob": log_prob["r_hat"],
                "acceptance_rate": result["acceptance_rate"],
                "seconds": result["seconds"]["sampling"],
                "warnings": len(result["warnings"]),
            }
            for key, value in cells.items():
                columns.setdefault(key, []).append(np.nan if value is None else value)
        return Table(rows, {key: np.array(column) for key, column in columns.items()})

    def to_pandas(self) -> Any:
        return self.table().to_pandas()

    def plot(self) -> Picture:
        """Effective samples a second of each sampler as bars: SVG that a notebook draws."""
        return Picture(_core.comparison_plot([fit._core for fit in self.fits]))

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}{self.plot()}"

    def __str__(self) -> str:
        return _core.comparison_text([fit._core for fit in self.fits], shutil.get_terminal_size((100, 24)).columns)

    def __repr__(self) -> str:
        return f"<poise comparison of {len(self)} samplers>"


@documented(_OPTIONS)
def compare(
    model: Any,
    samplers: Sequence[str] = ("lsb", "lb:g=sqrt", "lb:g=barker", "lb:g=min", "lb:g=max", "gibbs"),
    *,
    draws: int = 1000,
    warmup: int | None = None,
    chains: int = 4,
    seed: int = 1,
    thin: int | None = None,
    threads: int | None = None,
    device: str = "cpu",
    seconds: float | None = None,
    init: str | npt.ArrayLike = "uniform",
    progress: bool | None = None,
) -> Comparison:
    """Runs every sampler with the same budget and shows what it gives for it.

    {options}

    >>> import poise
    >>> table = poise.compare(poise.ising(size=6, coupling=0.2), ["lb:g=sqrt", "gibbs"], draws=300, progress=False)
    >>> table.table().rows
    ['lb:g=sqrt', 'gibbs']
    >>> frame = table.to_pandas()
    """
    if isinstance(samplers, str):
        raise TypeError(f"samplers: found {samplers!r}, expected a list of names")
    names = [_core.check_sampler(text("samplers", name)) for name in samplers]
    if not names:
        raise ValueError("samplers: found an empty list, expected at least one name")
    model = as_target(model)
    core, _ = as_model(model)
    settings = run_settings(
        core, shape_of(model), chains=chains, seed=seed, draws=draws, warmup=warmup, thin=thin, threads=threads,
        seconds=seconds, keep="monitors", init=init, device=device,
    )  # fmt: skip
    fits: list[Fit] = []
    for k, name in enumerate(names):
        with ProgressBars(progress, f"{name} ({k + 1} of {len(names)})") as bars:
            fit = _core.sample(core, name, settings, bars.callback)
        if fit.interrupted:
            kept = Fit(fit) if fit.num_draws > 0 else None
            raise Interrupted(f"interrupted in {name}, after {len(fits)} of {len(names)} samplers", kept)
        fits.append(Fit(fit))
    return Comparison(fits)


def samplers() -> Table:
    """The samplers there are, with a line of help each.

    >>> import poise
    >>> "lsb" in poise.samplers().rows
    True
    """
    rows = _core.sampler_help()
    return Table([name for name, _ in rows], {"help": [line for _, line in rows]})


def run_settings(core: _core.Model, shape: tuple[int, ...], **given: Any) -> dict[str, Any]:
    """The engine's settings from the arguments of the functions above, checked."""
    settings: dict[str, Any] = {}
    named = {**given, "init": given["init"] if isinstance(given["init"], str) else "uniform"}
    for row in _OPTIONS:
        value = named.get(row["name"])
        if value is None and (row["optional"] or row["choices"]):
            continue
        if row["name"] in named:
            settings[row["name"]] = described(row, value)
    if not isinstance(given["init"], str):
        settings["given"] = levels_from_labels(core, given["init"], settings["chains"], shape)
    return settings


def levels_from_labels(
    core: _core.Model, values: npt.ArrayLike, chains: int, shape: tuple[int, ...] = ()
) -> npt.NDArray[np.uint8]:
    """States as users write them, as levels: one state, or one for each chain."""
    states = np.asarray(values)
    if states.dtype.kind not in "iufb":
        raise TypeError(f"init: found an array of {states.dtype}, expected numbers")
    variables = core.variables
    inner = [(variables,)] + ([(core.rows, core.columns)] if core.rows else []) + ([shape] if shape else [])
    if states.shape not in inner + [(chains, *one) for one in inner]:
        raise ValueError(
            f"the initial state has {states.size} values in the shape {states.shape}, but the model has {variables} variables "
            f"and there are {chains} chains"
        )
    flat = states.reshape(-1, variables)
    labels = np.asarray(core.labels) if core.labels else np.arange(max(core.cardinalities))
    order = np.argsort(labels)
    place = np.clip(np.searchsorted(labels[order], flat), 0, len(labels) - 1)
    wrong = labels[order][place] != flat
    if wrong.any():
        chain, variable = np.argwhere(wrong)[0]
        raise ValueError(
            f"variable {variable} of a state is {flat[chain, variable]}, expected one of {', '.join(str(v) for v in labels)}"
        )
    return np.ascontiguousarray(order[place].astype(np.uint8))
