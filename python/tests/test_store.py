"""Runs as Zarr stores: what xarray and ArviZ see of them, and what becomes of damaged ones."""

import os
import pathlib
import pickle

import numpy as np
import pytest

import poise

MODEL = poise.ising(size=6, coupling=0.3)
SETTINGS = {"sampler": "gibbs", "draws": 300, "chains": 2, "seed": 7, "progress": False}


@pytest.fixture
def store(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "run.zarr")


def test_xarray_opens_it_as_it_is(store: str, recwarn: pytest.WarningsRecorder) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    fit = poise.sample(MODEL, **SETTINGS, out=store)
    tree = xarray.open_datatree(store, engine="zarr")
    x = tree["posterior/x"]
    assert x.dims == ("chain", "draw", "row", "column") and x.dtype == np.int8
    assert (x.values == fit.draws).all()
    assert (tree["sample_stats/lp"].values == fit.log_prob).all()
    assert (tree["posterior/magnetization"].values == fit["magnetization"]).all()
    assert (tree["posterior/draw"].values == np.arange(300)).all()
    assert tree.attrs["inference_library"] == "poise" and "model" in tree.attrs["settings"]
    assert not [w for w in recwarn if "onsolidated" in str(w.message)]
    arviz = pytest.importorskip("arviz")
    if int(arviz.__version__.split(".")[0]) < 1:
        data = arviz.InferenceData.from_datatree(tree)
        assert set(data.groups()) >= {"posterior", "sample_stats"}
        assert arviz.summary(data, var_names=["magnetization"])["r_hat"].notna().all()


def test_names_and_several_levels(store: str) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    car = pathlib.Path(__file__).parents[1] / "examples" / "car.bif"
    fit = poise.sample(poise.read(car), **SETTINGS, out=store)
    x = xarray.open_datatree(store, engine="zarr")["posterior/x"]
    assert (x.values == fit.draws).all()
    again = poise.load(store)
    assert (again.draws == fit.draws).all()
    assert list(x.coords["x_variable"].values) == list(again._core.names)


def test_files_of_several_chunks(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    monkeypatch.setenv("POISE_MOST_FILES", "4")
    fit = poise.sample(MODEL, **{**SETTINGS, "draws": 900}, out=store, checkpoint=True)
    folder = pathlib.Path(store, "posterior", "x")
    assert sorted(os.listdir(folder))[:-1] == [f"c.{i}.{k}.0.0" for i in range(2) for k in range(2)]
    x = xarray.open_datatree(store, engine="zarr")["posterior/x"]
    assert x.encoding["shards"] == (1, 512, 6, 6) and x.encoding["chunks"] == (1, 256, 6, 6)
    assert (x.values == fit.draws).all()
    assert (x[1, 500:600, 2].values == fit.draws[1, 500:600, 2]).all()
    assert (poise.load(store).draws == fit.draws).all()
    longer = poise.resume(store, draws=1500)
    x = xarray.open_datatree(store, engine="zarr")["posterior/x"]
    assert x.encoding["shards"] == (1, 512, 6, 6) and x.shape[1] == 1500
    assert (x.values == longer.draws).all()
    shard = folder / "c.1.1.0.0"
    shard.write_bytes(shard.read_bytes()[:-5])
    with pytest.raises(ValueError, match="draws 512 to 767 of chain 1 are damaged"):
        poise.load(store)


def test_what_exceeds_memory_stays_in_the_store(store: str, tmp_path: pathlib.Path) -> None:
    fit = poise.sample(MODEL, **SETTINGS, out=store)
    lazy = poise.load(store, memory=1e-5)
    with pytest.raises(ValueError, match="memory"):
        _ = lazy.draws
    assert (lazy.log_prob == fit.log_prob).all()
    copied = str(tmp_path / "copy.zarr")
    lazy.save(copied)
    assert (poise.load(copied).draws == fit.draws).all()
    pytest.importorskip("zarr")
    assert (lazy.to_datatree()["posterior"]["x"].values == fit.draws).all()
    assert (pickle.loads(pickle.dumps(lazy)).draws == fit.draws).all()


def test_saved_and_loaded(store: str) -> None:
    fit = poise.sample(MODEL, **SETTINGS)
    fit.save(store)
    again = poise.load(store + "/")
    assert (again.draws == fit.draws).all() and str(again) == str(fit)


def test_resumed(store: str) -> None:
    poise.sample(MODEL, **SETTINGS, out=store, checkpoint=True)
    longer = poise.resume(store, draws=700)
    whole = poise.sample(MODEL, **{**SETTINGS, "draws": 700})
    assert (longer.draws == whole.draws).all()
    assert (poise.load(store).draws == whole.draws).all()


def test_damage_is_named(store: str) -> None:
    poise.sample(MODEL, **SETTINGS, out=store)
    chunk = pathlib.Path(store, "posterior", "x", "c.1.0.0.0")
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-5])
    with pytest.raises(ValueError, match="draws 0 to 255 of chain 1 are damaged"):
        poise.load(store)
    chunk.unlink()
    with pytest.raises(ValueError, match="draws 0 to 255 of chain 1 are missing"):
        poise.load(store)


def test_other_folders_are_left_alone(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "mine.zarr"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="other things than a run"):
        poise.sample(MODEL, **SETTINGS, out=str(folder))
    assert os.listdir(folder) == ["thesis.tex"]
    with pytest.raises(FileNotFoundError):
        poise.load(tmp_path / "missing.zarr")
