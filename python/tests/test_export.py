"""`poise export`: what NumPy, xarray and the csv module find in the files."""

import csv
import pathlib

import numpy as np
import pytest

import poise

SETTINGS = {"sampler": "gibbs", "draws": 300, "chains": 3, "seed": 7, "progress": False}
CAR = pathlib.Path(__file__).parents[1] / "examples" / "car.bif"


@pytest.fixture(params=["spins", "network", "monitors"])
def run(request, tmp_path):
    store = tmp_path / "run.zarr"
    model = poise.read(CAR) if request.param == "network" else poise.ising(size=(3, 4), coupling=0.3)
    keep = {"keep": "monitors"} if request.param == "monitors" else {}
    fit = poise.sample(model, **SETTINGS, **keep, out=store)
    return fit, store, fit.draws if request.param != "monitors" else None


def test_netcdf(run, program, tmp_path):
    xarray = pytest.importorskip("xarray")
    fit, store, draws = run
    program("export", str(store), str(tmp_path / "run.nc"))
    with xarray.open_dataset(tmp_path / "run.nc", engine="scipy") as data:
        assert data.attrs["inference_library"] == "poise"
        assert "gibbs" in data.attrs["settings"] and "layout" in data.attrs
        np.testing.assert_array_equal(data["draw"], np.arange(300))
        np.testing.assert_array_equal(data["sample_stats_lp"], fit.log_prob)
        np.testing.assert_array_equal(data["sample_stats_n_steps"], fit._core.n_steps)
        for name, values in fit.monitors.items():
            if name != "log_prob":
                np.testing.assert_array_equal(data["posterior_" + name], values)
        assert ("posterior_x" in data) == (draws is not None)
        if draws is not None:
            np.testing.assert_array_equal(data["posterior_x"], draws)
            assert data["posterior_x"].dtype == np.int8
        if "x_variable" in data:
            assert [name.decode() for name in data["x_variable"].values] == list(fit._core.names)


def test_npz(run, program, tmp_path):
    fit, store, draws = run
    program("export", str(store), str(tmp_path / "run.npz"))
    with np.load(tmp_path / "run.npz") as data:
        np.testing.assert_array_equal(data["lp"], fit.log_prob)
        np.testing.assert_array_equal(data["n_steps"], fit._core.n_steps)
        np.testing.assert_array_equal(data["acceptance_rate"], fit._core.acceptance_rate)
        assert data["n_steps"].dtype == np.int64
        assert data["settings"].item() == fit._core.settings
        for name, values in fit.monitors.items():
            if name != "log_prob":
                np.testing.assert_array_equal(data[name], values)
        assert ("x" in data) == (draws is not None)
        if draws is not None:
            np.testing.assert_array_equal(data["x"], draws)
        if fit._core.names and draws is not None:
            assert list(data["x_variable"]) == list(fit._core.names)


def test_csv(run, program, tmp_path):
    fit, store, draws = run
    program("export", str(store), str(tmp_path / "run.csv"))
    with open(tmp_path / "run.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head[:3] == ["chain", "draw", "log_prob"] and len(rows) == 900
    column = {name: k for k, name in enumerate(head)}
    for row in rows[::37]:
        chain, draw = int(row[0]), int(row[1])
        assert float(row[2]) == fit.log_prob[chain, draw]
        assert int(row[column["n_steps"]]) == fit._core.n_steps[chain, draw]
        if draws is not None:
            states = row[column["n_steps"] + 1 :]
            np.testing.assert_array_equal(np.array(states, dtype=np.int8), draws[chain, draw].ravel())


def test_a_killed_run_and_its_files(program, tmp_path):
    store = tmp_path / "run.zarr"
    program("sample", "ising:size=4", "--draws", "50", "--out", str(store), "--checkpoint", "--quiet")
    (tmp_path / "run.csv").write_text("an older one")
    program("export", str(store), str(tmp_path / "run.csv"))
    assert (tmp_path / "run.csv").read_text().startswith("chain,draw")
    refused = program("export", str(store), str(tmp_path / "run.txt"), expect=2)
    assert "ends in .nc, .npz or .csv" in refused.stderr
    refused = program("export", str(tmp_path / "run.csv"), str(tmp_path / "run.nc"), expect=2)
    assert "a run is stored as a folder" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.csv", "run.zarr"]
