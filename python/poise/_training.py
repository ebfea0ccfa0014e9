"""Training of restricted Boltzmann machines from arrays."""

from __future__ import annotations

import os
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from . import _core
from ._arguments import choice, folder_may_be_missing, path, positive, whole
from ._models import Model
from ._progress import _somebody_looks, _tqdm


class TrainedRbm(Model):
    """An RBM as a model, with the arrays that were learned and how it went."""

    def __init__(self, training: _core.Training, image: tuple[int, int], epochs: list[dict[str, Any]], final: Any) -> None:
        weights = cast("npt.NDArray[np.float32]", training.weights)
        name = f"rbm with {weights.shape[1]} visible and {weights.shape[0]} hidden units, trained"
        super().__init__(training.model(name, image))
        self._training = training
        self._image = image
        #: ``[hidden, visible]``
        self.weights: npt.NDArray[np.float32] = weights
        self.visible_bias: npt.NDArray[np.float32] = cast("npt.NDArray[np.float32]", training.visible_bias)
        self.hidden_bias: npt.NDArray[np.float32] = cast("npt.NDArray[np.float32]", training.hidden_bias)
        #: Of each epoch: ``reconstruction_error``, ``pseudo_log_likelihood``, ``rows``, ``seconds``, ``interrupted``.
        self.epochs = epochs
        #: ``reconstruction_error`` and ``pseudo_log_likelihood`` of the weights on all rows.
        self.metrics: dict[str, float] = final

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the weights: ``.safetensors`` or ``.npz``, which :func:`rbm` and the program read."""
        name = path("file", file)
        with folder_may_be_missing(name):
            self._training.save(name, self._image)


def train_rbm(
    X: npt.ArrayLike,
    hidden: int = 250,
    *,
    method: str = "cd",
    k: int = 10,
    epochs: int = 1,
    batch: int = 28,
    rate: float = 1e-3,
    binarise: float | str = 0.5,
    seed: int = 1,
    threads: int = 0,
    device: str = "cpu",
    progress: bool | None = None,
) -> TrainedRbm:
    """Learns an RBM from rows of zeros and ones ``[rows, units]``, or from images ``[images, rows, columns]``.

    Numbers are 0 and 1, from 0 to 1, or whole numbers up to 255. Those between are gray levels: with a number for ``binarise`` a
    unit is on above that threshold, with ``"sample"`` it is on with its gray level as probability, anew in every epoch. Other
    arguments are those of ``poise train rbm``; with a threshold the weights are those of the program, bit by bit. Ctrl-C gives
    what was learned so far.

    >>> import numpy as np, poise
    >>> X = np.random.default_rng(1).random((200, 12)) < 0.3
    >>> model = poise.train_rbm(X, hidden=5, epochs=2, progress=False)
    >>> model.weights.shape, model.variables
    ((5, 12), 12)
    """
    gray, image = _gray_levels(X)
    settings = {
        "method": choice("method", method, ["cd", "pcd"]),
        "k": whole("k", k, 1, 1_000_000),
        "batch": whole("batch", batch, 1, 100_000),
        "rate": positive("rate", rate),
        "seed": whole("seed", seed),
        "threads": whole("threads", threads, 0, 1 << 16),
        "device": choice("device", device, ["cpu", "cuda"]),
    }
    if settings["rate"] > 1.0:
        raise ValueError(f"rate: found {settings['rate']:g}, expected a number above 0, at most 1")
    sampled = isinstance(binarise, str)
    level = 0.0
    if isinstance(binarise, str):
        choice("binarise", binarise, ["sample"])
    else:
        level = float(binarise)
    if not 0.0 <= level < 1.0:
        raise ValueError(f"binarise: found {binarise!r}, expected a threshold from 0 to below 1, or 'sample'")
    rng = np.random.default_rng(settings["seed"])

    def black_and_white() -> npt.NDArray[np.uint8]:
        threshold = rng.random(gray.shape) if sampled else np.full(1, level)
        return np.ascontiguousarray(gray > threshold, dtype=np.uint8)

    total = whole("epochs", epochs, 1, 1_000_000)
    data = black_and_white()
    training = _core.Training(data, whole("hidden", hidden, 1, 100_000), settings)
    told: list[dict[str, Any]] = []
    bar = _tqdm()(total=total * len(data), desc="train", unit="row") if _shown(progress) else None
    try:
        for epoch in range(total):
            if epoch > 0 and sampled:
                data = black_and_white()
            told.append(training.epoch(data, _counter(bar, epoch * len(data))))
            if told[-1]["interrupted"]:
                break
    finally:
        if bar is not None:
            bar.close()
    return TrainedRbm(training, image, told, training.evaluate(data))


def _gray_levels(X: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], tuple[int, int]]:
    """Rows of numbers from 0 to 1, and the sides of the image that a row is; (0, 0) where it is none."""
    try:
        found = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("X: expected an array of numbers") from None
    if found.ndim not in (2, 3) or found.size == 0:
        raise ValueError(f"X: found an array of shape {found.shape}, expected [rows, units] or [images, rows, columns]")
    image = (found.shape[1], found.shape[2]) if found.ndim == 3 else (0, 0)
    if not np.all(np.isfinite(found)) or found.min() < 0 or found.max() > 255:
        raise ValueError("X: expected numbers from 0 to 1, or whole ones to 255")
    if found.max() > 1:
        if np.any(found != np.floor(found)):
            raise ValueError("X: found numbers above 1 that are not whole, expected numbers from 0 to 1, or whole ones to 255")
        found = found / 255
    else:
        found = np.round(found * 255) / 255  # as the program takes them
    return found.reshape(len(found), -1), image


def _shown(progress: bool | None) -> bool:
    return _somebody_looks() if progress is None else bool(progress)


def _counter(bar: Any, before: int) -> Any:
    if bar is None:
        return None

    def update(rows: int, _rows_in_all: int) -> None:
        bar.n = before + rows
        bar.refresh()

    return update
