"""Scans over a parameter."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import poise

pytestmark = pytest.mark.filterwarnings("ignore::poise.PoiseWarning")
J = np.array([[0, 1, 0.5], [1, 0, -1], [0.5, -1, 0]])


def energies() -> np.ndarray[Any, Any]:
    states = np.array(list(product([-1, 1], repeat=3)))
    return -0.5 * np.einsum("si,ij,sj->s", states, J, states) - 0.1 * states[:, 0]


def test_a_replica_exchange_has_the_law_of_every_point() -> None:
    found = poise.scan(
        lambda T: poise.ising(J=J, h=[0.1, 0, 0], T=T), {"T": [1, 2, 3]}, "gibbs", exchange=True, draws=4000, progress=False
    )
    assert found.attrs["exchange"] == 1
    for k, temperature in enumerate(found["T"].values):
        weights = np.exp(-energies() / temperature)
        truth = (weights * -energies() / temperature).sum() / weights.sum()
        assert abs(found.log_prob[k] - truth) < 4.5 * found.log_prob_error[k]
    correlations = found.log_prob_correlation.values
    assert correlations.shape == (3, 3) and np.array_equal(correlations, correlations.T)
    assert found.acceptance[:2].min() > 0.3 and np.isnan(found.acceptance[2])


def test_points_are_those_of_the_program_and_continue(tmp_path: Any) -> None:
    file = tmp_path / "scan.json"
    given: dict[str, Any] = {"draws": 100, "exchange": False, "out": file, "progress": False}
    two = poise.scan("ising:size=4", "T=2,3", "gibbs", **given)
    three = poise.scan(poise.model("ising:size=4"), {"T": [2, 2.5, 3]}, "gibbs", **given)
    assert np.array_equal(three.energy.sel(T=[2, 3]), two.energy)
    assert "energy_correlation" not in three and three.attrs["exchange"] == 0


def test_other_parameters_and_targets_have_independent_points() -> None:
    found = poise.scan("ising:size=4,mu=1", "coupling=0.1,0.2", "gibbs", draws=50, progress=False)
    assert "does not multiply log p" in found.attrs["points"]
    mine = poise.scan(
        lambda b: poise.target(lambda x: b * x.sum(axis=1), variables=4), {"b": [0.0, 1.0]}, draws=200, progress=False
    )
    assert mine.log_prob[0] == 0 and mine.log_prob[1] > 2


@pytest.mark.parametrize(
    "model, over, error, words",
    [
        (poise.ising(J=J), {"T": [1, 2]}, ValueError, "lambda T"),
        (3, {"T": [1]}, TypeError, "expected a model"),
        ("ising:size=4", {"T": []}, ValueError, "no value"),
        ("ising:size=4", {"X": [1]}, ValueError, "unknown key"),
        ("ising:size=4", 3, TypeError, "one parameter"),
    ],
)
def test_mistakes_are_told(model: Any, over: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        poise.scan(model, over, progress=False)
