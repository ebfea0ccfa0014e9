"""An installed package in use: it samples, and what the program has stored is opened by xarray and ArviZ: first_run.py RUN."""

import sys

import arviz
import numpy as np
import xarray

import poise


def main(path: str) -> None:
    tree = xarray.open_datatree(path, engine="zarr")
    states = tree["posterior"]["x"]
    stored = poise.load(path)
    assert np.array_equal(states.values.reshape(stored.draws.shape), stored.draws)
    fit = poise.sample(poise.ising(size=32, coupling=0.4), draws=stored.draws.shape[1], seed=1, progress=False)
    assert np.array_equal(fit.draws, stored.draws)
    if hasattr(arviz, "InferenceData"):
        tree = arviz.InferenceData.from_datatree(tree)
    assert arviz.ess(tree, var_names=["magnetization"]) is not None
    print(f"poise {poise.__version__}, xarray {xarray.__version__}, ArviZ {arviz.__version__}: {dict(states.sizes)}")


main(*sys.argv[1:])
