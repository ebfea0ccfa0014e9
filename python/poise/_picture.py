"""Pictures as SVG: text that a notebook draws and a file keeps."""

from __future__ import annotations

import html
import os

from ._arguments import folder_may_be_missing, path


class Picture(str):
    """An SVG document. A notebook draws it; :meth:`save` writes it to a file.

    >>> import poise
    >>> fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=50, progress=False)
    >>> fit.plot().startswith("<svg")
    True
    """

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<poise picture of {len(self)} bytes>"

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the picture to a file that ends in ``.svg``."""
        write_text(file, self)


def write_text(file: str | os.PathLike[str], text: str) -> None:
    name = path("file", file)
    with folder_may_be_missing(name), open(name, "w", encoding="utf-8") as out:
        out.write(text)


def framed(page: str) -> str:
    """A page in a frame of its own, so that its styles and a notebook's do not meet."""
    return (
        '<iframe title="report of a run" style="width: 100%; height: 40rem; border: 1px solid #d9d9de" '
        f'srcdoc="{html.escape(page)}"></iframe>'
    )
