"""Progress bars for terminals and notebooks, after the conventions of tqdm."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class ProgressBars:
    """A bar for warm-up and one for sampling. Use as a context; ``update`` is what the engine calls."""

    def __init__(self, show: bool | None, title: str = "") -> None:
        # None is the default of `progress=`: a bar where somebody may be looking.
        self.show = _somebody_looks() if show is None else show
        self.title = title
        self.bar: Any = None
        self.phase = ""

    def __enter__(self) -> ProgressBars:
        return self

    def __exit__(self, *details: object) -> None:
        self._close()

    @property
    def callback(self) -> Callable[[dict[str, Any]], None] | None:
        return self.update if self.show else None

    def update(self, now: dict[str, Any]) -> None:
        phase = now["phase"] if now["phase"] in ("sample", "points") else "warm-up"
        if phase != self.phase:
            self._close()
            self.phase = phase
            self.bar = _tqdm()(
                total=now["total"] or None,
                desc=f"{self.title} {phase}".strip(),
                unit={"sample": "draw", "points": "point"}.get(phase, "step"),
                unit_scale=phase == "warm-up",
                dynamic_ncols=True,
            )
        self.bar.n = now["done"]
        if phase == "points":
            self.bar.refresh()
            return
        note = {"accepted": f"{now['acceptance_rate']:.2f}", "log_prob": f"{now['log_prob']:.5g}"}
        if now["ess_log_prob"] == now["ess_log_prob"]:
            note["ess"] = f"{now['ess_log_prob']:.0f}"
        self.bar.set_postfix(note, refresh=False)
        self.bar.refresh()

    def _close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        self.bar = None


def _tqdm() -> Any:
    from tqdm.auto import tqdm

    return tqdm


def _somebody_looks() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
