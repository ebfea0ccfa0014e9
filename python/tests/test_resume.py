"""Runs that are resumed: after a kill, to be longer, and by the program where Python began them or the other way."""

import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import poise

# Run as a program, it is killed in a call of log p, once three checkpoints have been written. Until then calls are slow, so
# no machine is too fast.
SCRIPT = """
import os
import shutil
import signal
import sys
import time
import numpy as np
import poise

weights = np.random.default_rng(0).normal(size=(12, 12)) / 4
weights = weights + weights.T

checkpoint = None
seen = set()

def log_prob(x):
    if checkpoint is not None:
        if os.path.isdir(checkpoint):
            seen.update(name for name in os.listdir(checkpoint) if name.startswith("state.") and name[6:].isdigit())
        if len(seen) >= 3:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.001)
    return 0.5 * np.einsum("ci,ij,cj->c", x, weights, x)

def gradient(x):
    return x @ weights

model = poise.target(log_prob, variables=12, gradient=gradient, name="quadratic")
if __name__ == "__main__":
    checkpoint = sys.argv[1] + "/.poise"
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
    fit.save(tmp_path / "run.zarr")
    with pytest.raises(ValueError, match="cannot be made longer"):
        poise.load(tmp_path / "run.zarr").extend(10)
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
    file = tmp_path / "run.zarr"
    killed = subprocess.run([sys.executable, str(tmp_path / "script.py"), str(file)], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL
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
        poise.resume(tmp_path / "none.zarr", model)
    poise.sample(model, draws=10, out=tmp_path / "run.zarr", progress=False)
    with pytest.raises((ValueError, FileNotFoundError), match="checkpoint"):
        poise.resume(tmp_path / "run.zarr", model)


SPEC = "ising:size=6,lambda=0.3"


def settings_of(fit):
    return json.loads(fit._core.settings)


@pytest.mark.parametrize("sampler", ["gibbs", "lsb", "temper"])
def test_the_program_resumes_runs_of_python(sampler, program, tmp_path):
    file = tmp_path / "run.zarr"
    poise.sample(poise.ising(size=6, coupling=0.3), sampler, draws=40, chains=3, seed=5, out=file, checkpoint=True,
                 progress=False)  # fmt: skip
    assert "is finished: it has 40 draws" in program("resume", str(file), expect=2).stderr
    program("resume", str(file), "--draws", "100", "--quiet")
    whole = poise.sample(poise.model(SPEC), sampler, draws=100, chains=3, seed=5, progress=False)
    resumed = poise.load(file)
    np.testing.assert_array_equal(resumed.draws, whole.draws)
    np.testing.assert_array_equal(resumed.log_prob, whole.log_prob)


@pytest.mark.parametrize("sampler", ["gibbs", "lsb", "temper"])
def test_python_resumes_runs_of_the_program(sampler, program, tmp_path):
    file, whole = tmp_path / "run.zarr", tmp_path / "whole.zarr"
    words = ["sample", SPEC, "--sampler", sampler, "--chains", "3", "--seed", "5", "--quiet"]
    program(*words, "--draws", "40", "--out", str(file), "--checkpoint")
    program(*words, "--draws", "130", "--out", str(whole))
    with pytest.raises(ValueError, match="is finished: it has 40 draws"):
        poise.resume(file, progress=False)
    with pytest.raises(ValueError, match="has 40 draws of each chain already"):
        poise.resume(file, draws=30, progress=False)
    fit = poise.resume(file, draws=100, progress=False)
    longer = fit.extend(30, progress=False)
    np.testing.assert_array_equal(longer.draws, poise.load(whole).draws)
    np.testing.assert_array_equal(poise.load(file).draws, poise.load(whole).draws[:, :100])
    # And the program may continue what Python has continued.
    program("resume", str(file), "--draws", "130", "--quiet")
    np.testing.assert_array_equal(poise.load(file).draws, poise.load(whole).draws)


def test_killed_runs_of_the_program_are_resumed_by_python(tmp_path):
    file = tmp_path / "run.zarr"
    words = ["sample", SPEC, "--sampler", "lsb", "--chains", "3", "--out", str(file), "--quiet", "--checkpoint-every", "0.02"]
    draws = 50_000
    while True:  # longer runs until one is killed before it ends
        child = subprocess.Popen([os.environ["POISE_PROGRAM"], *words, "--draws", str(draws)])
        while not (file / "zarr.json").exists() and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        if child.wait() == -signal.SIGKILL:
            break
        draws *= 2
        shutil.rmtree(file)
    fit = poise.resume(file, progress=False)
    whole = poise.sample(poise.model(SPEC), "lsb", draws=draws, chains=3, progress=False)
    np.testing.assert_array_equal(fit.draws, whole.draws)


def test_models_of_files_and_given_states_are_found_again(program, tmp_path, monkeypatch):
    (tmp_path / "a,b").mkdir()
    (tmp_path / "a,b" / "net.uai").write_text("MARKOV 3  2 2 2  2  2 0 1  2 1 2  4  1 2 3 4  4  4 3 2 1")
    (tmp_path / "a,b" / "seen.txt").write_text("1 0 1")
    (tmp_path / "a,b" / "cut.mc").write_text("3 2\n1 2 1\n2 3 1\n")
    monkeypatch.chdir(tmp_path / "a,b")
    makers = {
        "net": lambda: poise.read("net.uai", evidence="seen.txt"),
        "cut": lambda: poise.maxcut("cut.mc"),
    }
    for name, make in makers.items():
        monkeypatch.chdir(tmp_path / "a,b")
        init = np.array([1, 0, 1]) if name == "net" else np.array([1, -1, 1])
        for draws, out in [(20, f"{name}.zarr"), (50, f"{name}-whole.zarr")]:
            poise.sample(make(), "gibbs", draws=draws, warmup=0, init=init, out=out, checkpoint=True, progress=False)
        monkeypatch.chdir(tmp_path)
        program("resume", f"a,b/{name}.zarr", "--draws", "30", "--quiet")
        fit = poise.resume(f"a,b/{name}.zarr", draws=50, progress=False)
        np.testing.assert_array_equal(fit.draws, poise.load(f"a,b/{name}-whole.zarr").draws)
        assert settings_of(fit)["init"] == "given"
        assert settings_of(fit)["model"] == settings_of(poise.load(f"a,b/{name}-whole.zarr"))["model"]
    (tmp_path / "a,b" / "cut.mc").write_text("3 2\n1 2 1\n2 3 2\n")
    with pytest.raises(ValueError, match="has changed since the run began"):
        poise.resume("a,b/cut.zarr", draws=60, progress=False)


def test_a_target_of_python_is_resumed_in_python_only(program, tmp_path):
    model = poise.target(lambda x: x.sum(1), variables=4, name="coins")
    file = tmp_path / "run.zarr"
    poise.sample(model, "gibbs", draws=20, out=file, checkpoint=True, progress=False)
    said = program("resume", str(file), "--draws", "40", expect=2).stderr
    assert "exists only in the Python script that began it" in said and "poise.resume(file, model)" in said
    with pytest.raises(ValueError, match="exists only in the Python script"):
        poise.resume(file, draws=40, progress=False)
    assert poise.resume(file, model, draws=40, progress=False).num_draws == 40


def test_trainings_are_not_for_python(program, tmp_path):
    weights = tmp_path / "rbm.npz"
    child = subprocess.Popen([os.environ["POISE_PROGRAM"], "train", "rbm", "--data", "digits", "--images", "300",
                              "--epochs", "100000", "--out", str(weights), "--checkpoint-every", "0.02", "--quiet"])  # fmt: skip
    deadline = time.monotonic() + 60
    while not (tmp_path / "rbm.npz.checkpoint").exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    with pytest.raises((ValueError, FileNotFoundError), match="was begun by 'poise train'"):
        poise.resume(weights, progress=False)


@pytest.mark.parametrize("function", [poise.sample, poise.compare, poise.Stepper])
def test_keywords_follow_from_the_described_options(function):
    keywords = inspect.signature(function).parameters
    for row in poise._core.run_options():
        if row["name"] not in keywords:
            assert function is not poise.sample, row["name"]
            continue
        unset = None if row["optional"] else row["default"]
        if function is not poise.Stepper:
            assert keywords[row["name"]].default == unset, row["name"]
            assert f"- ``{row['name']}``: {row['help']}" in function.__doc__


def test_a_finished_run_says_where_and_how_it_was_made(program, tmp_path):
    fit = poise.sample(poise.model(SPEC), "lb", draws=10, init="zeros", keep="monitors", progress=False)
    out = tmp_path / "run.zarr"
    program("sample", SPEC, "--sampler", "lb", "--draws", "10", "--init", "zeros", "--keep", "monitors", "--out", str(out))
    for settings in map(settings_of, (fit, poise.load(out))):
        assert (settings["device"], settings["init"], settings["keep"]) == ("cpu", "zeros", "monitors")
