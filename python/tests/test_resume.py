"""Runs that go on: after a kill, and to be longer."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import poise

SCRIPT = """
import sys
import numpy as np
import poise

weights = np.random.default_rng(0).normal(size=(12, 12)) / 4
weights = weights + weights.T

def log_prob(x):
    return 0.5 * np.einsum("ci,ij,cj->c", x, weights, x)

def gradient(x):
    return x @ weights

model = poise.target(log_prob, variables=12, gradient=gradient, name="quadratic")
if __name__ == "__main__":
    poise.sample(model, sampler="flsb", draws=1500, chains=3, seed=4, out=sys.argv[1], checkpoint=0.05, progress=False)
"""


def test_extended_runs_are_those_that_were_longer_at_first():
    model = poise.ising(size=6, coupling=0.3)
    for sampler in ["gibbs", "lsb", "lb:g=sqrt", "temper", "dlsb"]:
        short = poise.sample(model, sampler=sampler, draws=40, chains=2, seed=3, progress=False)
        longer = short.extend(25, progress=False).extend(35, progress=False)
        whole = poise.sample(model, sampler=sampler, draws=100, chains=2, seed=3, progress=False)
        assert longer.num_draws == 100
        np.testing.assert_array_equal(longer.draws, whole.draws)
        np.testing.assert_array_equal(longer.log_prob, whole.log_prob)


def test_only_runs_of_this_process_are_extended(tmp_path):
    fit = poise.sample(poise.ising(size=4, coupling=0.2), sampler="gibbs", draws=10, progress=False)
    fit.save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match="cannot be made longer"):
        poise.load(tmp_path / "run.nc").extend(10)
    with pytest.raises(ValueError, match="draws"):
        fit.extend(0)


def test_killed_runs_of_a_target_go_on(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    sys.path.insert(0, str(tmp_path))
    try:
        from script import model  # noqa: PLC0415
    finally:
        sys.path.pop(0)
    whole = poise.sample(model, sampler="flsb", draws=1500, chains=3, seed=4, progress=False)
    file = tmp_path / "run.nc"
    child = subprocess.Popen([sys.executable, str(tmp_path / "script.py"), str(file)], env=os.environ)
    deadline = time.monotonic() + 60
    while not (tmp_path / "run.nc.checkpoint").exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert (tmp_path / "run.nc.checkpoint").exists()
    with pytest.raises(ValueError, match="unfinished run"):
        poise.sample(model, draws=10, out=file, progress=False)
    other = poise.target(lambda x: x.sum(1), variables=12, gradient=lambda x: np.ones(x.shape), name="quadratic")
    with pytest.raises(ValueError, match="not the one that the run was made with"):
        poise.resume(file, other, progress=False)
    fit = poise.resume(file, model, progress=False)
    np.testing.assert_array_equal(fit.draws, whole.draws)
    np.testing.assert_array_equal(poise.load(file).draws, whole.draws)
    with pytest.raises(ValueError, match="is finished"):
        poise.resume(file, model, progress=False)
    assert poise.resume(file, model, draws=1600, progress=False).num_draws == 1600


def test_words_are_checked(tmp_path):
    model = poise.ising(size=4, coupling=0.2)
    with pytest.raises(ValueError, match="out="):
        poise.sample(model, draws=10, checkpoint=True, progress=False)
    with pytest.raises(FileNotFoundError):
        poise.resume(tmp_path / "none.nc", model)
    poise.sample(model, draws=10, out=tmp_path / "run.nc", progress=False)
    with pytest.raises((ValueError, FileNotFoundError), match="checkpoint"):
        poise.resume(tmp_path / "run.nc", model)
