"""What the sampler `auto` is worth: effective samples per second, beside those of the best samplers by name.

    PYTHONPATH=build/release/python python python/bench/auto.py [--seconds 5] [--seeds 5] [--only WORD] [--data DATA] [--held-out]

Each run has the same time, warm-up and set-up included; `auto` and the samplers by name run in turns, seed by seed. Effective
samples are those of the slowest monitor: log p, the model's statistics, and the distance from a random state (`hamming`), which
alone shows chains that are each in one of two mirrored modes. Seconds are of the processor; the last column has those of the
clock, which other work on the machine makes noise. A sampler counts as the best only if its answer
agrees with the reference: the mean of log p of a run of `exact`, or else of the run with the most effective samples among
those without warnings, within five standard errors. With --data, networks and cuts from a folder with `uai/`, `bif/` and
`maxcut/` are added. With --held-out, the models are others, which no constant of `auto` was chosen by.
"""

from __future__ import annotations

import argparse
import itertools
import math
import pathlib
import statistics
import tempfile
import time
import warnings

import numpy as np

import poise

warnings.simplefilter("ignore")


def spins(n: int, strength: float) -> np.ndarray:
    rng = np.random.default_rng(7)
    couplings = np.triu(rng.normal(size=(n, n)) * strength / np.sqrt(n), 1)
    return couplings + couplings.T


def user_target(n: int, strength: float, ratios: bool):
    """Spins with random couplings by NumPy, with a gradient or with all log ratios of single flips."""
    couplings = spins(n, strength)

    def log_prob(x):
        s = 2.0 * x - 1
        return 0.5 * ((s @ couplings) * s).sum(1)

    def gradient(x):
        return 2.0 * (2.0 * x - 1) @ couplings

    def log_ratios(x):
        s = 2.0 * x - 1
        return -2.0 * s * (s @ couplings)

    more = {"log_ratios": log_ratios} if ratios else {"gradient": gradient}
    return poise.target(log_prob, variables=n, **more)


def spin_glass(side: int, strength: float):
    """Couplings of either sign on a square lattice with periodic boundaries."""
    site = np.arange(side * side).reshape(side, side)
    first = np.concatenate([site.ravel(), site.ravel()])
    second = np.concatenate([np.roll(site, -1, 0).ravel(), np.roll(site, -1, 1).ravel()])
    signs = np.random.default_rng(1).choice([-1.0, 1.0], len(first))
    return poise.ising(edges=(first, second, strength * signs), field=np.zeros(side * side))


def random_rbm(visible: int, hidden: int, strength: float):
    rng = np.random.default_rng(1)
    weights = strength * rng.normal(size=(hidden, visible))
    return poise.rbm(weights, 0.3 * rng.normal(size=visible), 0.3 * rng.normal(size=hidden))


def models(data: str | None):
    """Label, model, and the samplers by name that may be the best."""
    clusters = ["gibbs", "wolff", "sw"]
    yield "ising 30x30, lambda 0.3", poise.model("ising:size=30,lambda=0.3"), clusters
    yield "ising 64x64, lambda 0.44", poise.model("ising:size=64,lambda=0.44"), ["wolff", "sw"]
    yield "ising 40x40, fields", poise.model("ising:size=40,lambda=0.5,mu=1,sigma=1"), ["gibbs", "lsb"]
    yield "spin glass 24x24, beta 1", spin_glass(24, 1.0), ["gibbs", "temper"]
    yield "potts 32x32, 4 levels, 0.9", poise.model("potts:size=32,levels=4,coupling=0.9"), clusters
    yield "potts 64x64, 3 levels, 1.005", poise.model("potts:size=64,levels=3,coupling=1.005"), ["wolff", "sw"]
    yield "potts 48x48, 6 levels, 1.1", poise.model("potts:size=48,levels=6,coupling=1.1"), clusters
    fields = poise.model("potts:size=40,levels=3,coupling=0.8,sigma=1,seed=9")
    yield "potts 40x40, 3 levels, fields", fields, ["gibbs", "lb", "temper"]
    image = poise.model("ising:size=80,lambda=0.6,mu=0.5,sigma=2,seed=4")
    yield "ising 80x80, noisy image", image, ["gibbs", "lsb", "temper"]
    random_field = poise.model("ising:size=60,lambda=0.4,mu=0,sigma=0.3,seed=12")
    yield "ising 60x60, random field", random_field, ["gibbs", "temper"]
    yield "fhmm 60x9, stay 0.9", poise.model("fhmm:length=60,chains=9,stay=0.9,seed=3"), ["gibbs", "exact"]
    yield "fhmm 50x8", poise.model("fhmm:length=50,chains=8"), ["gibbs", "exact"]
    yield "rbm 400x100", random_rbm(400, 100, 0.3), ["rbm-gibbs", "temper"]
    yield "60 spins, gradient", user_target(60, 0.6, False), ["gwg", "dlsb"]
    yield "60 spins, log ratios", user_target(60, 0.6, True), ["lb", "dlsb", "dlmc"]
    if data is None:
        return
    folder = pathlib.Path(data)
    for name in ("Grids_11", "Promedus_14", "Segmentation_11", "Pedigree_11", "DBN_13"):
        yield name, poise.read(str(folder / "uai" / f"{name}.uai")), ["exact", "temper"]
    cuts = (("G14.txt", 1.0), ("toruspm3-8-50.dat", 2.0), ("G43.txt", 0.3), ("G32.txt", 0.8), ("pm1s_100.0", 0.5))
    for name, beta in (*cuts, ("be100.1.sparse.mc", 0.01)):
        model = poise.model(f"maxcut:file={folder / 'maxcut' / name},beta={beta}")
        yield f"{name}, beta {beta:g}", model, ["gibbs", "temper"]


def slow_user_target(n: int):
    """A spike and a slab, whose log ratios are a loop over as many calls of log p as there are variables."""
    rng = np.random.default_rng(5)
    data = rng.normal(size=(60, n))
    answer = data[:, :4] @ np.array([0.6, -0.5, 0.4, 0.3]) + rng.normal(size=60)
    products, sides = data.T @ data, data.T @ answer

    def log_prob(x):
        chosen = np.asarray(x, float)
        inner = products * chosen[:, :, None] * chosen[:, None, :] + np.eye(n)
        right = sides * chosen
        fit = 0.5 * (right * np.linalg.solve(inner, right[..., None])[..., 0]).sum(1)
        return fit - 0.5 * np.linalg.slogdet(inner)[1] - 2.0 * chosen.sum(1)

    def log_ratios(x):
        here = log_prob(x)
        out = np.empty(x.shape)
        for i in range(n):
            other = np.array(x)
            other[:, i] = 1 - other[:, i]
            out[:, i] = log_prob(other) - here
        return out

    return poise.target(log_prob, variables=n, log_ratios=log_ratios)


def user_on_one_side(n: int, **more):
    """Spins with fields by NumPy, with log p alone or what else is given."""
    couplings, field = spins(n, 0.5), np.random.default_rng(8).normal(size=n)

    def log_prob(x):
        s = 2.0 * x - 1
        return 0.5 * ((s @ couplings) * s).sum(1) + s @ field

    def gradient(x):
        return 2.0 * ((2.0 * x - 1) @ couplings + field)

    def log_ratios(x):
        s = 2.0 * x - 1
        return -2.0 * s * (s @ couplings + field)

    given = {"gradient": gradient, "log_ratios": log_ratios}
    return poise.target(log_prob, variables=n, **{name: given[name] for name in more})


def hard_core(side: int, fugacity: float):
    """Sets of sites without neighbours on a square lattice, as a network with zeros."""
    site = np.arange(side * side).reshape(side, side)
    pairs = [*zip(site[:, :-1].ravel(), site[:, 1:].ravel()), *zip(site[:-1].ravel(), site[1:].ravel())]
    text = f"MARKOV {side * side} {'2 ' * (side * side)} {len(pairs) + side * side} "
    text += "".join(f"2 {i} {j} " for i, j in pairs) + "".join(f"1 {i} " for i in site.ravel())
    text += "4 1 1 1 0 " * len(pairs) + f"2 1 {fugacity} " * (side * side)
    return from_text(text, ".uai", lambda path: poise.read(path))


def random_qubo(n: int, beta: float):
    rng = np.random.default_rng(11)
    rows = [f"{i} {j} {rng.normal():.4f}" for i in range(n) for j in range(i, n) if i == j or rng.random() < 0.2]
    return from_text("# vartype=BINARY\n" + "\n".join(rows) + "\n", ".qubo", lambda path: poise.qubo(path, beta=beta))


def from_text(text: str, ending: str, make):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"model{ending}"
        path.write_text(text)
        return make(str(path))


def selection(rows: int, columns: int):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(rows, columns)) + 0.7 * rng.normal(size=(rows, 1))
    return poise.selection(x, x[:, :5] @ np.array([0.5, -0.4, 0.3, 0.3, 0.2]) + rng.normal(size=rows))


def held_out(data: str | None):
    """As `models`: one or two of every kind that no constant was chosen by."""
    clusters = ["gibbs", "wolff", "sw"]
    yield "ising 70x50, fields", poise.model("ising:size=70x50,lambda=0.35,mu=0.2,sigma=0.7,seed=21"), ["gibbs", "lsb"]
    yield "ising 56x56, critical", poise.model("ising:size=56,lambda=0.4407"), clusters
    random_field = poise.model("ising:size=100,lambda=0.4,mu=0,sigma=0.3,seed=22")
    yield "ising 100x100, random field", random_field, ["gibbs", "temper"]
    yield "potts 44x44, 4 levels, critical", poise.model("potts:size=44,levels=4,coupling=1.0986"), clusters
    yield "potts 36x36, 5 levels, 1.0", poise.model("potts:size=36,levels=5,coupling=1.0"), clusters
    yield "spin glass 30x30, beta 0.7", spin_glass(30, 0.7), ["gibbs", "temper"]
    yield "qubo 90, beta 1", random_qubo(90, 1.0), ["gibbs", "temper"]
    yield "fhmm 80x7, stay 0.8", poise.model("fhmm:length=80,chains=7,stay=0.8,seed=6"), ["gibbs", "exact"]
    yield "fhmm 70x11", poise.model("fhmm:length=70,chains=11,seed=6"), ["gibbs", "exact", "temper"]
    yield "rbm 300x60, 0.5", random_rbm(300, 60, 0.5), ["rbm-gibbs", "temper"]
    yield "hard core 24x24, fugacity 1", hard_core(24, 1.0), ["gibbs", "temper"]
    yield "hard core 14x14, fugacity 3", hard_core(14, 3.0), ["exact", "temper"]
    yield "selection 300 x 400", selection(300, 400), ["wtgs", "lb", "gibbs"]
    yield "50 spins, log p alone", user_on_one_side(50), ["gibbs", "temper"]
    yield "70 spins, fields, gradient", user_on_one_side(70, gradient=True), ["dlsb", "dlmc", "gwg"]
    yield "70 spins, fields, log ratios", user_on_one_side(70, log_ratios=True), ["lb", "dlsb", "dlmc"]
    yield "spike and slab, log ratios of 20 calls", slow_user_target(20), ["gibbs", "lb"]
    if data is None:
        return
    folder = pathlib.Path(data)
    for name in ("Grids_13", "BN_8", "Pedigree_12", "Segmentation_13", "ObjectDetection_11", "Promedus_25", "linkage_14"):
        yield name, poise.read(str(folder / "uai" / f"{name}.uai")), ["exact", "temper"]
    for name in ("insurance", "child"):
        yield name, poise.read(str(folder / "bif" / f"{name}.bif")), ["exact", "temper"]
    for name, beta in (("G11.txt", 1.5), ("G22.txt", 0.4), ("bqp100-2.sparse.mc", 0.003)):
        model = poise.model(f"maxcut:file={folder / 'maxcut' / name},beta={beta}")
        yield f"{name}, beta {beta:g}", model, ["gibbs", "temper"]


def measure(model, sampler: str, seconds: float, seed: int):
    """Effective samples of the slowest monitor per second of the processor, mean and error of log p, the sampler that
    was taken, whether there was no warning, and the same per second of the clock."""
    begun, begun_here = time.perf_counter(), time.process_time()
    try:
        fit = poise.sample(model, sampler, seconds=seconds, seed=seed, keep="monitors", progress=False)
    except (ValueError, RuntimeError):
        return None
    passed, passed_here = time.perf_counter() - begun, time.process_time() - begun_here
    took = min(seconds, passed) * passed_here / passed  # what follows the run, its diagnosis, does not count
    rows = fit.report["monitors"]
    ess = min((row["ess"] for row in rows.values() if row["ess"]), default=0.0)
    log_prob = rows["log_prob"]
    quiet = not fit.report["warnings"]
    return ess / took, log_prob["mean"], log_prob["mcse"] or math.inf, fit.sampler, quiet, ess / min(seconds, passed)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--seconds", type=float, default=5.0)
    words.add_argument("--seeds", type=int, default=5)
    words.add_argument("--only", default="")
    words.add_argument("--data")
    words.add_argument("--held-out", action="store_true")
    given = words.parse_args()
    print("| model | `auto` took | ESS/s | best by name | ESS/s | `auto` over the best | by the clock |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for label, model, names in (held_out if given.held_out else models)(given.data):
        if given.only not in label:
            continue
        runs = {name: [] for name in ["auto", *names]}
        for seed, name in itertools.product(range(1, given.seeds + 1), runs):
            if run := measure(model, name, given.seconds, seed):
                runs[name].append(run)
        candidates = [run for many in runs.values() for run in many if run[4]] or runs["auto"]
        reference = max([run for run in runs.get("exact", [])] or candidates, key=lambda run: run[0])

        def agrees(run):
            return abs(run[1] - reference[1]) <= 5.0 * math.hypot(run[2], reference[2])

        def median(many, column):
            return statistics.median(run[column] if agrees(run) else 0.0 for run in many)

        speed = {name: median(many, 0) for name, many in runs.items() if many}
        best = max((name for name in names if name in speed), key=speed.__getitem__)
        taken = ", ".join(sorted({run[3] for run in runs["auto"]}))
        ratio = speed["auto"] / speed[best] if speed[best] > 0 else math.inf
        clock = median(runs["auto"], 5) / max(median(runs[best], 5), 1e-300)
        print(f"| {label} | `{taken}` | {speed['auto']:.3g} | `{best}` | {speed[best]:.3g} | {ratio:.2f} | {clock:.2f} |", flush=True)


if __name__ == "__main__":
    main()
