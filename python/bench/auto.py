"""What the sampler `auto` is worth: effective samples per second, beside those of the best samplers by name.

    PYTHONPATH=build/release/python python python/bench/auto.py [--seconds 5] [--seeds 5] [--only WORD] [--data DATA]
        [--held-out | --fresh SEED]

Each run has one thread and the same time, warm-up and set-up included; `auto` and the samplers by name run in turns, seed by seed. Effective
samples are those of the slowest monitor: log p, the model's statistics, and the distance from a random state (`hamming`), which
alone shows chains that are each in one of two mirrored modes. Seconds are of the processor; the last column but one has those of
the clock, which other work on the machine makes noise. Medians are over the seeds.

The reference is all runs of `exact` together where it is among the samplers by name, else one run of `temper` of four times the
length, else, where that has warnings, all runs of the sampler by name with the most effective samples and no warning. A run
agrees with it if the means of log p and of the model's statistics are within five standard errors. A sampler by name counts only
if all of its runs agree, and so does their mean. A run of `auto` that does not agree is worth nothing; the last column has how
many do.

With --data, networks and cuts from a folder with `uai/`, `bif/` and `maxcut/` are added. With --held-out, the models are others,
which no constant of `auto` was chosen by. With --fresh, they are random ones, one or two of every kind, of random sizes and
strengths by the seed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import pathlib
import statistics
import tempfile
import time
import typing
import warnings

import numpy as np

import poise

warnings.simplefilter("ignore")


def spins(n: int, strength: float, seed: int = 7) -> np.ndarray:
    rng = np.random.default_rng(seed)
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


def spin_glass(side: int, strength: float, seed: int = 1):
    """Couplings of either sign on a square lattice with periodic boundaries."""
    site = np.arange(side * side).reshape(side, side)
    first = np.concatenate([site.ravel(), site.ravel()])
    second = np.concatenate([np.roll(site, -1, 0).ravel(), np.roll(site, -1, 1).ravel()])
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(first))
    return poise.ising(edges=(first, second, strength * signs), field=np.zeros(side * side))


def random_rbm(visible: int, hidden: int, strength: float, seed: int = 1):
    rng = np.random.default_rng(seed)
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


def user_on_one_side(n: int, strength: float = 0.5, seed: int = 7, **more):
    """Spins with fields by NumPy, with log p alone or what else is given."""
    couplings, field = spins(n, strength, seed), np.random.default_rng(seed + 1).normal(size=n)

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


def random_qubo(n: int, beta: float, seed: int = 11):
    rng = np.random.default_rng(seed)
    rows = [f"{i} {j} {rng.normal():.4f}" for i in range(n) for j in range(i, n) if i == j or rng.random() < 0.2]
    return from_text("# vartype=BINARY\n" + "\n".join(rows) + "\n", ".qubo", lambda path: poise.qubo(path, beta=beta))


def from_text(text: str, ending: str, make):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"model{ending}"
        path.write_text(text)
        return make(str(path))


def selection(rows: int, columns: int, seed: int = 2):
    rng = np.random.default_rng(seed)
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


def random_graph(n: int, degree: float, strength: float, seed: int):
    """Couplings of either sign on a random graph, and weak fields."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n, 1)
    chosen = rng.random(len(first)) < degree / (n - 1)
    couplings = strength * rng.normal(size=int(chosen.sum()))
    return poise.ising(edges=(first[chosen], second[chosen], couplings), field=0.2 * rng.normal(size=n))


def random_cut(n: int, strength: float, seed: int):
    """A cut of a complete graph with weights of either sign: no fields."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n, 1)
    couplings = rng.choice([-1.0, 1.0], len(first)) * strength / math.sqrt(n)
    return poise.ising(edges=(first, second, couplings), field=np.zeros(n))


def random_network(n: int, levels: int, degree: float, zeros: float, seed: int):
    """Random tables of pairs. Level 0 of each variable goes with all others, so zeros exclude no state for good."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < degree / (n - 1)]
    text = f"MARKOV {n} {f'{levels} ' * n} {len(pairs) + n} "
    text += "".join(f"2 {i} {j} " for i, j in pairs) + "".join(f"1 {i} " for i in range(n))
    for _ in pairs:
        table = np.exp(0.7 * rng.normal(size=(levels, levels)))
        table[1:, 1:][rng.random((levels - 1, levels - 1)) < zeros] = 0.0
        text += f"{levels**2} " + " ".join(f"{value:.5f}" for value in table.ravel()) + " "
    for _ in range(n):
        text += f"{levels} " + " ".join(f"{value:.5f}" for value in np.exp(0.5 * rng.normal(size=levels))) + " "
    return from_text(text, ".uai", lambda path: poise.read(path))


def fresh(seed: int):
    """As `models`: one or two of every kind, by chance."""
    rng = np.random.default_rng(seed)

    def whole(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    def number(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 3)

    def spec(text: str):
        return text.replace(",seed=", ", seed "), poise.model(text)

    clusters = ["gibbs", "wolff", "sw"]
    fields = f"lambda={number(0.2, 0.6)},mu={number(0, 1)},sigma={number(0.3, 1.5)},seed={whole(1, 999)}"
    yield *spec(f"ising:size={whole(30, 90)}x{whole(30, 90)},{fields}"), ["gibbs", "lsb", "temper"]
    yield *spec(f"ising:size={whole(24, 70)},lambda={number(0.25, 0.5)}"), clusters
    for most in (0.9, 1.03):
        levels = whole(3, 7)
        coupling = round(number(0.6, most) * math.log(1 + math.sqrt(levels)), 3)
        yield *spec(f"potts:size={whole(24, 60)},levels={levels},coupling={coupling}"), clusters
    coupled = f"coupling={number(0.4, 0.9)},sigma={number(0.3, 1.2)},seed={whole(1, 999)}"
    yield *spec(f"potts:size={whole(24, 50)},levels={whole(3, 5)},{coupled}"), ["gibbs", "lb", "temper"]
    for low, high in ((0.3, 0.8), (0.8, 1.3)):
        side, beta = whole(16, 34), number(low, high)
        yield f"spin glass {side}x{side}, beta {beta}", spin_glass(side, beta, whole(1, 999)), ["gibbs", "temper", "exact"]
    n, degree, strength = whole(100, 600), number(3, 6), number(0.3, 0.8)
    label = f"random graph, {n} spins, degree {degree}, {strength}"
    yield label, random_graph(n, degree, strength, whole(1, 999)), ["gibbs", "temper"]
    for low, high in ((0.3, 0.8), (0.8, 1.6)):
        n, strength = whole(50, 150), number(low, high)
        yield f"cut of {n}, strength {strength}", random_cut(n, strength, whole(1, 999)), ["gibbs", "temper"]
    n, beta = whole(50, 130), number(0.3, 1.5)
    yield f"qubo {n}, beta {beta}", random_qubo(n, beta, whole(1, 999)), ["gibbs", "temper"]
    for most in (8, 12):
        text = f"fhmm:length={whole(40, 100)},chains={whole(most - 3, most)},stay={number(0.5, 0.95)},seed={whole(1, 999)}"
        yield *spec(text), ["gibbs", "exact", "temper"]
    visible, hidden, strength = whole(100, 500), whole(20, 120), number(0.2, 0.6)
    label = f"rbm {visible}x{hidden}, {strength}"
    yield label, random_rbm(visible, hidden, strength, whole(1, 999)), ["rbm-gibbs", "temper"]
    for low, high in ((12, 18), (22, 32)):
        side, fugacity = whole(low, high), number(0.5, 3.0)
        names = ["gibbs", "temper", "exact"] if high < 20 else ["gibbs", "temper"]
        yield f"hard core {side}x{side}, fugacity {fugacity}", hard_core(side, fugacity), names
    for zeros in (0.0, 0.3):
        n, levels, degree = whole(60, 200), whole(2, 4), number(2.0, 4.0)
        label = f"network of {n}, {levels} levels, degree {degree}" + (", zeros" if zeros else "")
        yield label, random_network(n, levels, degree, zeros, whole(1, 999)), ["gibbs", "exact", "temper"]
    rows, columns = whole(100, 400), whole(100, 500)
    yield f"selection {rows} x {columns}", selection(rows, columns, whole(1, 999)), ["wtgs", "lb", "gibbs"]
    n, strength = whole(30, 60), number(0.2, 0.8)
    yield f"{n} spins, {strength}, log p alone", user_on_one_side(n, strength, whole(1, 999)), ["gibbs", "temper"]
    for given, names in (("gradient", ["dlsb", "dlmc", "gwg"]), ("log_ratios", ["lb", "dlsb", "dlmc"])):
        n, strength = whole(40, 90), number(0.2, 0.8)
        model = user_on_one_side(n, strength, whole(1, 999), **{given: True})
        yield f"{n} spins, {strength}, {given.replace('_', ' ')}", model, names


class Measured(typing.NamedTuple):
    speed: float  # effective samples of the slowest monitor a second of the processor
    by_clock: float  # the same of the clock
    means: dict  # of the monitors that do not depend on the seed: mean and its standard error
    sampler: str  # that was taken
    quiet: bool  # there was no warning


def measure(model, sampler: str, seconds: float, seed: int) -> Measured | None:
    begun, begun_here = time.perf_counter(), time.process_time()
    try:
        fit = poise.sample(model, sampler, seconds=seconds, seed=seed, threads=1, keep="monitors", progress=False)
    except (ValueError, RuntimeError):
        return None
    passed, passed_here = time.perf_counter() - begun, time.process_time() - begun_here
    took = min(seconds, passed) * passed_here / passed  # what follows the run, its diagnosis, does not count
    rows = fit.report["monitors"]
    ess = min((row["ess"] for row in rows.values() if row["ess"]), default=0.0)
    means = {name: (row["mean"], row["mcse"] or 0.0) for name, row in rows.items() if name != "hamming"}
    return Measured(ess / took, ess / min(seconds, passed), means, fit.sampler, not fit.report["warnings"])


def pooled(runs: list[Measured]) -> dict:
    """Means over the runs of one sampler, and their errors."""
    out = {}
    for name in runs[0].means:
        means, errors = zip(*(run.means[name] for run in runs))
        out[name] = (statistics.fmean(means), math.hypot(*errors) / len(runs))
    return out


def agrees(means: dict, reference: dict) -> bool:
    both = ((means[name], reference[name]) for name in means.keys() & reference.keys())
    return all(
        abs(mean - truth) <= 5.0 * math.hypot(error, its) + 1e-9 * abs(truth) for (mean, error), (truth, its) in both
    )


def find_reference(model, runs: dict[str, list[Measured]], seconds: float) -> dict | None:
    if runs.get("exact"):
        return pooled(runs["exact"])
    long = measure(model, "temper", 4.0 * seconds, 1000)
    if long is not None and long.quiet:
        return long.means
    quiet = [many for name, many in runs.items() if name != "auto" and many and all(run.quiet for run in many)]
    if quiet:
        return pooled(max(quiet, key=lambda many: statistics.median(run.speed for run in many)))
    return None


def row(label: str, model, names: list[str], seconds: float, seeds: int) -> str:
    runs: dict[str, list[Measured]] = {name: [] for name in ["auto", *names]}
    for seed, name in itertools.product(range(1, seeds + 1), runs):
        if run := measure(model, name, seconds, seed):
            runs[name].append(run)
    chosen = runs.pop("auto")
    taken = ", ".join(sorted({run.sampler for run in chosen}))
    reference = find_reference(model, runs, seconds)
    if reference is None:
        return f"| {label} | `{taken}` | | none without warnings | | | | |"
    right = [agrees(run.means, reference) for run in chosen]
    speed, clock = (
        statistics.median(run[column] if ok else 0.0 for run, ok in zip(chosen, right)) for column in (0, 1)
    )
    trusted = {
        name: many
        for name, many in runs.items()
        if many and agrees(pooled(many), reference) and all(agrees(run.means, reference) for run in many)
    }
    out = f"| {label} | `{taken}` | {speed:.3g} | "
    if not trusted:
        return out + f"none agrees | | | | {sum(right)} of {len(right)} |"
    medians = {name: tuple(statistics.median(run[k] for run in many) for k in (0, 1)) for name, many in trusted.items()}
    best = max(medians, key=lambda name: medians[name][0])
    ratios = f"{speed / medians[best][0]:.2f} | {clock / medians[best][1]:.2f}"
    return out + f"`{best}` | {medians[best][0]:.3g} | {ratios} | {sum(right)} of {len(right)} |"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--seconds", type=float, default=5.0)
    words.add_argument("--seeds", type=int, default=5)
    words.add_argument("--only", default="")
    words.add_argument("--data")
    words.add_argument("--held-out", action="store_true")
    words.add_argument("--fresh", type=int, metavar="SEED")
    given = words.parse_args()
    print("| model | `auto` took | ESS/s | best by name | ESS/s | `auto` over the best | by the clock | agrees |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    if given.fresh is not None:
        chosen = fresh(given.fresh)
    else:
        chosen = (held_out if given.held_out else models)(given.data)
    for label, model, names in chosen:
        if given.only in label:
            print(row(label, model, names, given.seconds, given.seeds), flush=True)


if __name__ == "__main__":
    main()
