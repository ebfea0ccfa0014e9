"""ArviZ takes the result and finds the numbers we find."""

import importlib.util

import matplotlib

matplotlib.use("Agg")

import arviz
import numpy as np
import pytest

import poise

OLD = arviz.__version__.startswith("0.")


@pytest.fixture(scope="module")
def fit():
    return poise.sample(poise.ising(size=5, coupling=0.2), draws=500, chains=4, seed=1, progress=False)


def test_kind(fit):
    tree = fit.to_datatree()
    if OLD:
        assert isinstance(tree, arviz.InferenceData)
    else:
        import xarray

        assert isinstance(tree, xarray.DataTree)
    assert dict(tree.posterior.sizes) == {"chain": 4, "draw": 500, "row": 5, "column": 5}
    assert tree.posterior["x"].dtype == np.int8
    assert tree.attrs["inference_library"] == "poise"


def _value(dataset, name):
    if hasattr(dataset, "posterior"):
        dataset = dataset.posterior
    return np.asarray(dataset[name])


def test_ess_and_r_hat_agree(fit):
    tree = fit.to_datatree()
    ours = fit.summary()
    for row, name in enumerate(ours.rows):
        if name == "log_prob":
            data = {"value": fit.log_prob}
        else:
            data = {"value": fit[name]}
        series = arviz.convert_to_dataset(data)
        assert float(_value(arviz.ess(series, method="bulk"), "value")) == pytest.approx(ours["ess"][row], rel=1e-8)
        assert float(_value(arviz.rhat(series, method="rank"), "value")) == pytest.approx(ours["r_hat"][row], rel=1e-8)
        assert float(_value(arviz.mcse(series, method="mean"), "value")) == pytest.approx(ours["mcse"][row], rel=1e-8)
    for row, name in enumerate(ours.rows[1:], 1):
        assert float(_value(arviz.ess(tree, var_names=[name]), name)) == pytest.approx(ours["ess"][row], rel=1e-8)


def test_ess_of_variables_agrees(fit):
    """For two-valued variables we give the ESS of the mean."""
    ours = fit.variables()
    theirs = _value(arviz.ess(fit.to_datatree(), var_names=["x"], method="mean"), "x").ravel()
    np.testing.assert_allclose(ours["ess"], theirs, rtol=1e-8)
    theirs = _value(arviz.mcse(fit.to_datatree(), var_names=["x"], method="mean"), "x").ravel()
    np.testing.assert_allclose(ours["mcse"], theirs, rtol=1e-8)


def test_summary_and_plots_run(fit):
    tree = fit.to_datatree()
    table = arviz.summary(tree, var_names=["magnetization", "hamming"])
    assert "magnetization" in table.index
    arviz.summary(tree)
    if OLD:
        arviz.plot_trace(tree, var_names=["magnetization"])
        arviz.plot_trace(tree, var_names=["x"], coords={"row": 0, "column": 0})
    else:
        arviz.plot_trace(tree, var_names=["magnetization"], backend="matplotlib")
    matplotlib.pyplot.close("all")


def test_what_netcdf_needs_is_named(fit, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in ("netCDF4", "h5netcdf") else find(name, *rest)
    )
    with pytest.raises(ImportError, match="pip install netCDF4"):
        fit.save(tmp_path / "run.nc")


def test_saved_files_open(fit, tmp_path):
    fit.save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match="is a NetCDF file, and poise reads its own stores only"):
        poise.load(tmp_path / "run.nc")
    if OLD:
        tree = arviz.from_netcdf(str(tmp_path / "run.nc"))
    else:
        import xarray

        tree = xarray.open_datatree(tmp_path / "run.nc", engine="h5netcdf")
    np.testing.assert_array_equal(tree.posterior["x"].values, fit.draws)
    np.testing.assert_array_equal(tree.sample_stats["lp"].values, fit.log_prob)
