"""Functions of states that are evaluated while a run samples, and what an interrupted warm-up tells."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import poise

FUNCTIONS = {"corner": lambda x: x[:, 0, 0] * x[:, 0, 2], "up": lambda x: (x > 0).mean(axis=(1, 2))}


def test_values_are_those_of_the_draws() -> None:
    model = poise.ising(size=8, coupling=0.3)
    kept = poise.sample(model, "gibbs", draws=300, observe=FUNCTIONS, progress=False)
    assert np.array_equal(kept["corner"], kept.draws[:, :, 0, 0] * kept.draws[:, :, 0, 2])
    fit = poise.sample(model, "gibbs", draws=300, keep="monitors", observe=FUNCTIONS, progress=False)
    plain = poise.sample(model, "gibbs", draws=300, progress=False)
    assert np.array_equal(fit.log_prob, plain.log_prob)
    for name in FUNCTIONS:
        assert np.array_equal(fit[name], kept[name])
    rows = fit.summary().rows
    assert rows.index("log_prob") < rows.index("corner") < rows.index("hamming")
    found = plain.expect(FUNCTIONS["up"])
    assert fit.report["monitors"]["up"]["mean"] == pytest.approx(found.mean)
    assert fit.report["monitors"]["up"]["mcse"] == pytest.approx(found.mcse)


def test_runs_are_made_longer_and_resumed(tmp_path: Any) -> None:
    model = poise.ising(size=8, coupling=0.3)
    whole = poise.sample(model, "gibbs", draws=90, keep="monitors", observe=FUNCTIONS, progress=False)
    given: dict[str, Any] = {"keep": "monitors", "observe": FUNCTIONS, "progress": False}
    longer = poise.sample(model, "gibbs", draws=40, **given).extend(50, progress=False)
    assert np.array_equal(longer["corner"], whole["corner"])
    file = tmp_path / "run.zarr"
    poise.sample(model, "gibbs", draws=40, out=file, checkpoint=True, **given)
    assert poise.load(file)["up"].shape == (4, 40)
    with pytest.raises(ValueError, match="observes corner, up"):
        poise.resume(file, draws=90, progress=False)
    resumed = poise.resume(file, draws=90, observe=FUNCTIONS, progress=False)
    assert np.array_equal(resumed["up"], whole["up"])


def test_targets_of_ones_own_are_observed() -> None:
    target = poise.target(lambda x: 0.3 * x.sum(axis=1), variables=6, labels=(-1, 1))
    fit = poise.sample(target, "gibbs", draws=50, observe={"sum": lambda x: x.sum(axis=1)}, progress=False)
    assert np.array_equal(fit["sum"], fit.draws.sum(axis=2))


@pytest.mark.parametrize(
    "observe, error, words",
    [
        ({"a": lambda x: x}, ValueError, "one number for each"),
        ({"log_prob": lambda x: x[:, 0, 0]}, ValueError, "is the name of a monitor"),
        ({"a": 3}, TypeError, "expected a function"),
        ([1], TypeError, "expected a dictionary"),
        ({"a": lambda x: 1 / 0}, ZeroDivisionError, "division"),
    ],
)
def test_mistakes_are_told(observe: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        poise.sample(poise.ising(size=4), "gibbs", draws=5, observe=observe, progress=False)


@pytest.mark.parametrize("with_gradient", [False, True])
def test_slow_code_is_sampled_within_the_limit(with_gradient: bool) -> None:
    calls = []

    def log_prob(x: Any) -> Any:
        time.sleep(0.02)
        calls.append(len(x))
        return 0.1 * x.sum(axis=1)

    gradient = (lambda x: np.full(x.shape, 0.1)) if with_gradient else None
    target = poise.target(log_prob, variables=1000, gradient=gradient, check=False)
    with pytest.warns(poise.PoiseWarning):
        fit = poise.sample(target, seconds=1, progress=False)
    assert fit.num_draws >= 1
    assert len(calls) < 300  # of 20 ms at least; a sweep is a thousand


def test_an_interrupted_warm_up_tells_where_chains_are() -> None:
    code = """
import os, signal, threading, poise
model = poise.ising(size=100, coupling=0.3)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    poise.sample(model, "lb", warmup=10**7, chains=3, progress=False)
except poise.Interrupted as stop:
    print(stop.fit, stop.sampler, stop.states.shape, sorted(set(stop.states.ravel().tolist())), stop.steps_per_second > 0)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True).stdout
    assert said == "None lb (3, 100, 100) [-1, 1] True\n", said
