"""What can go wrong besides bad arguments, which are ValueError, TypeError and FileNotFoundError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import text

if TYPE_CHECKING:
    from ._fit import Fit


class PoiseWarning(UserWarning):
    """The answer is not to be trusted yet, and the message says why.

    The subclasses name causes, so that filters can tell them apart; ``code`` is what the program's JSON calls them.
    """

    code: str = ""


class RHatWarning(PoiseWarning):
    """Chains do not agree."""

    code = "rhat"


class ESSWarning(PoiseWarning):
    """Too few effective draws."""

    code = "ess"


class StuckWarning(PoiseWarning):
    """Chains or variables do not move."""

    code = "stuck"


class UnvisitedWarning(PoiseWarning):
    """A level of positive probability was never drawn."""

    code = "unvisited"


class LocalGainWarning(PoiseWarning):
    """The sampler lacks local moves: a Gibbs update of one variable would still raise log p."""

    code = "local_gain"


class NonFiniteWarning(PoiseWarning):
    """Some draws are infinite or not a number."""

    code = "non_finite"


class ShortWarning(PoiseWarning):
    """Too few draws to judge them."""

    code = "short"


class OneChainWarning(PoiseWarning):
    """One chain cannot be compared with others."""

    code = "one_chain"


class LadderWarning(PoiseWarning):
    """Replicas of tempered chains do not travel between the ends of their ladder."""

    code = "ladder"


class ModesWarning(PoiseWarning):
    """Chains, or a pilot run, are in some of several modes."""

    code = "modes"


class DisagreementWarning(PoiseWarning):
    """Draws disagree with an exact answer that is known."""

    code = "disagreement"


def explain(code: str | PoiseWarning) -> str:
    """What a kind of warning means, how sure it is, and what to do: the text of ``poise explain CODE``. Takes a code, or a
    warning of ``fit.warnings``.

    >>> import poise
    >>> print(poise.explain("one_chain").splitlines()[0])
    one_chain: nothing to compare with
    """
    if isinstance(code, PoiseWarning):
        code = code.code
    return _core.explanation(text("code", code))


_CATEGORIES = {category.code: category for category in PoiseWarning.__subclasses__()}


def as_warnings(found: Any) -> list[PoiseWarning]:
    """Warnings of the core, each in its category."""
    out = []
    for one in found:
        warning = _CATEGORIES.get(one["code"], PoiseWarning)(one["message"])
        warning.code = one["code"]
        out.append(warning)
    return out


class Interrupted(KeyboardInterrupt):
    """A run was interrupted; ``fit`` holds what had been drawn until then, or None where that is nothing. ``sampler`` and
    ``choice`` are those of the run. In the warm-up ``states`` are those that the chains had, ``[chain, ...]``: what
    ``init`` takes. ``steps_per_second`` is how fast each chain went."""

    def __init__(
        self, message: str, fit: Any, report: dict[str, Any] | None = None, states: npt.NDArray[np.int8] | None = None
    ) -> None:
        super().__init__(message)
        self.fit: Fit | None = fit
        self.sampler: str | None = (report or {}).get("sampler")
        self.choice: dict[str, Any] | None = (report or {}).get("choice")
        self.states = states
        self.steps_per_second = float("nan") if report is None else _speed(report)


def _speed(report: dict[str, Any]) -> float:
    seconds = report["seconds"]["warmup"] + report["seconds"]["sampling"]
    made = (report.get("warmup_steps") or 0) + report["draws"] * report["thin"]
    return made / seconds if seconds else float("nan")
