"""Ranks of a script that a launcher has started several times."""

from __future__ import annotations

from . import _core


def rank() -> int:
    """Which of the processes this is that ``mpirun`` or ``srun`` has started, from 0; 0 also where there is only one.

    What should happen once, such as ``fit.save(...)`` or ``print``, belongs below ``if poise.rank() == 0:``.

    >>> import poise
    >>> poise.rank()
    0
    """
    return _core.rank()


def num_ranks() -> int:
    """How many of them there are; 1 where the script was started by itself.

    >>> import poise
    >>> poise.num_ranks()
    1
    """
    return _core.num_ranks()
