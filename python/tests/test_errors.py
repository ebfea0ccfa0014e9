"""What is wrong is said in one sentence, by an exception of the right kind."""

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import poise
from conftest import required


def test_files_that_are_not_there(program, tmp_path):
    for call in (
        lambda: poise.read("missing.uai"),
        lambda: poise.load("missing.zarr"),
        lambda: poise.rbm("missing.npz"),
        lambda: poise.ising(graph="missing.txt"),
        lambda: poise.ising(field="missing.png"),
        lambda: poise.maxcut("missing.mc"),
        lambda: poise.model("missing.bif"),
    ):
        with pytest.raises(FileNotFoundError, match="missing"):
            call()
    net = tmp_path / "net.uai"
    net.write_text("MARKOV 1 2 1 1 0 2 1 1")
    with pytest.raises(FileNotFoundError, match="missing.evid"):
        poise.read(net, evidence="missing.evid")
    sentence = program("exact", "missing.uai", expect=2).stderr.strip()
    with pytest.raises(FileNotFoundError) as error:
        poise.read("missing.uai")
    assert str(error.value) in sentence


@pytest.mark.parametrize(
    "arguments, python",
    [
        (["sample", "ising:size=0"], lambda: poise.model("ising:size=0")),
        (["sample", "isling"], lambda: poise.model("isling")),
        (["sample", "ising", "--sampler", "lbs"], lambda: poise.sample(poise.ising(), "lbs")),
        (["sample", "ising", "--sampler", "lb:g=cube"], lambda: poise.sample(poise.ising(), "lb:g=cube")),
        (["sample", "ising", "--sampler", "rbm-gibbs"], lambda: poise.sample(poise.ising(size=3), "rbm-gibbs", draws=2)),
        (["sample", "ising", "--sampler", "rbm-gibbs"], lambda: poise.sample(poise.ising(), "rbm-gibbs")),
    ],
)
def test_the_sentences_of_the_program(arguments, python, program):
    said = program(*arguments, expect=2).stderr
    with pytest.raises(ValueError) as error:
        python()
    assert str(error.value) in said


@pytest.mark.parametrize(
    "call, kind, sentence",
    [
        (lambda: poise.sample("ising"), TypeError, "poise.model"),
        (lambda: poise.sample(3), TypeError, "expected a model"),
        (lambda: poise.sample(lambda x: x), TypeError, "poise.target"),
        (lambda: poise.sample(poise.ising(), draws=0), ValueError, "draws: found 0"),
        (lambda: poise.sample(poise.ising(), draws=1.5), TypeError, "draws: found 1.5"),
        (lambda: poise.sample(poise.ising(), chains="four"), TypeError, "chains: found 'four'"),
        (lambda: poise.sample(poise.ising(), seed=-1), ValueError, "seed: found -1"),
        (lambda: poise.sample(poise.ising(), seconds=-2), ValueError, "seconds: found -2"),
        (lambda: poise.sample(poise.ising(), keep="all"), ValueError, "keep: found 'all'"),
        (lambda: poise.sample(poise.ising(), init="ones"), ValueError, "init: found 'ones'"),
        (lambda: poise.sample(poise.ising(size=2), init=[0, 1, 1, 1]), ValueError, "expected one of -1, 1"),
        (lambda: poise.sample(poise.ising(size=2), init=[1, 1, 1]), ValueError, "has 3 values"),
        (lambda: poise.ising(size=(2,) * 9), ValueError, "rows, columns"),
        (lambda: poise.ising(coupling="strong"), TypeError, "coupling: found 'strong'"),
        (lambda: poise.ising(coupling=float("nan")), ValueError, "coupling: found nan"),
        (lambda: poise.ising(field=np.zeros(3)), ValueError, "an array of 1 dimensions"),
        (lambda: poise.ising(field=[[1.0, np.inf]]), ValueError, "not finite"),
        (lambda: poise.ising(size=3, field=np.zeros((2, 2))), ValueError, "expected 3 x 3"),
        (lambda: poise.ising(edges=([0], [5], [1.0]), field=[0.0, 0.0]), ValueError, "an end is not one of"),
        (lambda: poise.ising(edges=([0], [0], [1.0]), field=[0.0, 0.0]), ValueError, "with itself"),
        (lambda: poise.ising(edges=([0, 1], [1, 0], [1.0, 1.0]), field=[0.0, 0.0]), ValueError, "the same variables"),
        (lambda: poise.rbm(np.zeros((2, 3)), visible_bias=np.zeros(2)), ValueError, "expected 3"),
        (lambda: poise.rbm(np.zeros((2, 3)), shape=(2, 2)), ValueError, "expected 3 units"),
        (lambda: poise.compare(poise.ising(), "lsb"), TypeError, "a list of names"),
        (lambda: poise.compare(poise.ising(), ["lsb", "lbs"]), ValueError, "unknown sampler 'lbs'"),
        (lambda: poise.ising().marginals("magic"), ValueError, "method: found 'magic'"),
        (lambda: poise.ising().marginals(speed=3), TypeError, "no option 'speed'"),
        (lambda: poise.rbm(np.zeros((2, 3))).marginals(), ValueError, "only networks"),
        (lambda: poise.target(lambda x: x), TypeError, "either variables"),
        (lambda: poise.target(5, variables=2), TypeError, "expected a function"),
        (lambda: poise.target(lambda x: x, variables=2, levels=500), ValueError, "levels: found 500"),
        (lambda: poise.target(lambda x: x, variables=2, labels=(1, 1)), ValueError, "different numbers"),
        (lambda: poise.target(lambda x: x, variables=2, framework="tinygrad"), ValueError, "framework"),
        (lambda: poise.target(lambda x: x, variables=2, dtype="float8"), ValueError, "dtype"),
        (lambda: poise.Stepper(poise.ising(), chains=0), ValueError, "chains: found 0"),
        (lambda: poise.sample(poise.ising(size=4), init=np.ones((16, 4))), ValueError, "in the shape (16, 4)"),
        (lambda: poise.sample(poise.ising(), threads=2**40), ValueError, "threads: found"),
        (lambda: poise.target(abs, variables=4, labels=(-1, 1), dtype="uint8"), ValueError, "dtype uint8"),
        (lambda: poise.target(abs, variables=4, shape=(3, 2)), ValueError, "expected 6"),
        (lambda: poise.target(abs, variables=4, labels=3), TypeError, "labels: found 3"),
        (lambda: poise.ising(edges=([0], [1], [1.0]), field=[0.0, 0.0], case=4), ValueError, "case: does not go"),
        (lambda: poise.ising(field=0.1), ValueError, "an array of 0 dimensions"),
        (lambda: poise.compare(poise.ising(), []), ValueError, "an empty list"),
        (lambda: poise.read("ising:size=4"), ValueError, "ends in .uai"),
    ],
)
def test_bad_arguments(call, kind, sentence):
    with pytest.raises(kind, match=re.escape(sentence)):
        call()


def run(log_prob, sampler="gibbs", **more):
    poise.sample(poise.target(log_prob, variables=8, **more), sampler, draws=10, warmup=5, progress=False)


def test_checks_of_user_code():
    random = np.random.default_rng(0)
    field = np.arange(8.0)

    def changes_its_input(x):
        x += 1
        return x.sum(1)

    def normalises_the_batch(x):
        return (x - x.mean(0)).sum(1) * 3.0

    cases = [
        (lambda x: x @ np.ones((8, 1)), ValueError, r"shape \(4, 1\), expected \(4,\)"),
        (lambda x: 1.0, ValueError, r"shape \(\), expected \(4,\)"),
        (lambda x: np.array(["a"] * len(x)), TypeError, "expected an array of float32 or float64"),
        (lambda x: x.sum(1) * np.nan, ValueError, "gave nan"),
        (lambda x: x.sum(1) * np.inf, ValueError, "gave (inf|nan)"),
        (lambda x: random.normal(size=len(x)), ValueError, "different numbers for the same states"),
        (normalises_the_batch, ValueError, "rows of the batch see each other"),
        (changes_its_input, ValueError, "changed the states"),
    ]
    for log_prob, kind, sentence in cases:
        with pytest.raises(kind, match=sentence):
            run(log_prob)
    for gradient, sentence in [
        (lambda x: np.ones(8), "gradient gave shape"),
        (lambda x: np.full(x.shape, np.nan), "not finite"),
        (lambda x: -np.broadcast_to(field, x.shape), "points the wrong way"),
        (lambda x: 2 * np.broadcast_to(field, x.shape), "not the derivative"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            run(lambda x: x @ field, "gwg", gradient=gradient)
    with pytest.raises(ValueError, match="log_ratios gave"):
        run(lambda x: x @ field, "lb:g=sqrt", log_ratios=lambda x: np.ones(x.shape))
    with pytest.raises(ValueError, match="log_ratios gave shape"):
        run(lambda x: x @ field, "lb:g=sqrt", log_ratios=lambda x: np.ones(3))
    with pytest.raises(ValueError, match="needs the gradient of log p, and this target has none"):
        run(lambda x: x @ field, "gwg")


def test_training_mode_is_noticed():
    torch = required("torch")
    for layer in (torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(8)):
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), layer, torch.nn.Linear(8, 1), torch.nn.Flatten(0))
        with pytest.raises(ValueError) as error:
            poise.sample(poise.target(net, variables=8), "gwg", draws=5, progress=False)
        assert "eval mode" in " ".join([str(error.value), *getattr(error.value, "__notes__", [])])
        poise.sample(poise.target(net.eval(), variables=8), "gwg", draws=5, warmup=5, progress=False)


def test_user_code_that_is_legal_passes():
    """A table that is looked up has no derivative at states, and its gradient is a guess."""
    table = np.random.default_rng(0).normal(size=256)
    place = 2 ** np.arange(8)
    looked_up = {tuple(map(float, np.unpackbits(np.uint8(k)))): v for k, v in enumerate(table)}
    guess = np.linspace(-1, 1, 8)
    for log_prob in (lambda x: table[(x.astype(int) * place).sum(1)], lambda x: np.array([looked_up[tuple(r)] for r in x])):
        run(log_prob, "gwg", gradient=lambda x: np.broadcast_to(guess, x.shape))
    run(lambda x: x.sum(1).astype(np.float16))
    run(lambda x: x.sum(1).astype(">f8"))
    run(lambda x: np.repeat(x.sum(1), 2)[::2])


def test_states_without_probability_at_the_start():
    def log_prob(x):
        return np.where(x[:, 0] > 0, x.sum(1), -np.inf)

    target = poise.target(log_prob, variables=8)
    for sampler in ("lsb", "lb:g=sqrt", "gibbs", "hb"):
        with pytest.raises(ValueError, match="the initial state has probability zero.*init"):
            poise.sample(target, sampler, init="zeros", draws=5, progress=False)
        with pytest.raises(ValueError, match="the initial state has probability zero"):
            poise.Stepper(target, 2, sampler, init="zeros")
        poise.sample(target, sampler, init=np.ones(8), draws=5, warmup=5, progress=False)


def test_a_stepper_recovers_from_a_failure():
    bad = False
    rows = []

    def log_prob(x):
        rows.append(len(x))
        return x.sum(1) * (np.nan if bad else 1.0)

    stepper = poise.Stepper(poise.target(log_prob, variables=6), 4, "gibbs")
    for _ in range(5):
        bad = True
        with pytest.raises(ValueError, match="gave nan"):
            stepper.step(3)
        bad = False
    stepper.states = np.zeros((4, 6))
    rows.clear()
    stepper.step(3)
    assert max(rows) <= 8
    assert stepper.acceptance_rate <= 1


def test_a_stepper_is_not_entered_twice():
    box = []

    def log_prob(x):
        if box:
            box.pop().step(1)
        return x.sum(1) * 0.1

    stepper = poise.Stepper(poise.target(log_prob, variables=4), 4, "gibbs")
    box.append(stepper)
    with pytest.raises(RuntimeError, match="making steps already"):
        stepper.step(5)
    stepper.step(5)


def test_interrupted_at_the_first_evaluation():
    calls = 0

    def log_prob(x):
        nonlocal calls
        calls += 1
        if calls == stop:
            raise KeyboardInterrupt
        return x.sum(1)

    for stop in range(1, 14):
        calls = 0
        with pytest.raises(KeyboardInterrupt):
            run(log_prob)
        calls = 0
        with pytest.raises(KeyboardInterrupt):
            poise.Stepper(poise.target(log_prob, variables=4), 4, "gibbs").step(50)


def test_cycles_are_collected():
    import gc
    import weakref

    class Owner:
        variables = 4

        def log_prob(self, x):
            return x.sum(1)

    owner = Owner()
    owner.stepper = poise.Stepper(owner, 4, "gibbs")
    owner.stepper.step(3)
    seen = weakref.ref(owner)
    del owner
    gc.collect()
    assert seen() is None


def test_paths_may_hold_anything(tmp_path):
    folder = tmp_path / "a, b=c"
    folder.mkdir()
    weights = folder / "w.npz"
    np.savez(weights, weights=np.zeros((2, 3), np.float32), visible_bias=np.zeros(3, np.float32),
             hidden_bias=np.zeros(2, np.float32))
    assert poise.rbm(weights).variables == 3
    (folder / "g.mc").write_text("3 2\n1 2 1\n2 3 1\n")
    assert poise.maxcut(folder / "g.mc").variables == 3
    assert poise.read(folder / "g.mc").variables == 3
    assert poise.ising(graph=folder / "g.mc").variables == 3
    fit = poise.sample(poise.ising(size=3), draws=5, warmup=5, out=folder / "run.zarr", progress=False)
    with pytest.raises(FileNotFoundError):
        fit.save(tmp_path / "missing" / "run.zarr")
    with pytest.raises(FileNotFoundError):
        poise.sample(poise.ising(size=3), draws=5, out=tmp_path / "missing" / "run.zarr", progress=False)
    with pytest.raises(IsADirectoryError):
        fit.save(folder)


def test_damaged_stores_leave_the_interpreter_alive(tmp_path):
    whole = tmp_path / "run.zarr"
    poise.sample(poise.ising(size=3), draws=20, warmup=5, out=whole, progress=False)
    files = [file for file in sorted(whole.rglob("*")) if file.is_file() and file.stat().st_size > 0]
    random = np.random.default_rng(1)
    refused = 0
    for _ in range(100):
        file = files[random.integers(len(files))]
        content = file.read_bytes()
        changed = bytearray(content)
        for at in random.integers(0, len(content), 3):
            changed[at] = random.integers(256)
        file.write_bytes(changed)
        try:
            poise.load(whole)
        except ValueError as error:
            assert str(whole) in str(error)
            refused += 1
        file.write_bytes(content)
    assert refused > 10
    assert poise.load(whole).draws.shape[1] == 20


def test_a_fit_can_be_pickled():
    import pickle

    fit = poise.sample(poise.ising(size=3), draws=20, warmup=5, progress=False)
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.draws, fit.draws)
    assert again.report["monitors"] == fit.report["monitors"]


def test_nan_on_the_way_is_an_error():
    calls = 0

    def log_prob(x):
        nonlocal calls
        calls += 1
        return x.sum(1) * (np.nan if calls > 50 else 1.0)

    with pytest.raises(ValueError, match="gave nan for a state that the chains looked at"):
        run(log_prob)


class Mine(Exception):
    pass


def test_the_users_exception_comes_out_with_its_traceback():
    calls = 0

    def deep_inside(x):
        raise Mine("forty-two")

    def log_prob(x):
        nonlocal calls
        calls += 1
        return x.sum(1) if calls < 25 else deep_inside(x)

    for sampler in ("gibbs", "lsb", "hb:block=3,radius=1"):
        calls = 0
        with pytest.raises(Mine, match="forty-two") as error:
            run(log_prob, sampler)
        names = [entry.name for entry in error.traceback]
        assert "deep_inside" in names and "log_prob" in names
    calls = 0
    run(lambda x: x.sum(1))  # nothing is left hanging


def test_an_exception_of_the_progress_bar_comes_out(monkeypatch):
    def fail(self, now):
        raise Mine("bar")

    monkeypatch.setattr("poise._progress.ProgressBars.update", fail)
    with pytest.raises(Mine, match="bar"):
        poise.sample(poise.ising(size=64), progress=True, seconds=5)
    with pytest.raises(Mine, match="bar"):
        poise.sample(poise.target(lambda x: x.sum(1), variables=8), progress=True, seconds=5)


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import poise

def log_prob(x):
    return x.sum(1) * 0.1

model = {model}
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    {call}
except poise.Interrupted as stop:
    assert time.monotonic() - started < 5
    print("interrupted", stop.fit is not None and stop.fit.num_draws > 0)
except KeyboardInterrupt:
    print("keyboard")
"""


@pytest.mark.parametrize(
    "model, call, said",
    [
        ("poise.ising(size=32, coupling=0.3)", "poise.sample(model, 'lb:g=sqrt', warmup=5, seconds=30, keep='monitors', progress=False)", "interrupted True"),
        ("poise.ising(size=200, coupling=0.3)", "poise.sample(model, 'lsb', warmup=10**6, progress=False)", "interrupted False"),
        ("poise.target(log_prob, variables=50)", "poise.sample(model, 'gibbs', warmup=1, draws=10**6, progress=False)", "interrupted True"),
        ("poise.target(log_prob, variables=50)", "poise.Stepper(model, sampler='gibbs').step(10**9)", "keyboard"),
        ("poise.ising(size=64)", "poise.Stepper(model, sampler='gibbs').step(10**12)", "keyboard"),
        ("poise.ising(size=64)", "poise.compare(model, ['gibbs', 'lsb'], seconds=30, progress=False)", "interrupted True"),
    ],
)
def test_ctrl_c(model, call, said):
    code = textwrap.dedent(INTERRUPTED).format(model=model, call=call)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60,
                          env=os.environ)
    assert done.stdout.strip() == said, done.stderr
    assert done.returncode == 0
