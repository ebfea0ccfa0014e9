"""What Python adds: a built-in model beside the program, and the engine's share of the time of a NumPy target.

    POISE_PROGRAM=build/release/poise python python/bench/overhead.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
import warnings

import numpy as np

import poise

warnings.simplefilter("ignore")


def built_in(rounds: int = 7) -> None:
    """Alternating, so that what else the machine does hits both."""
    program = os.environ["POISE_PROGRAM"]
    ratios = []
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run(
            [program, "sample", "ising:size=64,lambda=0.4", "--sampler", "lb:g=sqrt", "--draws", "2000", "--quiet"],
            check=True, stdout=subprocess.DEVNULL,
        )
        theirs = time.perf_counter() - started
        started = time.perf_counter()
        fit = poise.sample(poise.ising(size=64, coupling=0.4), "lb:g=sqrt", draws=2000, progress=False)
        str(fit)
        ratios.append((time.perf_counter() - started) / theirs)
    print(f"built-in model, Python / program: median {statistics.median(ratios):.3f} of {[round(r, 3) for r in ratios]}")


class Dense:
    """1000 zeros and ones with couplings between all of them: a matrix product for log p and gradient."""

    variables = 1000

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        coupling = random.normal(size=(1000, 1000)) * 0.02
        self.coupling = np.triu(coupling, 1) + np.triu(coupling, 1).T

    def log_prob(self, x):
        return 0.5 * ((x @ self.coupling) * x).sum(1)

    def gradient(self, x):
        return x @ self.coupling


class Sparse:
    """1000 spins in a ring: about the cheapest target that there is."""

    variables = 1000
    labels = (-1, 1)

    def log_prob(self, x):
        return 0.4 * (x * np.roll(x, 1, axis=1)).sum(1)

    def gradient(self, x):
        return 0.4 * (np.roll(x, 1, axis=1) + np.roll(x, -1, axis=1))


def numpy_target() -> None:
    for target in (Dense(), Sparse()):
        for sampler in ("gwg", "gibbs", "gibbs:block=4", "hb:block=10,radius=1"):
            started = time.perf_counter()
            fit = poise.sample(target, sampler, draws=1, warmup=0, thin=3 if sampler == "gibbs" else 2000, chains=64,
                               progress=False)
            taken = fit.report["seconds"]["sampling"] + fit.report["seconds"]["warmup"]
            assert fit.target_account is not None
            share = 1 - fit.target_account["seconds"] / taken
            calls = fit.target_account["calls"]
            print(
                f"{type(target).__name__.lower()} target, {sampler}: engine's share {100 * share:.1f} %, "
                f"{1e6 * taken / calls:.0f} us a call ({time.perf_counter() - started:.1f} s)"
            )


if __name__ == "__main__":
    built_in()
    numpy_target()
