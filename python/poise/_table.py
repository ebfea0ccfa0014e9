"""Columns with names: what summaries and comparisons are made of."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas


class ShownAsText:
    """In a notebook, what ``print`` shows."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Table(ShownAsText, Mapping[str, Any]):
    """A mapping from names of columns to columns, with a name for every row.

    >>> import poise
    >>> fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=50, progress=False)
    >>> table = fit.summary()
    >>> table.rows
    ['log_prob', 'magnetization', 'hamming']
    >>> len(table["r_hat"])
    3
    """

    def __init__(self, rows: list[str], columns: Mapping[str, Any], text: str = "") -> None:
        self.rows = rows
        self._columns = dict(columns)
        self._text = text

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame with a row for each name in ``rows``."""
        import pandas

        return pandas.DataFrame(self._columns, index=pandas.Index(self.rows))

    def __str__(self) -> str:
        return self._text or self._plain()

    def __repr__(self) -> str:
        return f"<poise table of {len(self.rows)} rows: {', '.join(self._columns)}>"

    def _plain(self) -> str:
        cells = {name: [_cell(value) for value in column] for name, column in self._columns.items()}
        widths = {name: max([len(name)] + [len(c) for c in column]) for name, column in cells.items()}
        first = max([0] + [len(row) for row in self.rows])
        lines = [" ".join([" " * first] + [name.rjust(widths[name]) for name in cells])]
        for k, row in enumerate(self.rows):
            lines.append(" ".join([row.ljust(first)] + [cells[name][k].rjust(widths[name]) for name in cells]))
        return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (float, np.floating)):
        return "-" if np.isnan(value) else f"{value:.4g}"
    return str(value)
