"""Targets of the user's own: right, checked, called once a step, in NumPy, PyTorch and JAX."""

import itertools
import threading
import time

import numpy as np
import pytest

import poise
from conftest import Quadratic, required

SAMPLERS = ["lb:g=sqrt", "lsb", "lsb1", "gwg", "flsb", "flsb1", "gibbs", "gibbs:block=2", "hb:block=3,radius=1"]
SAMPLERS += ["dlmc", "dlmc:g=min,tau=0.5", "dlsb", "dmala", "pas", "temper:of=dlmc"]


def close_to_exact(fit, expected):
    """Means within six standard errors of the truth."""
    table = fit.variables()
    error = np.maximum(np.asarray(table["mcse"]), 1e-3)
    return np.max(np.abs(np.asarray(table["mean"]) - expected) / error) < 6


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_numpy_means(sampler, quadratic):
    fit = poise.sample(quadratic, sampler, draws=1500, warmup=200, chains=16, seed=1, progress=False)
    assert fit.draws.shape == (16, 1500, 6)
    np.testing.assert_allclose(fit.log_prob, quadratic.log_prob(fit.draws.reshape(-1, 6)).reshape(16, 1500), atol=1e-9)
    assert close_to_exact(fit, quadratic.means())


@pytest.mark.parametrize("sampler", ["gwg", "lb:g=barker", "gibbs"])
def test_numpy_target_equals_the_built_in_model(sampler):
    """The same spins, once as a model of Poise and once as user code: the means agree with enumeration for both."""
    n, coupling = 6, 0.5
    ring = np.arange(n)

    def log_prob(x):
        return coupling * (x * np.roll(x, 1, axis=1)).sum(1) + 0.3 * x.sum(1)

    states = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    weights = np.exp(log_prob(states))
    expected = weights @ states / weights.sum()
    mine = poise.target(
        log_prob, variables=n, labels=(-1, 1),
        gradient=lambda x: coupling * (np.roll(x, 1, 1) + np.roll(x, -1, 1)) + 0.3,
    )
    theirs = poise.ising(edges=(ring, (ring + 1) % n, np.full(n, coupling)), field=np.full(n, 0.3))
    for model in (mine, theirs):
        fit = poise.sample(model, sampler, draws=3000, warmup=200, chains=8, seed=2, progress=False)
        assert set(np.unique(fit.draws)) == {-1, 1}
        assert close_to_exact(fit, expected)


def test_categorical_one_hot_and_log_ratios():
    random = np.random.default_rng(3)
    fields, pair = random.normal(size=(3, 4)), random.normal(size=(4, 4))

    def log_prob(x):  # x is one-hot [chains, 3, 4]
        return (x * fields).sum((1, 2)) + np.einsum("ca,ab,cb->c", x[:, 0], pair, x[:, 1])

    def gradient(x):
        slope = np.broadcast_to(fields, x.shape).copy()
        slope[:, 0] += x[:, 1] @ pair.T
        slope[:, 1] += x[:, 0] @ pair
        return slope

    states = np.array(list(itertools.product(range(4), repeat=3)))
    weights = np.exp(log_prob(np.eye(4)[states]))
    expected = np.array([[weights[states[:, i] == level].sum() for level in range(4)] for i in range(3)]) / weights.sum()
    target = poise.target(log_prob, variables=3, levels=4, one_hot=True, gradient=gradient)
    for sampler in ("gwg", "gibbs", "lb:g=sqrt"):
        fit = poise.sample(target, sampler, draws=2000, warmup=100, chains=8, seed=1, progress=False)
        found = (fit.draws[..., None] == np.arange(4)).mean((0, 1))
        np.testing.assert_allclose(found, expected, atol=0.03)

    def by_level(x):  # integers [chains, 3]; log p of every level of every variable, relative to x
        one = np.eye(4)[x]
        table = gradient(one)
        return table - np.take_along_axis(table, x[:, :, None], axis=2)

    plain = poise.target(lambda x: log_prob(np.eye(4)[x]), variables=3, levels=4, dtype="int64", log_ratios=by_level)
    fit = poise.sample(plain, "lb:g=sqrt", draws=2000, warmup=100, chains=8, seed=1, progress=False)
    found = (fit.draws[..., None] == np.arange(4)).mean((0, 1))
    np.testing.assert_allclose(found, expected, atol=0.03)
    assert fit.target_account["calls"] < 2.2 * 2100 * 9


def test_zeros_of_probability(quadratic):
    """States without probability are never visited."""

    def log_prob(x):
        return np.where(x.sum(1) > 3, -np.inf, quadratic.log_prob(x))

    target = poise.target(log_prob, variables=6)
    for sampler in ("lb:g=sqrt", "gibbs", "hb:block=3,radius=2", "lsb"):
        fit = poise.sample(target, sampler, draws=200, warmup=50, init="zeros", progress=False)
        assert fit.draws.sum(2).max() <= 3


@pytest.mark.parametrize("sampler", ["gwg", "lsb", "gibbs"])
def test_torch(sampler):
    torch = required("torch")
    small = Quadratic()

    class Energy(torch.nn.Module):
        variables = 6

        def __init__(self):
            super().__init__()
            self.coupling = torch.nn.Parameter(torch.tensor(small.coupling, dtype=torch.float32))
            self.field = torch.nn.Parameter(torch.tensor(small.field, dtype=torch.float32))
            self.seen = set()

        def log_prob(self, x):
            assert isinstance(x, torch.Tensor) and x.dtype == torch.float32
            self.seen.add(x.device.type)
            return x @ self.field + 0.5 * ((x @ self.coupling) * x).sum(1)

    fit = poise.sample(Energy(), sampler, draws=1500, warmup=100, chains=8, seed=1, progress=False)
    assert close_to_exact(fit, small.means())


def test_torch_memory_is_shared():
    torch = required("torch")
    from poise._frameworks import TorchCode

    code = TorchCode(lambda x: x.sum(1), None, None)
    x = np.ones((3, 5), dtype=np.float32)
    assert code._give(x).data_ptr() == x.ctypes.data
    kept = []

    def log_prob(x):
        kept.append(x)
        return torch.zeros(len(x))

    poise.sample(poise.target(log_prob, variables=4, framework="torch"), "gibbs", draws=5, warmup=0, progress=False)
    # What user code keeps is not written over.
    assert len({int(x.data_ptr()) for x in kept if len(x) == 4}) == len([x for x in kept if len(x) == 4])


@pytest.mark.parametrize("sampler", ["gwg", "lb:g=sqrt", "gibbs"])
def test_jax(sampler):
    jax = required("jax")
    small = Quadratic()

    @jax.jit
    def log_prob(x):
        return x @ small.field.astype(np.float32) + 0.5 * ((x @ small.coupling.astype(np.float32)) * x).sum(1)

    target = poise.target(log_prob, variables=6)
    assert target.framework == "jax"
    fit = poise.sample(target, sampler, draws=1500, warmup=100, chains=8, seed=1, progress=False)
    assert close_to_exact(fit, small.means())


def test_one_call_a_step(quadratic):
    fit = poise.sample(quadratic, "gwg", draws=100, warmup=0, chains=32, progress=False)
    assert fit.target_account["calls"] <= 100 * 6 + 2 * 32 + 2
    assert fit.report["evals"]["gradient"] == 32 * 100 * 6


def test_attributes_of_an_object():
    class Mine:
        shape = (2, 2, 3)
        levels = 3
        one_hot = True
        dtype = np.float32
        names = [f"v{k}" for k in range(12)]

        def log_prob(self, x):
            assert x.shape[1:] == (2, 2, 3, 3) and x.dtype == np.float32
            return x[..., 1].sum((1, 2, 3))

    fit = poise.sample(Mine(), "gibbs", draws=20, warmup=5, progress=False)
    assert fit.draws.shape == (4, 20, 2, 2, 3)
    assert fit.variables().rows[0].startswith("v0")
    assert poise.Stepper(Mine(), 5, "gibbs").step(2).shape == (5, 2, 2, 3)


def test_torch_module_in_double():
    torch = required("torch")
    net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1), torch.nn.Flatten(0)).double()
    fit = poise.sample(poise.target(net, variables=6), draws=20, warmup=5, progress=False)
    assert fit.sampler == "exact"  # 64 states
    larger = torch.nn.Sequential(torch.nn.Linear(40, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1), torch.nn.Flatten(0)).double()
    assert poise.sample(poise.target(larger, variables=40), draws=20, progress=False).choice["sampler"] == "dlsb"


def test_shape_of_states():
    seen = set()

    def log_prob(x):
        seen.add(x.shape[1:])
        return -0.1 * (x[:, 1:] != x[:, :-1]).sum((1, 2))

    fit = poise.sample(poise.target(log_prob, shape=(3, 5)), "gibbs", draws=20, warmup=5, progress=False)
    assert seen == {(3, 5)}
    assert fit.draws.shape == (4, 20, 3, 5)


def test_chains_together_are_the_chains_alone():
    """Integers add up exactly, so nothing depends on the size of the batch."""
    field = np.array([1.0, -2.0, 0.5, 0.25, 3.0])

    def target():
        return poise.target(lambda x: x @ field, variables=5, gradient=lambda x: np.broadcast_to(field, x.shape))

    for sampler in ("gwg", "gibbs", "hb:block=2,radius=1"):
        together = poise.sample(target(), sampler, draws=30, warmup=5, chains=3, seed=4, progress=False)
        for chain in range(3):
            alone = poise.sample(
                target(), sampler, draws=30, warmup=5, chains=1, seed=4, first_chain=chain, progress=False
            )
            np.testing.assert_array_equal(alone.draws[0], together.draws[chain])


def test_stepper_follows_a_changing_target():
    class Moody:
        variables = 10
        preferred = 1

        def log_prob(self, x):
            return 20.0 * (x == self.preferred).sum(1)

    moody = Moody()
    stepper = poise.Stepper(moody, chains=5, sampler="lb:g=sqrt")
    assert stepper.step(100).all()
    moody.preferred = 0
    assert not stepper.step(100).any()
    np.testing.assert_array_equal(stepper.log_prob, np.full(5, 200.0))
    stepper.states = np.ones((5, 10))
    np.testing.assert_array_equal(stepper.log_prob, np.zeros(5))
    assert stepper.evals["ratio"] > 0 and 0 < stepper.acceptance_rate <= 1


def test_the_lock_is_free_while_the_engine_works():
    """Another Python thread goes on while a built-in model is sampled."""
    count = 0
    going = True

    def tick():
        nonlocal count
        while going:
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.perf_counter()
    poise.sample(poise.ising(size=128, coupling=0.3), "lb:g=sqrt", seconds=0.5, warmup=10, keep="monitors", progress=False)
    taken = time.perf_counter() - started
    going = False
    thread.join()
    assert count > 100 * taken


def test_two_runs_at_the_same_time(quadratic):
    """The same target in two threads: each run has its own questions."""
    results = {}

    def work(seed):
        results[seed] = poise.sample(quadratic, "gwg", draws=100, warmup=10, seed=seed, progress=False).draws

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (1, 2):
        alone = poise.sample(quadratic, "gwg", draws=100, warmup=10, seed=seed, progress=False).draws
        np.testing.assert_array_equal(results[seed], alone)


@pytest.mark.parametrize("sampler", ["gibbs", "lb", "auto", "temper"])
def test_marginals_are_those_of_enumeration(sampler):
    """Conditional probabilities come from log_ratios, or from log_prob of all neighbours where there is none."""
    random = np.random.default_rng(4)
    pair = random.normal(size=(3, 3))
    fields = random.normal(size=(4, 3))

    def log_prob(x):
        x = x.astype(int)
        return fields[np.arange(4), x].sum(1) + sum(pair[x[:, i], x[:, i + 1]] for i in range(3))

    def log_ratios(x):
        out = np.empty((len(x), 4, 3))
        for i, level in itertools.product(range(4), range(3)):
            changed = x.copy()
            changed[:, i] = level
            out[:, i, level] = log_prob(changed) - log_prob(x)
        return out

    states = np.array(list(itertools.product(range(3), repeat=4)), dtype=float)
    weights = np.exp(log_prob(states))
    weights /= weights.sum()
    truth = np.array([[weights[states[:, i] == level].sum() for level in range(3)] for i in range(4)])
    for ratios in (log_ratios, None):
        mine = poise.target(log_prob, variables=4, levels=3, log_ratios=ratios, names=list("abcd"))
        answer = mine.marginals(sampler, draws=500, progress=False)
        assert answer.method == "sample"
        found, errors = np.array(answer.probabilities), np.array(answer.mcse)
        assert np.all(np.abs(found - truth) < 5 * errors)
        assert errors.max() < 0.05
        np.testing.assert_allclose(found.sum(1), 1)
        np.testing.assert_array_equal(answer["b"], answer[1])
        assert len(answer.table().rows) == 12


def test_marginals_of_labels_are_named_by_them():
    field = np.array([0.5, -1.0])
    mine = poise.target(lambda x: x @ field, variables=2, labels=(-1, 1), log_ratios=lambda x: -2 * x * field)
    answer = mine.marginals("lb", draws=200, progress=False)
    np.testing.assert_allclose(answer[0][1], 1 / (1 + np.exp(-1.0)), atol=1e-9)
    assert list(answer.table()["level"])[:2] == ["-1", "1"]
