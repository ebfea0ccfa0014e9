"""Targets of the user's own on a GPU: their law, their identity, their mistakes. Skipped where there is none.

Runs under pytest, and by itself where pytest is not installed: python3 test_gpu.py [words that names contain].
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
import warnings

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs some of the memory too

import numpy as np

import poise

try:
    import torch

    HAS_GPU = torch.cuda.is_available()
except ImportError:
    HAS_GPU = False

try:
    import pytest

    pytestmark = pytest.mark.skipif(not HAS_GPU, reason="no GPU")
except ImportError:
    pass

N = 8
SAMPLERS = ["gwg", "flsb", "flsb1", "flsb2", "dlmc", "dlsb", "dmala"]


def states_of(n, low=0, high=1):
    return np.array(list(itertools.product([low, high], repeat=n)), dtype=np.float64)


def make_quadratic(dtype=None, seed=0, n=N):
    """log p(x) = h.x + x J x / 2, as a module on the GPU."""

    class Quadratic(torch.nn.Module):
        variables = n

        def __init__(self):
            super().__init__()
            random = np.random.default_rng(seed)
            coupling = np.triu(random.normal(size=(n, n)), 1) * 0.7
            kind = dtype or torch.float32
            self.coupling = torch.nn.Parameter(torch.tensor(coupling + coupling.T, dtype=kind))
            self.field = torch.nn.Parameter(torch.tensor(random.normal(size=n), dtype=kind))
            self.calls = 0

        def log_prob(self, x):
            # States never leave the GPU, but for what is checked before the run and learned between rounds.
            assert x.is_cuda and x.dtype == self.field.dtype
            self.calls += 1
            return x @ self.field + 0.5 * ((x @ self.coupling) * x).sum(1)

    return Quadratic().to("cuda")


def exact_probabilities(module, states):
    with torch.no_grad():
        log_p = module.log_prob(torch.tensor(states, dtype=module.field.dtype, device="cuda")).double().cpu().numpy()
    weights = np.exp(log_p - log_p.max())
    return weights / weights.sum()


def sample(target, sampler, **settings):
    settings = {"device": "cuda", "progress": False, "seed": 1, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", poise.PoiseWarning)
        return poise.sample(target, sampler, **settings)


def raises(kind, words, action):
    try:
        action()
    except kind as error:
        assert words in str(error), str(error)
        return
    raise AssertionError(f"expected {kind.__name__} with {words!r}")


def deviation(draws, probabilities):
    """Of counts of states of two levels from what is expected, in standard deviations of chi-square."""
    levels = (draws > draws.min()).astype(np.int64)
    numbers = levels @ (1 << np.arange(levels.shape[1])[::-1])
    count = np.bincount(numbers, minlength=len(probabilities)).astype(np.float64)
    expected = probabilities * len(draws)
    few = expected < 10
    count = np.append(count[~few], count[few].sum())
    expected = np.append(expected[~few], max(expected[few].sum(), 1.0))
    return (np.sum((count - expected) ** 2 / expected) - len(count)) / np.sqrt(2 * len(count))


def exact_starts(probabilities, states, chains):
    return states[np.random.default_rng(5).choice(len(states), size=chains, p=probabilities)].astype(int)


def test_law_from_exact_draws():
    chains = 20000
    for labels, dtype in [((0, 1), None), ((-1, 1), torch.float64)]:
        module = make_quadratic(dtype)
        states = states_of(N, *labels)
        probabilities = exact_probabilities(module, states)
        target = poise.target(module, labels=labels)
        for sampler in ["gwg", "gwg:g=barker", "dlmc:tau=0.4", "dlmc:g=min,tau=0.4", "dmala:alpha=0.4"]:
            fit = sample(
                target, sampler, chains=chains, draws=1, warmup=0, thin=30, init=exact_starts(probabilities, states, chains)
            )
            z = deviation(fit.draws[:, 0], probabilities)
            assert abs(z) < 6, (sampler, z)


def test_marginals_agree_with_enumeration_and_the_cpu():
    module = make_quadratic()
    states = states_of(N)
    exact = exact_probabilities(module, states) @ states
    target = poise.target(module)
    for sampler in SAMPLERS:
        for device in ["cuda", "cpu"] if sampler == "dlmc" else ["cuda"]:
            fit = sample(target, sampler, chains=64, draws=400, warmup=100, device=device)
            assert fit.draws.shape == (64, 400, N)
            table = fit.variables()
            error = np.maximum(np.asarray(table["mcse"]), 1e-3)
            assert np.max(np.abs(np.asarray(table["mean"]) - exact) / error) < 6, (sampler, device)


def test_recorded_log_prob_is_that_of_the_draws():
    module = make_quadratic(torch.float64)
    fit = sample(poise.target(module), "dlmc:tau=0.3", chains=16, draws=50, warmup=10)
    with torch.no_grad():
        x = torch.tensor(fit.draws.reshape(-1, N), dtype=torch.float64, device="cuda")
        log_p = module.log_prob(x).cpu().numpy().reshape(16, 50)
    np.testing.assert_allclose(fit.log_prob, log_p, atol=1e-9)


def test_one_call_a_step():
    module = make_quadratic()
    target = poise.target(module, check=False)
    fit = sample(target, "dlmc:tau=0.3", chains=256, draws=200, warmup=0, thin=1)
    assert module.calls <= 205
    assert fit.target_account["calls"] == module.calls
    assert fit.target_account["rows"] == 256 * module.calls


def make_integers(n):
    """log p in small whole numbers, so that every order of adding gives the same."""

    class Integers(torch.nn.Module):
        variables = n

        def __init__(self):
            super().__init__()
            random = np.random.default_rng(4)
            coupling = np.triu(random.integers(-1, 2, size=(n, n)), 1).astype(np.float32)
            self.coupling = torch.nn.Parameter(torch.tensor(coupling + coupling.T))

        def log_prob(self, x):
            return 0.5 * ((x @ self.coupling) * x).sum(1)

    return Integers().to("cuda")


def test_chains_do_not_depend_on_their_company():
    target = poise.target(make_integers(40))
    for sampler in ["gwg", "dlmc:tau=0.2"]:
        many = sample(target, sampler, chains=300, draws=20, warmup=0, thin=3)
        for chains, first in [(1, 0), (16, 0), (7, 250)]:
            few = sample(target, sampler, chains=chains, first_chain=first, draws=20, warmup=0, thin=3)
            assert np.array_equal(few.draws, many.draws[first : first + chains]), (sampler, chains)


def test_zeros_of_probability_and_mistakes():
    module = make_quadratic()

    def limited(x):
        return torch.where(x.sum(1) > 4, -torch.inf, module.log_prob(x))

    target = poise.target(limited, variables=N, framework="torch", device="cuda")
    fit = sample(target, "dlmc:tau=0.3", chains=50, draws=100, warmup=10)
    assert fit.draws.sum(2).max() <= 4

    def spoiled(value):
        return poise.target(
            lambda x: torch.where(x.sum(1) > 5, value, module.log_prob(x)),
            variables=N, framework="torch", device="cuda", check=False,
        )  # fmt: skip

    def run(target):
        return lambda: sample(target, "dlmc:tau=0.5", chains=50, draws=500, warmup=0, init="zeros")

    raises(ValueError, "log_prob gave nan", run(spoiled(torch.nan)))
    raises(ValueError, "log_prob gave inf", run(spoiled(torch.inf)))
    steep = poise.target(
        module.log_prob, variables=N, framework="torch", device="cuda", check=False,
        gradient=lambda x: torch.where(x.sum(1, keepdim=True) > 5, torch.nan, torch.ones_like(x)),
    )  # fmt: skip
    raises(ValueError, "is not finite, where log p is finite", run(steep))


def test_answers_are_checked():
    module = make_quadratic()

    def run(log_prob, **more):
        target = poise.target(log_prob, variables=N, framework="torch", device="cuda", check=False, **more)
        return lambda: sample(target, "dlmc:tau=0.5", chains=5, draws=50, warmup=0)

    raises(ValueError, "log_prob gave shape (5, 1)", run(lambda x: module.log_prob(x)[:, None]))
    raises(ValueError, "log_prob gave a tensor on cpu", run(lambda x: module.log_prob(x).cpu()))
    raises(ValueError, "does not depend on x", run(lambda x: torch.zeros(len(x), device="cuda")))
    raises(ValueError, "gradient gave shape (5,)", run(module.log_prob, gradient=lambda x: x.sum(1)))
    raises(TypeError, "gradient gave float", run(module.log_prob, gradient=lambda x: 1.0))

    calls = []

    def fails(x):
        calls.append(len(x))
        if len(calls) == 20:
            raise RuntimeError("the user's own error")
        return module.log_prob(x)

    raises(RuntimeError, "the user's own error", run(fails))
    # Other numbers than floats of 32 bits.
    for kind in (torch.float64, torch.bfloat16):
        run(lambda x, kind=kind: module.log_prob(x).to(kind))()


def test_interrupt_keeps_what_was_drawn():
    module = make_quadratic()
    calls = []

    def interrupted(x):
        calls.append(len(x))
        if len(calls) == 300:
            raise KeyboardInterrupt
        return module.log_prob(x)

    target = poise.target(interrupted, variables=N, framework="torch", device="cuda", check=False)
    try:
        sample(target, "dlmc:tau=0.3", chains=10, draws=10000, warmup=0)
    except poise.Interrupted as stop:
        assert stop.fit is not None and 10 <= stop.fit.num_draws < 300
        return
    raise AssertionError("expected Interrupted")


def test_kept_tensors_stay_as_they_were():
    module = make_quadratic()
    kept = []

    def keeps(x):
        kept.append((x, x.detach().clone()))
        return module.log_prob(x)

    target = poise.target(keeps, variables=N, framework="torch", device="cuda", check=False)
    sample(target, "dlmc:tau=0.5", chains=33, draws=20, warmup=0)
    assert len(kept) > 20
    assert all(torch.equal(x, copy) for x, copy in kept)


def test_shapes_one_hot_and_whole_numbers():
    weights = torch.linspace(-1, 1, 12, device="cuda").reshape(3, 4)
    exact = 1 / (1 + np.exp(-weights.cpu().numpy()))

    def close(fit):
        return np.abs((fit.draws > 0).mean((0, 1)) - exact).max() < 0.03

    def picture(x):
        assert x.shape[1:] == (3, 4)
        return (x * weights).sum((1, 2))

    def pairs(x):
        assert x.shape[1:] == (3, 4, 2)
        return (x[..., 1] * weights).sum((1, 2))

    def whole(x):
        assert x.dtype == torch.int64
        return (x * weights).sum((1, 2))

    settings = {"shape": (3, 4), "framework": "torch", "device": "cuda"}
    run = {"sampler": "dlmc:tau=1", "chains": 200, "draws": 100, "warmup": 20}
    assert close(sample(poise.target(picture, **settings), **run))
    assert close(sample(poise.target(pairs, one_hot=True, **settings), **run))
    slope = {"dtype": "int64", "gradient": lambda x: weights.expand(x.shape)}
    assert close(sample(poise.target(whole, **settings, **slope), **run))


def test_a_stream_of_the_callers():
    target = poise.target(make_integers(40))
    expected = sample(target, "dlmc:tau=0.2", chains=64, draws=20, warmup=0).draws
    with torch.cuda.stream(torch.cuda.Stream()):
        found = sample(target, "dlmc:tau=0.2", chains=64, draws=20, warmup=0).draws
    assert np.array_equal(found, expected)


def test_resume_and_extend():
    target = poise.target(make_integers(40))
    for sampler in ["gwg", "dlmc", "dlsb"]:
        settings = {"chains": 12, "warmup": 20, "thin": 2}
        whole = sample(target, sampler, draws=60, **settings)
        assert np.array_equal(sample(target, sampler, draws=25, **settings).extend(35, progress=False).draws, whole.draws)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "run.zarr")
            sample(target, sampler, draws=25, out=file, checkpoint=True, **settings)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", poise.PoiseWarning)
                longer = poise.resume(file, target, draws=60, progress=False)
            assert np.array_equal(longer.draws, whole.draws), sampler


def test_devices_of_code_and_of_runs():
    module = make_quadratic()
    target = poise.target(module)
    assert sample(target, "dlmc:tau=0.3", device="auto", draws=5, warmup=0).num_draws == 5
    at_cpu = poise.target(lambda x: x.sum(1), variables=N, framework="torch")
    raises(ValueError, "its code is on the device 'cpu'", lambda: sample(at_cpu, "dlmc", draws=5))
    numpy = poise.target(lambda x: x.sum(1), variables=N, gradient=np.ones_like)
    raises(ValueError, "its code takes NumPy arrays", lambda: sample(numpy, "dlmc", draws=5))
    for sampler in ("gibbs", "lsb", "pas", "temper:of=dlmc"):
        raises(ValueError, "the samplers that do on such models are 'gwg'", lambda sampler=sampler: sample(target, sampler, draws=5))
    levels = poise.target(lambda x: x.sum(1), variables=N, levels=3, framework="torch", device="cuda")
    raises(ValueError, "variable 0 has 3 levels", lambda: sample(levels, "dlmc", draws=5))
    assert poise.sample(target, "gibbs", device="auto", draws=5, warmup=0, progress=False).num_draws == 5


def test_stepper():
    module = make_integers(40)
    stepper = poise.Stepper(module, chains=16, sampler="dlmc:tau=0.2", seed=3, device="cuda")
    states = stepper.step(10)
    assert states.shape == (16, 40)
    with torch.no_grad():
        expected = module.log_prob(torch.tensor(states, dtype=torch.float32, device="cuda")).cpu().numpy()
    assert np.array_equal(stepper.log_prob, expected)
    with torch.no_grad():
        module.coupling.mul_(-1)
    assert np.array_equal(stepper.log_prob, -expected)
    stepper.step(10)


def test_jax():
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        print("  (no JAX)")
        return
    if jax.devices()[0].platform not in ("gpu", "cuda"):
        print("  (JAX is without CUDA)")
        return
    small = make_quadratic()
    coupling, field = (jnp.asarray(p.detach().cpu().numpy()) for p in (small.coupling, small.field))

    @jax.jit
    def log_prob(x):
        return x @ field + 0.5 * ((x @ coupling) * x).sum(1)

    target = poise.target(log_prob, variables=N)
    states = states_of(N)
    probabilities = exact_probabilities(small, states)
    for sampler in ["gwg", "dlmc:tau=0.4"]:
        starts = exact_starts(probabilities, states, 20000)
        fit = sample(target, sampler, chains=20000, draws=1, warmup=0, thin=30, init=starts)
        z = deviation(fit.draws[:, 0], probabilities)
        assert abs(z) < 6, (sampler, z)
    fit = sample(target, "dlsb", chains=64, draws=400, warmup=100)
    table = fit.variables()
    error = np.maximum(np.asarray(table["mcse"]), 1e-3)
    assert np.max(np.abs(np.asarray(table["mean"]) - probabilities @ states) / error) < 6
    raises(
        ValueError, "log_prob gave nan",
        lambda: sample(
            poise.target(jax.jit(lambda x: jnp.where(x.sum(1) > 5, jnp.nan, log_prob(x))), variables=N, check=False),
            "dlmc:tau=0.5", chains=50, draws=500, warmup=0, init="zeros",
        ),
    )  # fmt: skip
    # What code keeps stays as it was.
    kept = []

    def slope(x):
        kept.append((x, np.asarray(x).copy()))
        return field + x @ coupling

    sample(poise.target(log_prob, variables=N, gradient=slope, check=False), "dlmc:tau=0.5", chains=33, draws=10, warmup=0)
    assert len(kept) > 10 and all(np.array_equal(np.asarray(x), copy) for x, copy in kept)


def main() -> int:
    if not HAS_GPU:
        print("skipped: no GPU")
        return 0
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:])):
            continue
        began = time.perf_counter()
        try:
            test()
            print(f"ok      {name} ({time.perf_counter() - began:.1f} s)", flush=True)
        except Exception:
            import traceback

            failed += 1
            print(f"FAILED  {name}", flush=True)
            traceback.print_exc()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
