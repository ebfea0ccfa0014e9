"""Runs and files larger than the memory for them: draws stay in the file, and all numbers are the same."""

import numpy as np
import pytest

import poise

MODEL = poise.ising(size=60, coupling=0.3)
SETTINGS = {"sampler": "gibbs", "draws": 300, "chains": 2, "seed": 5, "progress": False}
LITTLE = 150_000 / 2**30  # GiB; the states take 270000 bytes, and diagnosing a series about 80000
LESS = 20_000 / 2**30


@pytest.fixture(scope="module")
def whole():
    return poise.sample(MODEL, **SETTINGS)


def same_numbers(fit, whole):
    for key in ("mean", "mcse", "ess", "r_hat"):
        np.testing.assert_allclose(fit.variables()[key], whole.variables()[key], rtol=1e-10)
    assert fit.num_draws == whole.num_draws == 300
    for name, values in whole.monitors.items():
        np.testing.assert_array_equal(fit[name], values)


def test_draws_that_do_not_fit_are_in_the_file(tmp_path, whole):
    file = tmp_path / "run.zarr"
    fit = poise.sample(MODEL, **SETTINGS, out=file, memory=LITTLE)
    with pytest.raises(ValueError, match="run.zarr only"):
        _ = fit.draws
    same_numbers(fit, whole)
    np.testing.assert_array_equal(fit.to_datatree()["posterior"]["x"].values, whole.draws)
    fit.save(tmp_path / "copy.zarr")
    np.testing.assert_array_equal(poise.load(tmp_path / "copy.zarr").draws, whole.draws)
    with pytest.raises(ValueError, match="cannot be made longer"):
        fit.extend(10)


def test_files_that_do_not_fit_are_summarised(tmp_path, whole):
    file = tmp_path / "run.zarr"
    whole.save(file)
    fit = poise.load(file, memory=LITTLE)
    same_numbers(fit, whole)
    less = poise.load(file, memory=LESS)
    with pytest.raises(ValueError, match="to_datatree"):
        _ = less.draws
    assert less.report["notes"]
    assert less.num_draws == 300
    np.testing.assert_array_equal(less.log_prob, whole.log_prob)
    np.testing.assert_array_equal(less.to_datatree()["posterior"]["x"].values, whole.draws)
    assert poise.load(file).report["monitors"] == whole.report["monitors"]


def test_without_a_file_a_run_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="write them to a file"):
        poise.sample(MODEL, **SETTINGS, memory=LITTLE)
    with pytest.raises(ValueError, match="memory"):
        poise.sample(MODEL, **SETTINGS, memory=-1)
    fit = poise.sample(MODEL, **SETTINGS, memory=LITTLE, keep="monitors")
    assert fit.num_draws == 300
