"""Scripts that mpirun has started several times: every rank has the fit of one process."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

import poise

LIBRARY = pathlib.Path(poise.__file__).parent / "libpoise_mpi.so"
pytestmark = pytest.mark.skipif(
    shutil.which("mpirun") is None or not LIBRARY.exists(), reason="there is no mpirun, or no MPI in this build"
)

TARGET = """
import hashlib, json, os, pathlib, sys
import numpy as np
import poise

seen = [0]

def log_p(x):
    seen[0] += len(x)
    return 0.3 * x.sum(axis=1) + 0.2 * (x[:, 1:] == x[:, :-1]).sum(axis=1)

def report(fit):
    draws = hashlib.sha256(np.ascontiguousarray(fit.draws)).hexdigest()
    monitors = hashlib.sha256(np.ascontiguousarray(fit.monitors["log_prob"])).hexdigest()
    return [draws, monitors, fit.report["acceptance_rate"]]
"""


def on_ranks(ranks, script, folder, check=True):
    """What the script left in rank-N.json, and how it ended."""
    file = folder / "script.py"
    file.write_text(TARGET + textwrap.dedent(script))
    for old in folder.glob("rank-*.json"):
        old.unlink()
    command = [sys.executable, str(file)]
    if ranks > 1:
        command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *command]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    if check:
        assert ended.returncode == 0, ended.stderr
    return [json.loads(one.read_text()) for one in sorted(folder.glob("rank-*.json"))], ended


RUNS = """
    out = {"seen": []}
    ising = poise.ising(size=8, coupling=0.3)
    for model, sampler in [(ising, "lsb"), (poise.target(log_p, variables=6), "gibbs")]:
        seen[0] = 0
        fit = poise.sample(model, sampler, draws=100, warmup=50, chains=5, seed=3, progress=False)
        out["seen"].append(seen[0])
        longer = fit.extend(30, progress=False)
        out[sampler] = [report(fit), report(longer)]
    file = poise.sample(ising, "temper", draws=60, chains=4, out="run.zarr", checkpoint=True, progress=False)
    out["resumed"] = report(poise.resume("run.zarr", ising, draws=90, progress=False))
    out["ranks"] = poise.num_ranks()
    pathlib.Path(f"rank-{poise.rank()}.json").write_text(json.dumps(out))
"""


def test_every_rank_has_the_fit_of_one_process(tmp_path):
    (alone,), _ = on_ranks(1, RUNS, tmp_path)
    for ranks in (2, 3):
        shutil.rmtree(tmp_path / "run.zarr")
        all_ranks, _ = on_ranks(ranks, RUNS, tmp_path)
        assert len(all_ranks) == ranks
        # The target was asked for the chains of each rank, and tried out by each with a few rows.
        asked = [one["seen"][1] for one in all_ranks]
        assert alone["seen"][1] <= sum(asked) <= alone["seen"][1] + 32 * ranks
        assert max(asked) < 0.7 * alone["seen"][1]
        for one in all_ranks:
            assert one["ranks"] == ranks
            for key in ("lsb", "gibbs", "resumed"):
                assert one[key] == alone[key]


def test_a_run_of_the_ranks_goes_on_alone(tmp_path):
    begin = """
        poise.sample(poise.ising(size=8, coupling=0.3), "lsb", draws=60, out="run.zarr", checkpoint=True, progress=False)
    """
    on_ranks(3, begin, tmp_path)
    model = poise.ising(size=8, coupling=0.3)
    longer = poise.resume(tmp_path / "run.zarr", model, draws=100, progress=False)
    whole = poise.sample(model, "lsb", draws=100, progress=False)
    assert (longer.draws == whole.draws).all()


def test_ranks_divide_a_scan(tmp_path):
    script = """
        out = {}
        for exchange in (True, False):
            for turn in ("first", "continued"):
                found = poise.scan("ising:size=6", {"T": [2.0, 2.5, 3.0]}, "gibbs", draws=60, chains=3, warmup=20,
                                   exchange=exchange, out=f"scan-{exchange}.json", progress=False)
                out[f"{turn} {exchange}"] = {name: found[name].values.tolist() for name in ("energy", "energy_error")}
        pathlib.Path(f"rank-{poise.rank()}.json").write_text(json.dumps(out))
    """
    (alone,), _ = on_ranks(1, script, tmp_path)
    for file in tmp_path.glob("scan-*.json"):
        file.unlink()
    for one in on_ranks(2, script, tmp_path)[0]:
        assert one == alone
    assert len(json.loads((tmp_path / "scan-False.json").read_text())["points"]) == 3


def test_an_exception_on_one_rank_is_one_on_all(tmp_path):
    script = """
        def bad(x):
            if poise.rank() == 1 and seen[0] > 200:
                raise KeyError("the coin is lost")
            return log_p(x)

        try:
            poise.sample(poise.target(bad, variables=6), "gibbs", chains=4, draws=500, progress=False)
            found = "nothing"
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        pathlib.Path(f"rank-{poise.rank()}.json").write_text(json.dumps(found))
        # And all may go on together.
        poise.sample(poise.ising(size=4), "gibbs", draws=10, progress=False)
    """
    found, _ = on_ranks(3, script, tmp_path)
    assert len(found) == 3
    assert found[1] == "KeyError: 'the coin is lost'"
    for other in (found[0], found[2]):
        assert other.startswith("RuntimeError: ") and "the coin is lost" in other


def test_a_rank_that_ends_early_keeps_nobody_waiting(tmp_path):
    script = """
        if poise.rank() == 1:
            raise SystemExit("this rank has had enough")
        poise.sample(poise.ising(size=8), "lsb", draws=1000, progress=False)
    """
    _, ended = on_ranks(3, script, tmp_path, check=False)
    assert ended.returncode != 0
    assert "this rank has had enough" in ended.stderr
