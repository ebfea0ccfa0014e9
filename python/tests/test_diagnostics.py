"""R-hat, effective sample sizes and errors of any array, expectations and observables."""

import numpy as np
import pytest

import poise


def test_numbers_are_those_of_the_report():
    fit = poise.sample(poise.ising(size=6, coupling=0.3), "gibbs", draws=300, progress=False)
    row = fit.report["monitors"]["log_prob"]
    assert poise.ess(fit.log_prob) == row["ess"]
    assert poise.ess(fit.log_prob, "tail") == row["ess_tail"]
    assert poise.rhat(fit.log_prob) == row["r_hat"]
    assert poise.mcse(fit.log_prob) == pytest.approx(row["mcse"])


def test_arrays_of_any_shape():
    x = np.random.default_rng(1).normal(size=(3, 200, 2, 5))
    assert poise.ess(x).shape == poise.rhat(x).shape == poise.mcse(x, "sd").shape == (2, 5)
    assert poise.ess(x)[1, 3] == poise.ess(x[:, :, 1, 3])
    with pytest.raises(ValueError, match=r"x\[chain, draw\]"):
        poise.rhat(x[0, :, 0, 0])
    with pytest.raises(ValueError, match="kind"):
        poise.ess(x, "median")


def test_expectations():
    fit = poise.sample(poise.ising(size=6, coupling=0.3), "gibbs", draws=300, progress=False)
    found = fit.expect(lambda x: x.sum(axis=(1, 2)), batch=97)
    magnetization = fit.report["monitors"]["magnetization"]
    assert found.mean == pytest.approx(magnetization["mean"])
    assert found.mcse == pytest.approx(magnetization["mcse"])
    means = fit.expect(lambda x: x)
    assert means.mean.shape == means.rhat.shape == (6, 6)
    np.testing.assert_allclose(means.mean, fit.draws.mean(axis=(0, 1)))
    with pytest.raises(ValueError, match="one value for each"):
        fit.expect(lambda x: 1.0)


def test_observables_of_spin_models():
    fit = poise.sample(poise.ising(size=16, coupling=0.44), "wolff", draws=1000, progress=False)
    energy = fit.observables["energy"]
    assert energy["value"] == pytest.approx(-fit.log_prob.mean() / 0.44 / 256)
    assert energy["error"] > 0 and energy["tau"] >= 0.3
    assert poise.sample(poise.bernoulli(size=4), draws=50, progress=False).observables == {}
