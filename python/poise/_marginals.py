"""Marginals of networks: what they are, how they were found, how far to trust them."""

from __future__ import annotations

import itertools
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import described, path
from ._errors import PoiseWarning, as_warnings
from ._models import Model
from ._picture import Picture
from ._progress import _somebody_looks, _tqdm
from ._table import ShownAsText, Table


class Marginals(ShownAsText, Sequence[npt.NDArray[np.float64]]):
    """The probability of every level of every variable: ``marginals[i][level]``, or by name ``marginals["smoke"]``."""

    def __init__(self, core: _core.Answer, network: _core.Network) -> None:
        self._core = core
        self._network = network
        self._json: dict[str, Any] = core.json()
        #: One array per variable.
        self.probabilities: list[npt.NDArray[np.float64]] = core.probabilities
        #: Their standard errors, the same way; empty where the answer is exact.
        self.mcse: list[npt.NDArray[np.float64]] = core.mcse
        #: What the user should know before using them.
        self.warnings: list[PoiseWarning] = as_warnings(core.warnings)

    @property
    def method(self) -> str:
        """``"exact"`` or ``"sample"``."""
        return self._json["method"]

    @property
    def reason(self) -> str:
        """Why that method, in one sentence."""
        return self._json["reason"]

    @property
    def log10_partition(self) -> float | None:
        """Decimal logarithm of the normalising constant: exact, or from tempering."""
        return self._json.get("log10_partition")

    @property
    def log10_partition_error(self) -> float | None:
        """Its standard error, where it comes from tempering."""
        return self._json.get("log10_partition_error")

    @property
    def evidence_probability(self) -> float | None:
        """P(evidence) of a Bayesian network with evidence; None for others, and where it is too small for a float."""
        return self._json.get("evidence_probability")

    @property
    def joint(self) -> npt.NDArray[np.float64] | None:
        """Of ``query``: the probability of every combination of levels, with a dimension for each variable."""
        return self._of_query("probabilities")

    @property
    def joint_mcse(self) -> npt.NDArray[np.float64] | None:
        """Standard errors of :attr:`joint`; None where it is exact."""
        return self._of_query("mcse")

    def joint_table(self) -> Table:
        """A row for every combination of levels of the variables of ``query``."""
        found = self._json.get("joint")
        if found is None:
            raise ValueError("joint_table: no joint distribution was asked for; marginals(query=[...]) gives one")
        rows: list[str] = []
        columns: dict[str, list[Any]] = {name: [] for name in found["variables"]}
        kinds = {"probability": self.joint, "mcse": self.joint_mcse}
        for kind, values in kinds.items():
            if values is not None:
                columns[kind] = [float(value) for value in values.ravel()]
        for place in itertools.product(*found["levels"]):
            for name, level in zip(found["variables"], place, strict=True):
                columns[name].append(level)
            rows.append(", ".join(f"{name} = {level}" for name, level in zip(found["variables"], place, strict=True)))
        return Table(rows, columns)

    def _of_query(self, key: str) -> npt.NDArray[np.float64] | None:
        found = self._json.get("joint")
        if found is None or key not in found:
            return None
        numbers = [np.nan if value is None else value for value in found[key]]
        return np.array(numbers, dtype=np.float64).reshape([len(levels) for levels in found["levels"]])

    @property
    def report(self) -> dict[str, Any]:
        """All there is to say, with the keys of the program's JSON."""
        return self._json

    def __getitem__(self, variable: Any) -> Any:
        if isinstance(variable, str):
            if variable not in self._network.names:
                raise KeyError(variable)
            variable = self._network.names.index(variable)
        return self.probabilities[variable]

    def __contains__(self, variable: object) -> bool:
        return variable in self._network.names or (isinstance(variable, int) and 0 <= variable < len(self))

    def __len__(self) -> int:
        return len(self.probabilities)

    def __iter__(self) -> Iterator[npt.NDArray[np.float64]]:
        return iter(self.probabilities)

    def table(self) -> Table:
        """A row for every level of every variable."""
        rows: list[str] = []
        columns: dict[str, list[Any]] = {"variable": [], "level": [], "probability": []}
        if self.mcse:
            columns["mcse"] = []
        for i, probabilities in enumerate(self.probabilities):
            for level, probability in enumerate(probabilities):
                name = self._network.variable_name(i)
                columns["variable"].append(name)
                columns["level"].append(self._network.level_name(i, level))
                columns["probability"].append(float(probability))
                if self.mcse:
                    columns["mcse"].append(float(self.mcse[i][level]))
                rows.append(f"{name} = {columns['level'][-1]}")
        return Table(rows, columns)

    def to_pandas(self) -> Any:
        """A data frame with a row for every level of every variable."""
        return self.table().to_pandas()

    def plot(self) -> Picture:
        """Bars with standard errors, about sixty of them: SVG that a notebook draws."""
        return Picture(self._core.plot(60))

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}{self.plot()}"

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes them in the UAI format (MAR)."""
        with open(path("file", file), "w", encoding="utf-8") as out:
            out.write(self._core.mar())

    def __str__(self) -> str:
        return self._core.text(shutil.get_terminal_size((100, 24)).columns, 40)

    def __repr__(self) -> str:
        return f"<poise marginals of {len(self)} variables, {self.method}>"


_OPTIONS = {row["name"]: row for row in _core.marginals_options()}


def find_marginals(model: Model, method: str, options: Mapping[str, Any]) -> Marginals:
    """See :meth:`Model.marginals`."""
    names = [name for name in [*_OPTIONS, "progress"] if name != "method"]
    for name in options:
        if name not in names:
            raise TypeError(f"marginals: there is no option {name!r}; there are {', '.join(names)}")
    given = {"method": method, **{name: value for name, value in options.items() if value is not None}}
    if not isinstance(given.get("query", ""), str):
        given["query"] = ",".join(str(variable) for variable in np.atleast_1d(given["query"]))
    settings = {name: described(_OPTIONS[name], value) for name, value in given.items() if name != "progress"}
    network = model.network()
    show = options.get("progress")
    with _Clock(_somebody_looks() if show is None else bool(show)) as clock:
        core = _core.marginals(network, settings, clock.update if clock.show else None)
    if core.interrupted:
        raise KeyboardInterrupt("marginals: interrupted before there was an answer")
    return warned(Marginals(core, network))


def warned(answer: Marginals) -> Marginals:
    """The answer, with its warnings issued at the line that called the method it comes from."""
    for warning in answer.warnings:
        warnings.warn(warning, stacklevel=4)
    return answer


class _Clock:
    """A bar in seconds, one for each pilot run and the run itself."""

    def __init__(self, show: bool) -> None:
        self.show = show
        self.title = ""
        self.bar: Any = None

    def __enter__(self) -> _Clock:
        return self

    def __exit__(self, *details: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def update(self, title: str, seconds: float, left: float) -> None:
        if title != self.title or self.bar is None:
            if self.bar is not None:
                self.bar.close()
            self.title = title
            self.bar = _tqdm()(desc=title, unit="s", bar_format="{desc}: {bar} {n:.1f}/{total:.1f} s")
        self.bar.total = seconds + max(left, 0.0)
        self.bar.n = seconds
        self.bar.refresh()
