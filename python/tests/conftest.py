"""What the tests share: small targets whose probabilities can be summed up, and the program."""

from __future__ import annotations

import itertools
import os
import subprocess

import numpy as np
import pytest


@pytest.fixture(scope="session")
def program():
    """The program beside which the module was built."""
    path = os.environ.get("POISE_PROGRAM")
    assert path, "POISE_PROGRAM must name the program to compare with"

    def run(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=300)
        assert done.returncode == expect, done.stderr
        return done

    return run


class Quadratic:
    """log p(x) = h.x + x J x / 2 of a few zeros and ones: small enough to enumerate."""

    def __init__(self, variables: int = 6, seed: int = 0, strength: float = 1.0) -> None:
        random = np.random.default_rng(seed)
        coupling = random.normal(size=(variables, variables)) * strength
        self.coupling = np.triu(coupling, 1) + np.triu(coupling, 1).T
        self.field = random.normal(size=variables)
        self.variables = variables

    def log_prob(self, x):
        return x @ self.field + 0.5 * np.einsum("ci,ij,cj->c", x, self.coupling, x)

    def gradient(self, x):
        return self.field + x @ self.coupling

    def means(self) -> np.ndarray:
        states = np.array(list(itertools.product([0.0, 1.0], repeat=self.variables)))
        weights = np.exp(self.log_prob(states))
        return weights @ states / weights.sum()


@pytest.fixture
def quadratic() -> Quadratic:
    return Quadratic()


def required(name: str):
    """A package that must be there: its absence is a failure, never a skip."""
    import importlib

    return importlib.import_module(name)

