"""Python and the program give the same draws and the same numbers, bit by bit."""

import json

import numpy as np
import pytest

import poise

CASES = [
    ("ising:size=12,lambda=0.4", lambda: poise.ising(size=12, coupling=0.4), "lsb"),
    ("ising:case=4,size=10", lambda: poise.ising(size=10, case=4), "lb:g=barker"),
    ("ising:size=8,lambda=0.3", lambda: poise.ising(size=8, coupling=0.3), "gibbs"),
    ("ising:size=8x6,lambda=0.3,boundary=open", lambda: poise.ising((8, 6), 0.3, boundary="open"), "hb:block=4,radius=1"),
    ("potts:size=5,levels=3,coupling=0.7", lambda: poise.potts(size=5, levels=3, coupling=0.7), "lsb2"),
]


@pytest.mark.parametrize("spec, model, sampler", CASES)
def test_draws_are_those_of_the_program(spec, model, sampler, program, tmp_path):
    out = str(tmp_path / "run.zarr")
    program("sample", spec, "--sampler", sampler, "--draws", "60", "--warmup", "40", "--chains", "3", "--seed", "5",
            "--out", out, "--quiet")
    theirs = poise.load(out)
    ours = poise.sample(model(), sampler, draws=60, warmup=40, chains=3, seed=5, progress=False)
    assert ours.draws.dtype == np.int8
    np.testing.assert_array_equal(ours.draws, theirs.draws)
    for name, values in theirs.monitors.items():
        np.testing.assert_array_equal(ours[name], values)
    same = ours.report
    for key in ("steps", "evals", "acceptance_rate", "thin", "warnings", "balance", "objective"):
        assert same.get(key) == theirs.report.get(key), key
    for name, row in theirs.report["monitors"].items():
        for key in ("mean", "sd", "mcse", "ess", "ess_tail", "r_hat", "status"):
            assert same["monitors"][name][key] == row[key]


def test_threads_do_not_matter():
    model = poise.ising(size=8, coupling=0.3)
    first = poise.sample(model, draws=20, warmup=20, threads=1, progress=False)
    second = poise.sample(model, draws=20, warmup=20, threads=2, progress=False)
    np.testing.assert_array_equal(first.draws, second.draws)


def test_stepper_makes_the_steps_of_a_run():
    model = poise.ising(size=6, coupling=0.3)
    fit = poise.sample(model, "lb:g=sqrt", warmup=0, draws=4, thin=9, chains=3, seed=2, progress=False)
    stepper = poise.Stepper(model, chains=3, sampler="lb:g=sqrt", seed=2)
    for draw in range(4):
        np.testing.assert_array_equal(stepper.step(9), fit.draws[:, draw])
    np.testing.assert_array_equal(stepper.log_prob, fit.log_prob[:, -1])


def test_marginals_are_those_of_the_program(program, tmp_path):
    net = str(tmp_path / "net.uai")
    with open(net, "w") as out:
        out.write("MARKOV\n3\n2 3 2\n2\n2 0 1\n2 1 2\n6\n1 2 3 4 5 6\n6\n2 1 1 3 1 1\n")
    out = tmp_path / "marginals.json"
    program("marginals", net, "--json", str(out), "--quiet")
    theirs = json.loads(out.read_text())
    ours = poise.read(net).marginals()
    assert ours.method == theirs["method"] == "exact"
    assert ours.log10_partition == theirs["log10_partition"]
    for i, variable in enumerate(theirs["variables"]):
        assert list(ours[i]) == variable["probabilities"]


def test_files_have_the_layout_of_the_program(program, tmp_path):
    import xarray

    theirs, ours = str(tmp_path / "theirs.zarr"), str(tmp_path / "ours.zarr")
    program("sample", "ising:size=5,lambda=0.3", "--draws", "30", "--warmup", "10", "--out", theirs, "--quiet")
    fit = poise.sample(poise.model("ising:size=5,lambda=0.3"), draws=30, warmup=10, progress=False)
    fit.save(ours)
    with xarray.open_datatree(theirs, engine="zarr") as a, xarray.open_datatree(ours, engine="zarr") as b:
        assert set(a.groups) == set(b.groups)
        for group in ("posterior", "sample_stats"):
            xarray.testing.assert_identical(a[group].to_dataset(), b[group].to_dataset())
        assert set(a.attrs) == set(b.attrs)
    # The program reads what Python wrote.
    assert "ising:size=5" in program("summary", ours).stdout


def test_written_while_sampling(tmp_path):
    out = tmp_path / "run.zarr"
    fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=30, warmup=10, out=out, progress=False)
    again = poise.load(out)
    np.testing.assert_array_equal(fit.draws, again.draws)
    assert str(again).splitlines()[0] == str(fit).splitlines()[0]


def test_a_run_without_states_is_saved_and_loaded(tmp_path):
    fit = poise.sample(poise.ising(size=4, coupling=0.2), draws=30, warmup=10, keep="monitors", progress=False)
    with pytest.raises(ValueError, match="were not kept"):
        _ = fit.draws
    fit.save(tmp_path / "run.zarr")
    again = poise.load(tmp_path / "run.zarr")
    np.testing.assert_array_equal(fit.log_prob, again.log_prob)
    with pytest.raises(ValueError, match="were not kept"):
        _ = again.draws
