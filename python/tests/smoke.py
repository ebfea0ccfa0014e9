"""A first look at an installed package: every door opens, ArviZ of whatever version takes the result."""

import pathlib
import subprocess
import sys
import tempfile

import arviz
import numpy as np

import poise


def main() -> None:
    assert "site-packages" in str(poise.__file__), poise.__file__
    assert (pathlib.Path(poise.__file__).parent / "py.typed").exists()
    assert (pathlib.Path(poise.__file__).parent / "_core.pyi").exists()
    fit = poise.sample(poise.ising(size=6, coupling=0.2), draws=500, seed=1, progress=False)
    tree = fit.to_datatree()
    ess = arviz.ess(tree, var_names=["magnetization"])
    ess = getattr(ess, "posterior", ess)
    assert abs(float(ess["magnetization"]) / fit.summary()["ess"][1] - 1) < 1e-8
    arviz.summary(tree, var_names=["magnetization"])
    with tempfile.TemporaryDirectory() as folder:
        fit.save(folder + "/run.zarr")
        assert (poise.load(folder + "/run.zarr").draws == fit.draws).all()
        net = pathlib.Path(folder) / "net.uai"
        net.write_text("MARKOV 2  2 2  1  2 0 1  4  1 2 3 4")
        assert np.allclose(poise.read(net).marginals()[0], [0.3, 0.7])
    field = np.array([1.0, -1.0, 0.5])
    mine = poise.target(lambda x: x @ field, variables=3, gradient=lambda x: np.broadcast_to(field, x.shape))
    means = poise.sample(mine, "gwg", draws=2000, seed=1, progress=False).draws.mean((0, 1))
    assert np.abs(means - 1 / (1 + np.exp(-field))).max() < 0.05
    program = pathlib.Path(sys.executable).parent / "poise"
    command = [str(program), "sample", "ising:size=6,coupling=0.2", "--draws", "500", "--seed", "1", "--quiet"]
    assert "log_prob" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(f"poise {poise.__version__}, Python {sys.version.split()[0]}, NumPy {np.__version__}, ArviZ {arviz.__version__}")


main()
