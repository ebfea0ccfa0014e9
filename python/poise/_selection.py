"""Variable selection and fine-mapping: which variables belong in a linear regression."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import choice, described, documented, path, real, text
from ._errors import PoiseWarning, as_warnings
from ._marginals import _Clock
from ._models import Model
from ._progress import _somebody_looks
from ._table import ShownAsText, Table

_PRIOR = {row["name"]: row for row in _core.selection_prior()}
_OPTIONS = {row["name"]: row for row in _core.select_options()}
_SCALINGS = ("standard", "centre", "none")


class Selection(ShownAsText):
    """The answer of :func:`select` and :func:`finemap`: inclusion probabilities and what goes with them."""

    def __init__(self, core: _core.SelectionAnswer) -> None:
        self._core = core
        self._json: dict[str, Any] = core.json()
        #: Of the variables, in the order of the data.
        self.names: list[str] = [row["name"] for row in self._json["variables"]]
        #: P(included | data) of every variable.
        self.pip: npt.NDArray[np.float64] = self._column("pip")
        #: Monte Carlo standard errors of these.
        self.pip_se: npt.NDArray[np.float64] = self._column("pip_se")
        #: Posterior means of the coefficients, zero where a variable is not included, in units of the data.
        self.coef: npt.NDArray[np.float64] = self._column("mean")
        #: Their posterior standard deviations.
        self.coef_sd: npt.NDArray[np.float64] = self._column("sd")
        #: A row with both ends of the posterior interval of every coefficient.
        self.intervals: npt.NDArray[np.float64] = np.column_stack([self._column("low"), self._column("high")])
        #: Of the regression, averaged over models.
        self.intercept: float = self._json["intercept"]
        #: P(so many variables are included).
        self.sizes: npt.NDArray[np.float64] = np.asarray(self._json["sizes"], dtype=np.float64)
        #: Credible sets: names of the variables, their share, mass and purity.
        self.sets: list[dict[str, Any]] = self._json["sets"]
        #: The most probable models: names of the variables, probability, log posterior.
        self.models: list[dict[str, Any]] = self._json["models"]
        #: What the user should know before using them.
        self.warnings: list[PoiseWarning] = as_warnings(core.warnings)
        #: What was set right or left out.
        self.notes: list[str] = self._json["notes"]

    def _column(self, key: str) -> npt.NDArray[np.float64]:
        rows = self._json["variables"]
        return np.asarray([np.nan if row[key] is None else row[key] for row in rows], dtype=np.float64)

    @property
    def report(self) -> dict[str, Any]:
        """All there is to say, with the keys of the program's JSON."""
        return self._json

    def predict(self, x: Any) -> npt.NDArray[np.float64]:
        """The response of new rows, averaged over models. A data frame's columns are taken by name."""
        if hasattr(x, "columns"):
            missing = [name for name in self.names if name not in x.columns]
            if missing:
                raise ValueError(f"x: found no column {missing[0]!r}, expected all that the model was fitted to")
            x = x[self.names]
        values = np.asarray(x, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise ValueError(f"x: found an array of shape {values.shape}, expected rows of {len(self.names)} columns")
        return self.intercept + values @ self.coef

    def table(self) -> Table:
        """A row for every variable."""
        columns = {"pip": self.pip, "pip_se": self.pip_se, "mean": self.coef, "sd": self.coef_sd}
        columns |= {"low": self.intervals[:, 0], "high": self.intervals[:, 1]}
        return Table(self.names, {name: list(map(float, values)) for name, values in columns.items()})

    def to_pandas(self) -> Any:
        """A data frame with a row for every variable."""
        return self.table().to_pandas()

    def plot(self, positions: npt.ArrayLike | None = None) -> str:
        """Inclusion probabilities and the correlations of the most probable variables, as SVG.

        ``positions`` along the genome, one for each variable; by default variables stand in their order.
        """
        places = [] if positions is None else _numbers("positions", positions, 1).tolist()
        return self._core.plot(places)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes a row for every variable, with tabs between, as ``poise select --out`` does."""
        with open(path("file", file), "w", encoding="utf-8") as out:
            out.write(self._core.table())

    def __str__(self) -> str:
        return self._core.text(shutil.get_terminal_size((100, 24)).columns, 20)

    def __repr__(self) -> str:
        return f"<poise selection of {len(self.names)} variables, {len(self.sets)} credible sets>"


def _split(function: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of the prior, with what the core takes by itself, and options of the run."""
    prior: dict[str, Any] = {"settings": {}, "inclusions": None, "always": []}
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name not in _PRIOR and name not in _OPTIONS and name not in ("progress", "start"):
            known = [*_PRIOR, *_OPTIONS, "progress", "start"]
            raise TypeError(f"{function}: there is no option {name!r}; there are {', '.join(known)}")
        if value is None:
            continue
        if name == "always":
            prior["always"] = [text("always", value)] if isinstance(value, str) else [str(one) for one in value]
        elif name == "inclusion" and np.ndim(value) == 1:
            prior["inclusions"] = np.ascontiguousarray(value, dtype=np.float64)
        elif name == "slab_variance" and not isinstance(value, str):
            values = np.atleast_1d(np.asarray(value, dtype=np.float64))
            prior["settings"][name] = ",".join(repr(float(one)) for one in values)
        elif name in _PRIOR:
            prior["settings"][name] = described(_PRIOR[name], value)
        elif name in _OPTIONS:
            options[name] = described(_OPTIONS[name], value)
        else:
            options[name] = value
    return prior, options


def _names_of(x: Any, count: int) -> list[str]:
    names = getattr(x, "columns", None)
    if names is None:
        return [f"x[{k}]" for k in range(count)]
    return [str(name) for name in names]


def _numbers(name: str, values: Any, dimensions: int) -> npt.NDArray[np.float64]:
    if np.iscomplexobj(values):
        raise TypeError(f"{name}: found complex numbers, expected real ones")
    if np.ma.is_masked(values):
        raise ValueError(f"{name}: found masked values, expected a number everywhere; leave them out or fill them in")
    if hasattr(values, "tocsc"):
        raise TypeError(f"{name}: found a sparse matrix, expected an array; its method toarray() makes one")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: found {_what_is_no_number(values)}, expected an array of numbers") from None
    if array.ndim != dimensions:
        raise ValueError(f"{name}: found an array of {array.ndim} dimensions, expected {dimensions}")
    return array


def _what_is_no_number(values: Any) -> str:
    for name in getattr(values, "columns", []):
        try:
            np.asarray(values[name], dtype=np.float64)
        except (TypeError, ValueError):
            return f"something that is not numbers in column {name!r}"
    return "something that is not numbers"


def _labels(index: Any) -> list[str] | None:
    """Names, unless they are only numbers that count."""
    labels = list(index)
    return None if labels == list(range(len(labels))) else [str(label) for label in labels]


def _in_order(r: Any, known: list[str]) -> tuple[Any, list[str]]:
    """A data frame of correlations in the order of known names; without those, its own names."""
    if getattr(r, "columns", None) is None or getattr(r, "index", None) is None or callable(r.index):
        return r, known
    columns, rows = _labels(r.columns), _labels(r.index)
    if columns is None or len(columns) != len(r.index):
        return r, known
    if rows is not None and rows != columns:
        raise ValueError("R: found names of rows that are not those of columns, expected the same")
    if not known or known == columns:
        return r, columns
    missing = sorted(set(known) - set(columns))
    if missing:
        raise ValueError(f"R: found no variant {missing[0]!r}, expected the names of z in any order")
    if len(set(known)) != len(known) or len(set(columns)) != len(columns) or len(known) != len(columns):
        raise ValueError("R: found other names than those of z, or some more than once, expected the same")
    place = {name: k for k, name in enumerate(columns)}
    order = [place[name] for name in known]
    return r.iloc[order, order], known


def _table_problem(x: Any, y: Any, scaling: str, prior: Mapping[str, Any]) -> _core.SelectionProblem:
    columns = _numbers("X", x, 2)
    response = _numbers("y", y, 1)
    if len(response) != len(columns):
        raise ValueError(f"y: found {len(response)} values, expected {len(columns)}, one for each row of X")
    how = _SCALINGS.index(choice("scaling", scaling, _SCALINGS))
    name = str(getattr(y, "name", None) or "y")
    return _core.selection_of_table(
        np.asfortranarray(columns), np.ascontiguousarray(response), _names_of(x, columns.shape[1]), name, how, **prior
    )


@documented(_core.selection_prior())
def selection(x: Any, y: Any, *, scaling: str = "standard", **options: Any) -> Model:
    """The posterior of inclusion in the regression of ``y`` on the columns of ``x``, as a model for :func:`sample`.

    - ``scaling``: ``"standard"``: columns are centred and divided by their standard deviations; ``"centre"``; or
      ``"none"``, without an intercept.
    {options}

    ``inclusion`` may be one number for each variable. Samplers that need a gradient are refused.

    >>> import numpy, poise
    >>> x = numpy.random.default_rng(1).normal(size=(50, 6))
    >>> fit = poise.sample(poise.selection(x, x[:, 2] + x[:, 4]), "wtgs", draws=100, progress=False)
    >>> fit.draws.shape
    (4, 100, 6)
    """
    prior, rest = _split("selection", options)
    if rest:
        raise TypeError(f"selection: {next(iter(rest))!r} is an option of runs, which sample takes")
    return Model(_table_problem(x, y, scaling, prior).model())


@documented(_core.selection_prior() + _core.select_options())
def select(x: Any, y: Any, *, scaling: str = "standard", **options: Any) -> Selection:
    """Which columns of ``x`` belong in the regression of ``y``: inclusion probabilities with their errors.

    ``x`` is an array or a data frame, whose names are kept.

    - ``scaling``: as of :func:`selection`.
    {options}
    - ``progress``: a bar by default in terminals and notebooks.

    >>> import numpy, poise
    >>> x = numpy.random.default_rng(1).normal(size=(100, 6))
    >>> answer = poise.select(x, x[:, 2] + x[:, 4], draws=200, progress=False)
    >>> (answer.pip > 0.5).nonzero()[0].tolist()
    [2, 4]
    """
    prior, rest = _split("select", options)
    return _run("select", _table_problem(x, y, scaling, prior), rest)


@documented(_core.selection_prior() + _core.select_options())
def finemap(
    z: Any = None,
    R: Any = None,
    n: float | None = None,
    *,
    names: Sequence[str] | None = None,
    xtx: Any = None,
    xty: Any = None,
    yty: float | None = None,
    **options: Any,
) -> Selection:
    """Variable selection from z scores, their correlations ``R`` and the sample size ``n``.

    ``R`` is an array, a data frame (put into the order of ``z`` by its names), a sparse matrix of SciPy's, or the path of a
    ``.npy``, ``.npz`` or ``.ld`` file; a large ``.npy`` file is read as it is needed. Without ``n`` effects are taken to be small. In place of these, ``xtx``, ``xty``, ``yty`` and ``n``
    of centred columns may be given.

    - ``names``: of the variants; by default those of a series ``z``, or of ``R``.
    {options}
    - ``progress``: a bar by default in terminals and notebooks.

    >>> import numpy, poise
    >>> R = 0.9 ** abs(numpy.subtract.outer(numpy.arange(20), numpy.arange(20)))
    >>> answer = poise.finemap(8 * R[7], R, 5000, draws=200, progress=False)
    >>> int(answer.pip.argmax())
    7
    """
    prior, rest = _split("finemap", options)
    size = None if n is None else real("n", n)
    if xtx is not None or xty is not None or yty is not None:
        if xtx is None or xty is None or yty is None or size is None or z is not None or R is not None:
            raise TypeError("finemap: expected z and R, or all of xtx, xty, yty and n")
        products = _numbers("xty", xty, 1)
        matrix = np.ascontiguousarray(_numbers("xtx", xtx, 2))
        known = list(map(str, names)) if names is not None else _names_of(xtx, len(products))
        core = _core.selection_of_products(
            matrix, np.ascontiguousarray(products), real("yty", yty), size, known, **prior
        )
        return _run("finemap", core, rest)
    if z is None or R is None:
        raise TypeError("finemap: expected z and R, or xtx, xty, yty and n")
    scores = np.ascontiguousarray(_numbers("z", z, 1))
    known = [str(name) for name in names] if names is not None else _labels(_index_of(z)) or []
    if known and len(known) != len(scores):
        raise ValueError(f"names: found {len(known)}, expected {len(scores)}, one for each z score")
    if hasattr(R, "tocsc"):
        sparse = R.tocsc()
        sparse.sort_indices()
        core = _core.selection_of_sparse_scores(
            scores, sparse.indptr.astype(np.uint64), sparse.indices.astype(np.uint32), sparse.data.astype(np.float32),
            size, known, **prior,
        )  # fmt: skip
    elif isinstance(R, (str, os.PathLike)):
        core = _core.selection_of_scores(scores, None, path("R", R), size, known, **prior)
    else:
        ordered, known = _in_order(R, known)
        matrix = np.ascontiguousarray(_numbers("R", ordered, 2))
        core = _core.selection_of_scores(scores, matrix, "", size, known, **prior)
    return _run("finemap", core, rest)


def _index_of(z: Any) -> Any:
    index = getattr(z, "index", None)
    return [] if index is None or callable(index) else index


def _run(title: str, problem: _core.SelectionProblem, options: Mapping[str, Any]) -> Selection:
    settings = {name: value for name, value in options.items() if name not in ("progress", "start")}
    show = options.get("progress")
    with _Clock(_somebody_looks() if show is None else bool(show)) as clock:
        update = clock.update if clock.show else None
        core = _core.select(problem, settings, update, options.get("start", "mixed"))
    if core.interrupted:
        raise KeyboardInterrupt(f"{title}: interrupted before there was an answer")
    answer = Selection(core)
    for warning in answer.warnings:
        warnings.warn(warning, stacklevel=3)
    return answer
