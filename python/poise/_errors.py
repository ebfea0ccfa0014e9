"""What can go wrong besides bad arguments, which are ValueError, TypeError and FileNotFoundError."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._fit import Fit


class PoiseWarning(UserWarning):
    """The answer is not to be trusted yet, and the message says why."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted; ``fit`` holds what had been drawn until then, or None where that is nothing."""

    def __init__(self, message: str, fit: Fit | None) -> None:
        super().__init__(message)
        self.fit = fit
