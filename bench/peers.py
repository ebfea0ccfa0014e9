#!/usr/bin/env python3
"""Poise beside thrml (JAX) and dwave-samplers: Gibbs updates a second of one core, and a check that all sample one law.

    make peers

The model is the 50x50 Ising model of the DISCS benchmark: open boundary, coupling 0.5, a field of +-0.5 inside and
outside of a disc plus noise from U(-1.5, 1.5). Every program moves 100 chains on one core; times are processor time, so
that what else the machine does counts less. Compilation is timed by itself. The environment, below build/, is made on
the first run, with packages from PyPI.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "peers"
PACKAGES = ["thrml==0.1.4", "dwave-samplers==1.8.0"]
SIDE, CHAINS, COUPLING = 50, 100, 0.5
WARMUP = 200  # sweeps before log p is averaged; it has settled after some fifty
ROUNDS = 3  # the programs take turns, and the median counts


def enter_environment() -> None:
    """Runs this script again with the packages, one core and one thread."""
    python = ENVIRONMENT / "bin" / "python"
    installed = ENVIRONMENT / "installed.txt"
    if not installed.exists() or installed.read_text().split() != PACKAGES:
        print(f"Preparing Python in {ENVIRONMENT.relative_to(ROOT)}", flush=True)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        installed.write_text("\n".join(PACKAGES))
    os.environ.update(
        POISE_PEERS="1",
        PYTHONPATH=str(ROOT / "build" / "release" / "python"),
        XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
        JAX_PLATFORMS="cpu",
    )
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.execv(python, [str(python), __file__])


if os.environ.get("POISE_PEERS") != "1":
    enter_environment()

import warnings

import dimod
import jax
import jax.numpy as jnp
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler
from thrml import Block, SamplingSchedule, SpinNode, sample_states
from thrml.models.ising import IsingEBM, IsingSamplingProgram, hinton_init

import poise


def make_field() -> np.ndarray:
    along = (np.arange(SIDE) + 0.5) / SIDE - 0.5
    disc = along[:, None] ** 2 + along[None, :] ** 2 < 0.5 / np.pi  # half of the lattice
    return np.where(disc, 0.5, -0.5) + np.random.default_rng(1).uniform(-1.5, 1.5, (SIDE, SIDE))


def make_edges() -> np.ndarray:
    site = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    across = np.stack([site[:, :-1].ravel(), site[:, 1:].ravel()], 1)
    down = np.stack([site[:-1].ravel(), site[1:].ravel()], 1)
    return np.concatenate([across, down])


FIELD = make_field()
EDGES = make_edges()


def log_prob(spins: np.ndarray) -> np.ndarray:
    """Of states of -1 and +1 in the last two dimensions."""
    s = spins.astype(np.float32)
    pairs = (s[..., 1:, :] * s[..., :-1, :]).sum((-1, -2)) + (s[..., :, 1:] * s[..., :, :-1]).sum((-1, -2))
    return COUPLING * pairs.astype(np.float64) + np.tensordot(s, FIELD.astype(np.float32), 2).astype(np.float64)


def mean_and_error(by_chain: np.ndarray) -> tuple[float, float]:
    """Chains are independent, so their spread gives the standard error."""
    return float(by_chain.mean()), float(by_chain.std(ddof=1) / np.sqrt(by_chain.size))


class Thrml:
    """Both colours of the chessboard in turn; the states of all sweeps are recorded."""

    name = "thrml 0.1.4 (JAX), every state recorded"

    def __init__(self, sweeps: int = 400) -> None:
        nodes = [SpinNode() for _ in range(SIDE * SIDE)]
        colour = np.add.outer(np.arange(SIDE), np.arange(SIDE)).ravel() % 2
        blocks = [Block([nodes[i] for i in np.flatnonzero(colour == c)]) for c in (0, 1)]
        ebm = IsingEBM(
            nodes,
            [(nodes[i], nodes[j]) for i, j in EDGES],
            jnp.asarray(FIELD.ravel(), jnp.float32),
            jnp.full(len(EDGES), COUPLING, jnp.float32),
            jnp.asarray(1.0, jnp.float32),
        )
        program = IsingSamplingProgram(ebm, blocks, [])
        start = hinton_init(jax.random.key(0), ebm, blocks, (CHAINS,))
        schedule = SamplingSchedule(0, sweeps, 1)
        everything = [Block(nodes)]

        def run(keys, states):
            return jax.vmap(lambda key, state: sample_states(key, program, schedule, state, [], everything))(keys, states)

        self.updates = sweeps * CHAINS * SIDE * SIDE
        self.start = start
        started = time.process_time()
        self.run_compiled = jax.jit(run).lower(self.keys(0), start).compile()
        self.compilation = time.process_time() - started

    @staticmethod
    def keys(turn: int):
        return jax.random.split(jax.random.key(turn), CHAINS)

    def run(self, turn: int) -> tuple[float, np.ndarray]:
        keys = self.keys(turn)
        started = time.process_time()
        states = np.asarray(self.run_compiled(keys, self.start)[0])
        taken = time.process_time() - started
        kept = 2 * states[:, WARMUP:].reshape(CHAINS, -1, SIDE, SIDE).astype(np.int8) - 1
        return taken, log_prob(kept).mean(1)


class Dwave:
    """Sites in a fixed order at one temperature. Only the last states can be had."""

    name = "dwave-samplers 1.8.0, last state only"
    compilation = 0.0

    def __init__(self, sweeps: int = 400) -> None:
        field = {i: -value for i, value in enumerate(FIELD.ravel())}
        self.model = dimod.BinaryQuadraticModel(field, {(i, j): -COUPLING for i, j in EDGES.tolist()}, "SPIN")
        self.sweeps = sweeps
        self.updates = sweeps * CHAINS * SIDE * SIDE

    def run(self, turn: int) -> tuple[float, np.ndarray]:
        started = time.process_time()
        samples = SimulatedAnnealingSampler().sample(
            self.model, num_reads=CHAINS, beta_schedule_type="custom", beta_schedule=[1.0],
            num_sweeps_per_beta=self.sweeps, proposal_acceptance_criteria="Gibbs", seed=turn + 1,
        )  # fmt: skip
        taken = time.process_time() - started
        order = np.argsort(np.asarray(samples.variables))
        return taken, log_prob(samples.record.sample[:, order].reshape(-1, SIDE, SIDE))


class Poise:
    """Chains as bits. With all states recorded, diagnosing every variable is part of the time."""

    compilation = 0.0

    def __init__(self, name: str, keep: str, sweeps: int) -> None:
        self.name, self.keep, self.draws = name, keep, sweeps - WARMUP
        self.updates = sweeps * CHAINS * SIDE * SIDE
        self.model = poise.ising(size=SIDE, coupling=COUPLING, field=FIELD, boundary="open")

    def run(self, turn: int) -> tuple[float, np.ndarray]:
        started = time.process_time()
        fit = poise.sample(
            self.model, "gibbs", draws=self.draws, warmup=WARMUP, thin=1, chains=CHAINS, threads=1, seed=turn + 1,
            keep=self.keep, progress=False,
        )  # fmt: skip
        taken = time.process_time() - started
        return taken, fit.log_prob.mean(1)


def main() -> int:
    warnings.simplefilter("ignore")
    peers = [
        Thrml(),
        Dwave(),
        Poise("poise, every state recorded", "draws", 1200),
        Poise("poise, monitors of every state recorded", "monitors", 10200),
    ]
    times: list[list[float]] = [[] for _ in peers]
    chains: list[list[np.ndarray]] = [[] for _ in peers]
    for turn in range(ROUNDS):
        for k, peer in enumerate(peers):
            taken, mean = peer.run(turn)
            times[k].append(taken)
            chains[k].append(mean)
    print("| one core, 100 chains | million updates a second | compilation, s | mean log p |")
    print("| --- | --- | --- | --- |")
    laws = []
    for k, peer in enumerate(peers):
        mean, error = mean_and_error(np.concatenate(chains[k]))
        laws.append((mean, error))
        compilation = f"{peer.compilation:.1f}" if peer.compilation > 0 else ""
        print(f"| {peer.name} | {peer.updates / np.median(times[k]) / 1e6:.0f} | {compilation} | {mean:.2f} +- {error:.2f} |")
    reference, reference_error = laws[-1]
    apart = max(abs(mean - reference) / np.hypot(error, reference_error) for mean, error in laws[:-1])
    print(f"\nmean log p: at most {apart:.1f} standard errors from the last row")
    return 0 if apart < 5 else 1


if __name__ == "__main__":
    sys.exit(main())
