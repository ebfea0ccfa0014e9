"""What the sampler `auto` is worth: effective samples per unit of work, beside those of every candidate named.

    PYTHONPATH=build/release/python python python/bench/auto.py DATA [--seeds N] [--only WORD] [--hard]

With --hard the models are others, on which a wrong choice is more likely. DATA is a folder with `uai/` and `maxcut/` (see docs/measurements.md). Effective samples are those of the slowest of log p,
the model's statistics and the variables (all of them together, by the error of their marginals); work is what the library
counts, warm-up and pilots included. Needs NumPy, PyTorch for one row.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import tempfile
import warnings

import numpy as np

import poise

warnings.simplefilter("ignore")


def slowest(fit: poise.Fit) -> float:
    """Effective samples of the slowest quantity."""
    summary = fit.summary()
    sizes = []
    for name, sd, mcse in zip(summary.rows, summary["sd"], summary["mcse"]):
        if name != "hamming" and mcse > 0:
            sizes.append((sd / mcse) ** 2)
    rows = fit.variables()
    ess, mcse = np.asarray(rows["ess"]), np.asarray(rows["mcse"])
    moving = np.isfinite(ess) & np.isfinite(mcse) & (mcse > 0)
    if moving.any():
        squares = mcse[moving] ** 2
        sizes.append(float((squares * ess[moving]).sum() / squares.sum()))
    return min(sizes) if sizes else float("nan")


def work_of(fit: poise.Fit, costs: dict[str, float]) -> float:
    """What the run has cost, by the prices of its sampler."""
    report = fit.report
    return costs["setup"] + sum(
        costs[kind] * (report["evals"][kind] + report["evals_warmup"][kind]) for kind in ("target", "ratio", "gradient")
    )


def spins(n: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    couplings = np.triu(rng.normal(size=(n, n)) * 0.6 / np.sqrt(n), 1)
    return couplings + couplings.T


def numpy_target():
    couplings = spins(60)
    return poise.target(lambda x: 0.5 * ((2.0 * x - 1) @ couplings * (2.0 * x - 1)).sum(1), variables=60)


def torch_target():
    import torch

    couplings = torch.tensor(spins(60))

    def log_prob(x):
        s = 2.0 * x - 1
        return 0.5 * ((s @ couplings.to(s.dtype)) * s).sum(1)

    return poise.target(log_prob, variables=60, framework="torch")


def trained_rbm(folder: str) -> poise.Model:
    """A small one, by contrastive divergence on 4 x 4 bars and stripes."""
    rng = np.random.default_rng(1)
    visible, hidden, rate = 16, 12, 0.05
    lines = rng.integers(0, 2, (2000, 4))
    turned = rng.random(2000) < 0.5
    images = np.repeat(lines, 4, 1).reshape(-1, 4, 4)
    images[turned] = images[turned].transpose(0, 2, 1)
    data = images.reshape(-1, visible).astype(float)
    weights, b, c = 0.05 * rng.normal(size=(hidden, visible)), np.zeros(visible), np.zeros(hidden)
    sigmoid = lambda a: 1 / (1 + np.exp(-a))
    for _ in range(150):
        for batch in data[rng.permutation(len(data))].reshape(-1, 50, visible):
            on = sigmoid(batch @ weights.T + c)
            x = batch
            for _ in range(3):
                h = rng.random(on.shape) < sigmoid(x @ weights.T + c)
                x = (rng.random(x.shape) < sigmoid(h @ weights + b)).astype(float)
            again = sigmoid(x @ weights.T + c)
            weights += rate * (on.T @ batch - again.T @ x) / 50
            b += rate * (batch - x).mean(0)
            c += rate * (on - again).mean(0)
    file = pathlib.Path(folder, "bars.npz")
    np.savez(file, weights=weights.astype(np.float32), visible_bias=b.astype(np.float32), hidden_bias=c.astype(np.float32))
    return poise.rbm(file)


def models(data: pathlib.Path, folder: str):
    for case in (1, 2, 3, 4):
        yield f"Ising, case {case}", lambda case=case: poise.model(f"ising:case={case}")
    for coupling in (0.3, 0.44, 0.6):
        spec = f"ising:size=50,lambda={coupling},mu=0.5,sigma=1.5,boundary=open"
        yield f"DISCS Ising, lambda {coupling}", lambda spec=spec: poise.model(spec)
    for levels in (3, 4):
        spec = f"potts:size=30,levels={levels},coupling=0.8"
        yield f"Potts, {levels} levels", lambda spec=spec: poise.model(spec)
    for name in ("BN_1", "BN_8", "Segmentation_11"):
        file = data / "uai" / f"{name}.uai"
        yield name, lambda file=file: poise.read(file, evidence=f"{file}.evid")
    yield "RBM, trained", lambda: trained_rbm(folder)
    for beta in (1, 3):
        spec = f"maxcut:file={data / 'maxcut' / 'G14.txt'},beta={beta}"
        yield f"G14 as max-cut, beta {beta}", lambda spec=spec: poise.model(spec)
    yield "NumPy target", numpy_target
    yield "PyTorch target", torch_target


def hard_models(data: pathlib.Path, folder: str):
    """Where it may go wrong: at criticality, at low temperature, networks in which chains get stuck."""
    for spec in (
        "ising:size=30,lambda=0.44",
        "ising:size=12,lambda=0.7",
        "ising:size=30,lambda=2,sigma=4",
        "potts:size=12,levels=3,coupling=1",
        "potts:size=30,levels=4,coupling=1.1",
        f"maxcut:file={data / 'maxcut' / 'pm1s_100.0'},beta=1",
        f"maxcut:file={data / 'maxcut' / 'pm1s_100.0'},beta=3",
    ):
        yield spec.replace(str(data) + "/", ""), lambda spec=spec: poise.model(spec)
    for name in ("Alchemy_11", "BN_3", "CSP_11", "DBN_11", "Grids_11", "Grids_15", "Pedigree_11", "Promedus_14"):
        file = data / "uai" / f"{name}.uai"
        yield name, lambda file=file: poise.read(file, evidence=f"{file}.evid")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--hard", action="store_true")
    given = parser.parse_args()
    run = {"draws": given.draws, "threads": 1, "progress": False}
    print("| model | `auto` chose | pilot, part of its work | best single sampler | `auto` over the best |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (hard_models if given.hard else models)(given.data, folder):
            if given.only not in name:
                continue
            chosen, pilots, ours = [], [], []
            singles: dict[str, list[float]] = {}
            for seed in range(1, given.seeds + 1):
                fit = poise.sample(make(), "auto", seed=seed, **run)
                choice = fit.choice
                costs = {one["sampler"]: one["costs"] for one in choice["candidates"]}
                own = work_of(fit, costs[fit.sampler])
                # The pilot of the winner is part of its warm-up, and so counted there.
                lost = choice["pilot_work"] - choice["candidates"][0]["pilot_work"]
                chosen.append(fit.sampler)
                pilots.append(choice["pilot_work"] / (own + lost))
                ours.append(slowest(fit) / (own + lost))
                bound = {one["sampler"]: one["draws"] / one["run_work"] for one in choice["candidates"]}
                for sampler in costs:
                    # Whoever would be far behind with independent draws need not be run.
                    if bound[sampler] < 0.5 * ours[-1]:
                        continue
                    named = poise.sample(make(), sampler, seed=seed, **run)
                    singles.setdefault(sampler, []).append(slowest(named) / work_of(named, costs[sampler]))
            best = max(singles, key=lambda sampler: statistics.mean(singles[sampler]))
            ratio = statistics.mean(ours) / statistics.mean(singles[best])
            names = ", ".join(f"`{one}`" for one in dict.fromkeys(chosen))
            print(f"| {name} | {names} | {max(pilots):.3f} | `{best}` | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
