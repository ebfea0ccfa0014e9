"""Looks at user code on random states, before a run spends hours on a mistake in it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import PoiseWarning
from ._frameworks import Code

_ROWS = 4
_FLIPS = 16  # per state, to compare a gradient with
Array = npt.NDArray[Any]


def check_code(code: Code, cardinalities: npt.NDArray[np.int64], looks: dict[str, Any]) -> None:
    """Raises ValueError or TypeError with one sentence on the first thing that is wrong."""
    random = np.random.default_rng(0)
    levels = random.integers(0, cardinalities, size=(_ROWS, len(cardinalities)))
    x = appearance(levels, looks)
    try:
        values = _values(code, x)
    except Exception as error:
        if code.framework == "numpy":
            error.add_note("poise: log_prob was given a NumPy array; framework='torch' or 'jax' gives it others")
        raise
    tolerance = 1e-8 if looks["dtype"] == "float64" and values.dtype == np.float64 else 1e-4
    if not _agree(values, _values(code, x), tolerance):
        raise ValueError(
            "log_prob gave different numbers for the same states; is something random in it, such as dropout? "
            "(a PyTorch module samples in eval mode: module.eval())"
        )
    for row in range(_ROWS):
        try:
            alone = _values(code, x[row : row + 1])
        except Exception as error:
            error.add_note(
                f"poise: log_prob took a batch of {_ROWS} states but not one of them alone; do rows of the batch see each "
                "other, as in batch normalisation? (a PyTorch module samples in eval mode: module.eval())"
            )
            raise
        if not _agree(values[row : row + 1], alone, tolerance):
            raise ValueError(
                f"log_prob gave {values[row]:.6g} for a state in a batch and {alone[0]:.6g} for the same state alone; do "
                "rows of the batch see each other, as in batch normalisation? (a PyTorch module samples in eval mode: "
                "module.eval())"
            )
    finite = np.isfinite(values)
    if code.has_log_ratios and finite.any():
        _check_log_ratios(code, levels[finite], cardinalities, looks)
    if code.has_gradient and finite.any():
        _check_gradient(code, levels[finite], cardinalities, looks)


def appearance(levels: npt.NDArray[np.int64], looks: dict[str, Any]) -> Array:
    """States as user code sees them."""
    shape = (len(levels), *looks["shape"])
    if looks["one_hot"]:
        return np.eye(looks["width"], dtype=looks["dtype"])[levels].reshape(*shape, looks["width"])
    values = np.asarray(looks["labels"])[levels] if looks["labels"] else levels
    return np.ascontiguousarray(values.reshape(shape).astype(looks["dtype"]))


def _values(code: Code, x: Array) -> Array:
    given = x.copy()
    values = np.array(code.log_prob(given))
    if not np.array_equal(given, x):
        raise ValueError("log_prob changed the states it was given; let it work on a copy")
    wrong = np.isnan(values) | (values == np.inf)
    if wrong.any():
        raise ValueError(
            f"log_prob gave {values[wrong][0]} for a random state, expected a finite number, or -inf where there is no "
            "probability"
        )
    return values


def _agree(a: Array, b: Array, tolerance: float) -> bool:
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= tolerance * (1 + np.abs(a))
    return bool(np.all(close | (a == b)))


def _some_flips(
    levels: npt.NDArray[np.int64], cardinalities: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows, variables and new levels of random changes."""
    random = np.random.default_rng(1)
    free = np.flatnonzero(cardinalities > 1)
    rows = np.repeat(np.arange(len(levels)), _FLIPS)
    variables = random.choice(free, size=len(rows))
    away = random.integers(1, cardinalities[variables])
    return rows, variables, (levels[rows, variables] + away) % cardinalities[variables]


def _exact_ratios(code: Code, levels: Any, flips: Any, looks: dict[str, Any]) -> npt.NDArray[np.float64]:
    rows, variables, to = flips
    after = levels[rows].copy()
    after[np.arange(len(rows)), variables] = to
    return (_values(code, appearance(after, looks)) - _values(code, appearance(levels, looks))[rows]).astype(np.float64)


def _check_log_ratios(code: Code, levels: Any, cardinalities: Any, looks: dict[str, Any]) -> None:
    rows, variables, to = flips = _some_flips(levels, cardinalities)
    found = code.log_ratios(appearance(levels, looks))
    first = np.cumsum(cardinalities - 1) - (cardinalities - 1)
    move = first[variables] + to - (to > levels[rows, variables])
    claimed = found[rows, move].astype(np.float64)
    exact = _exact_ratios(code, levels, flips, looks)
    wrong = ~np.isclose(claimed, exact, rtol=1e-3, atol=1e-3)
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"log_ratios gave {claimed[k]:.6g} for a change of variable {variables[k]}, but log_prob differs by {exact[k]:.6g}"
        )


def _check_gradient(code: Code, levels: Any, cardinalities: Any, looks: dict[str, Any]) -> None:
    x = appearance(levels, looks)
    try:
        _, grad = code.log_prob_and_gradient(x)
    except Exception:
        if code._gradient is not None or not code.differentiable:
            raise
        code.differentiable = False  # what the library cannot differentiate; samplers that need a gradient will say so
        return
    if not np.all(np.isfinite(grad)):
        raise ValueError("the gradient holds numbers that are not finite, at a state where log p is finite")
    rows, variables, to = flips = _some_flips(levels, cardinalities)
    n = len(cardinalities)
    here = levels[rows, variables]
    if looks["one_hot"]:
        flat = grad.reshape(len(levels), n, -1)
        predicted = flat[rows, variables, to] - flat[rows, variables, here]
    else:
        label = np.asarray(looks["labels"]) if looks["labels"] else np.arange(cardinalities.max())
        predicted = grad.reshape(len(levels), n)[rows, variables] * (label[to] - label[here])
    predicted = predicted.astype(np.float64)
    exact = _exact_ratios(code, levels, flips, looks)
    usable = np.isfinite(exact)
    predicted, exact = predicted[usable], exact[usable]
    size = float(np.sum(exact**2))
    if size == 0.0:
        return
    error = float(np.sum((predicted - exact) ** 2))
    together = float(np.sum(predicted * exact)) / np.sqrt(size * max(float(np.sum(predicted**2)), 1e-300))
    if together < -0.5:
        raise ValueError(
            f"the gradient points the wrong way: over {len(exact)} random changes its predictions of log p(x')/p(x) have a "
            f"correlation of {together:.2f} with the true ones"
        )
    if error > 0.04 * size and _differs_from_differences(code, x, grad, looks):
        raise ValueError("the gradient is not the derivative of log_prob: numerical differences give other numbers")
    if error > size:
        warnings.warn(
            f"the gradient predicts log p(x')/p(x) worse than the number 0 would (error {np.sqrt(error / size):.1f} times "
            "their size): samplers with gradients are right for this target, but an exact one (lsb, lb, gibbs) may be faster",
            PoiseWarning,
            stacklevel=2,
        )


def _differs_from_differences(code: Code, x: Array, grad: Array, looks: dict[str, Any]) -> bool:
    """Whether central differences contradict the gradient. Code that has no derivative at states, because it rounds its
    input or looks it up, is not judged: its differences depend on the step, or there are none."""
    if looks["dtype"] != "float64" or code._gradient is None:
        return False
    directions = np.random.default_rng(2).standard_normal((8, *x.shape))

    def differences(step: float) -> Array:
        with np.errstate(all="ignore"):
            pairs = [(code.log_prob(x + step * d), code.log_prob(x - step * d)) for d in directions]
        return np.concatenate([(ahead - behind) / (2 * step) for ahead, behind in pairs])

    try:
        measured, coarser = differences(1e-5), differences(3e-5)
    except Exception:
        return False
    claimed = np.concatenate([(d * grad).reshape(len(x), -1).sum(1) for d in directions])
    usable = np.isfinite(measured) & np.isfinite(coarser)
    size = np.sum(measured[usable] ** 2)
    if size == 0 or np.sum((measured - coarser)[usable] ** 2) > 1e-4 * size:
        return False
    return bool(np.sum((measured - claimed)[usable] ** 2) > 1e-3 * size)
