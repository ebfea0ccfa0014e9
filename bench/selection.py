#!/usr/bin/env python3
"""What variable selection reaches: speed, errors against enumeration, calibration, and many variables.

    PYTHONPATH=build/release/python build/python/bin/python bench/selection.py FOLDER [PART ...]

PARTs are speed, convergence, traits, susie, loci, wide, blocks and consistency; all without any.

FOLDER holds data of susieR as .npz files: N3finemapping (X, Y) and FinemappingConvergence (XtX, Xty, yty, n). Times are
processor time of one thread, so that what else the machine does counts less. millipede (millipede-regression on PyPI) is put beside the
speed where it is installed, and susieR (Debian's r-cran-susier) beside the probabilities and credible sets.
"""

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import poise

SEEDS, LOCI = int(os.environ.get("SEEDS", "100")), int(os.environ.get("LOCI", "500"))
TRAIT_SEEDS = int(os.environ.get("TRAIT_SEEDS", "30"))
STARTS = ("empty", "greedy", "random")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the processor seconds it took."""
    begun = time.process_time()
    result = work()
    return result, time.process_time() - begun


def enumerate_three(xtx: np.ndarray, xty: np.ndarray, yty: float, n: float, variance: float = 0.2) -> np.ndarray:
    """Inclusion probabilities by all models of up to three variables, one over p as the prior of each."""
    p = len(xty)
    ridge, odds = 1 / variance, -np.log(p - 1)
    logs: list[np.ndarray] = []
    sums = np.zeros(p)
    total = 0.0

    def weight(gain: np.ndarray, log_det: np.ndarray, size: int) -> np.ndarray:
        prior = size * odds + 0.5 * size * np.log(ridge) - 0.5 * log_det
        return prior - 0.5 * (n - 1) * np.log1p(-gain / yty)

    v1, r1 = np.diag(xtx) + ridge, xty
    singles = weight(r1**2 / v1, np.log(v1), 1)
    pairs = np.full((p, p), -np.inf)
    triples = {}
    for i in range(p):
        v2 = v1 - xtx[:, i] ** 2 / v1[i]
        r2 = r1 - xtx[:, i] * r1[i] / v1[i]
        gain2 = r1[i] ** 2 / v1[i] + r2**2 / v2
        pairs[i, i + 1 :] = weight(gain2, np.log(v1[i]) + np.log(v2), 2)[i + 1 :]
        for j in range(i + 1, p - 1):
            w = xtx[j + 1 :, j] - xtx[j + 1 :, i] * xtx[i, j] / v1[i]
            v3, r3 = v2[j + 1 :] - w**2 / v2[j], r2[j + 1 :] - w * r2[j] / v2[j]
            triples[i, j] = weight(gain2[j] + r3**2 / v3, np.log(v1[i]) + np.log(v2[j]) + np.log(v3), 3)
    logs = [np.zeros(1), singles, pairs[np.isfinite(pairs)], *triples.values()]
    most = max(one.max() for one in logs)
    total = sum(np.exp(one - most).sum() for one in logs)
    sums += np.exp(singles - most)
    both = np.exp(pairs - most)
    sums += both.sum(0) + both.sum(1)
    for (i, j), weights in triples.items():
        shares = np.exp(weights - most)
        sums[[i, j]] += shares.sum()
        sums[j + 1 :] += shares
    return sums / total


def bench_speed(folder: pathlib.Path) -> None:
    """Flips a second of wtgs: the difference of a long run and a short one, so that making X'X does not count."""
    data = np.load(folder / "N3finemapping.npz")
    for trait in range(2):
        model = poise.selection(data["X"], data["Y"][:, trait])

        def run(draws: int) -> dict[str, Any]:
            fit = poise.sample(model, "wtgs", draws=draws, warmup=100, chains=1, threads=1, keep="monitors", progress=False)
            return fit.report

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rates = []
            for _ in range(3):
                (small, a), (large, b) = timed(lambda: run(200)), timed(lambda: run(20200))
                rates.append((large["evals"]["changes"] - small["evals"]["changes"]) / (b - a))
        print(f"wtgs, p = 1001, trait {trait + 1}: {np.median(rates) / 1e3:.0f} k flips a second", flush=True)
    try:
        from millipede import NormalLikelihoodVariableSelector
    except ImportError:
        print("millipede is not installed")
        return
    import pandas
    import torch

    torch.set_num_threads(1)
    x = data["X"].astype(np.float64)
    x = (x - x.mean(0)) / x.std(0, ddof=1)
    frame = pandas.DataFrame(x, columns=[f"v{k}" for k in range(x.shape[1])])
    frame["y"] = data["Y"][:, 0] - data["Y"][:, 0].mean()
    selector = NormalLikelihoodVariableSelector(frame, "y", S=1.0, prior="isotropic", tau=5.0)
    _, short = timed(lambda: selector.run(T=200, T_burnin=100, verbosity="none", seed=1))
    _, long = timed(lambda: selector.run(T=1200, T_burnin=100, verbosity="none", seed=1))
    print(f"millipede, p = 1001: {1000 / (long - short):.0f} iterations a second", flush=True)


def bench_convergence(folder: pathlib.Path) -> None:
    data = np.load(folder / "FinemappingConvergence.npz")
    xtx, xty = data["XtX"].astype(float), data["Xty"].astype(float).ravel()
    yty, n = float(data["yty"].ravel()[0]), float(data["n"].ravel()[0])
    truth, seconds = timed(lambda: enumerate_three(xtx, xty, yty, n))
    top = ", ".join(f"{k}: {truth[k]:.4f}" for k in np.argsort(-truth)[:4])
    print(f"all models of up to three variables in {seconds:.1f} s: {top}", flush=True)
    good, worst, longest = 0, 0.0, 0.0
    for seed in range(1, SEEDS + 1):
        start = STARTS[seed % 3]
        answer, seconds = timed(
            lambda: poise.finemap(
                xtx=xtx, xty=xty, yty=yty, n=n, seed=seed, start=start, threads=1, thin=20, progress=False
            )
        )
        error = float(np.abs(answer.pip - truth).max())
        good, worst, longest = good + (error < 0.01), max(worst, error), max(longest, seconds)
    print(f"FinemappingConvergence: {good} of {SEEDS} seeds within 0.01, worst {worst:.4f}, at most {longest:.2f} s")


def bench_traits(folder: pathlib.Path) -> None:
    data = np.load(folder / "N3finemapping.npz")
    for trait in range(2):
        x, y = data["X"], data["Y"][:, trait]
        long, seconds = timed(
            lambda: poise.select(x, y, seed=1000, chains=4, draws=5000, thin=60, threads=1, progress=False)
        )
        flips = long.report["report"]["evals"]["changes"]
        print(f"trait {trait + 1}: long run of {flips / 1e6:.1f} M flips in {seconds:.0f} s", flush=True)
        for thin in (8, 16):  # 8 is the default
            errors, times = [], []
            for seed in range(1, TRAIT_SEEDS + 1):
                answer, seconds = timed(
                    lambda: poise.select(x, y, seed=seed, thin=thin, threads=1, progress=False)
                )
                errors.append(float(np.abs(answer.pip - long.pip).max()))
                times.append(seconds)
            good = sum(error < 0.01 for error in errors)
            print(f"  thin {thin}: {good} of {TRAIT_SEEDS} seeds within 0.01, worst {max(errors):.4f}, of the first ten "
                  f"{max(errors[:10]):.4f}, root mean square {np.sqrt(np.mean(np.square(errors))):.4f}, "
                  f"{np.median(times):.2f} s, at most {max(times):.2f} s", flush=True)


SUSIE = r"""
suppressMessages(library(susieR))
folder <- commandArgs(TRUE)[1]
read <- function(name) { at <- file.path(folder, name); readBin(at, "double", file.size(at) / 8) }
p <- read("p")
table <- file.exists(file.path(folder, "X"))
if (table) {
  X <- matrix(read("X"), ncol = p); y <- read("y")
  fit_with <- function(...) susie(X, y, ...)
} else {
  XtX <- matrix(read("XtX"), ncol = p); Xty <- read("Xty"); yty <- read("yty"); n <- read("n")
  fit_with <- function(...) susie_suff_stat(XtX = XtX, Xty = Xty, yty = yty, n = n, ...)
}
settings <- list(
  "default" = list(),
  "refine" = list(refine = TRUE),
  "refine, slab variance 0.2" = list(refine = TRUE, estimate_prior_variance = FALSE, scaled_prior_variance = 0.2),
  "L = 5, refine" = list(L = 5, refine = TRUE))
for (name in names(settings)) {
  begun <- proc.time()
  fit <- suppressWarnings(do.call(fit_with, settings[[name]]))
  seconds <- sum((proc.time() - begun)[c("user.self", "sys.self")])
  sets <- sapply(fit$sets$cs, function(one) paste(one - 1, collapse = " "))
  cat(name, seconds, paste(sets, collapse = ";"), paste(sprintf("%.8g", fit$pip), collapse = " "), sep = "|")
  cat("\n")
}
"""


def susie(arrays: dict[str, np.ndarray]) -> list[tuple[str, float, list[list[int]], np.ndarray]]:
    """Fits of susieR: settings, processor seconds, credible sets and inclusion probabilities."""
    with tempfile.TemporaryDirectory() as folder:
        for name, array in arrays.items():
            np.asarray(array, dtype=np.float64).ravel(order="F").tofile(pathlib.Path(folder) / name)
        script = pathlib.Path(folder) / "fit.R"
        script.write_text(SUSIE, encoding="utf-8")
        run = subprocess.run(["Rscript", str(script), folder], capture_output=True, text=True, check=True,
                             env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})  # fmt: skip
    fits = []
    for line in run.stdout.splitlines():
        name, seconds, sets, pips = line.split("|")
        groups = [[int(one) for one in group.split()] for group in sets.split(";") if group]
        fits.append((name, float(seconds), groups, np.array([float(one) for one in pips.split()])))
    return fits


def show_sets(groups: list[list[int]], causes: set[int]) -> str:
    """Each with its size and whether a cause is in it."""
    words = []
    for group in groups:
        shown = " ".join(map(str, group)) if len(group) <= 4 else f"{len(group)} variables"
        words.append(f"{{{shown}}} {'with' if causes & set(group) else 'WITHOUT'} a cause")
    return "; ".join(words) or "none"


def compare_with_susie(arrays: dict[str, np.ndarray], truth: np.ndarray, causes: set[int]) -> None:
    for name, seconds, groups, pips in susie(arrays):
        worst = int(np.abs(pips - truth).argmax())
        print(f"  susieR, {name}: {seconds:.2f} s, largest difference of a PIP {abs(pips - truth)[worst]:.4f} "
              f"(variable {worst}: {pips[worst]:.4f}, here {truth[worst]:.4f}), sets {show_sets(groups, causes)}",
              flush=True)  # fmt: skip


def bench_susie(folder: pathlib.Path) -> None:
    """susieR on the same data. Its prior has ten effects at most, whose variances are estimated; that of poise has one
    expected effect with variance 0.2. Differences of probabilities are those of both, and of the approximation."""
    if shutil.which("Rscript") is None:
        print("Rscript is not installed")
        return
    data = np.load(folder / "FinemappingConvergence.npz")
    xtx, xty = data["XtX"].astype(float), data["Xty"].astype(float).ravel()
    yty, n = float(data["yty"].ravel()[0]), float(data["n"].ravel()[0])
    truth = enumerate_three(xtx, xty, yty, n)
    causes = set(np.flatnonzero(data["true_coef"]).tolist())
    answer, seconds = timed(
        lambda: poise.finemap(xtx=xtx, xty=xty, yty=yty, n=n, seed=1, threads=1, thin=20, progress=False)
    )
    index = {name: k for k, name in enumerate(answer.names)}
    groups = [[index[name] for name in one["variables"]] for one in answer.sets]
    print(f"FinemappingConvergence, causes {sorted(causes)}; poise: {seconds:.2f} s, largest error of a PIP "
          f"{np.abs(answer.pip - truth).max():.4f}, sets {show_sets(groups, causes)}", flush=True)  # fmt: skip
    compare_with_susie({"p": np.array([len(xty)]), "XtX": xtx, "Xty": xty, "yty": yty, "n": n},
                       truth, causes)  # fmt: skip
    data = np.load(folder / "N3finemapping.npz")
    for trait in range(2):
        x, y = data["X"].astype(float), data["Y"][:, trait]
        causes = set(np.flatnonzero(data["true_coef"][:, trait]).tolist())
        long = poise.select(x, y, seed=1000, draws=5000, thin=60, threads=1, progress=False)
        answer, seconds = timed(lambda: poise.select(x, y, seed=1, threads=1, progress=False))
        index = {name: k for k, name in enumerate(answer.names)}
        groups = [[index[name] for name in one["variables"]] for one in answer.sets]
        print(f"N3finemapping trait {trait + 1}, causes {sorted(causes)}; poise: {seconds:.2f} s, largest error of a PIP "
              f"{np.abs(answer.pip - long.pip).max():.4f}, sets {show_sets(groups, causes)}", flush=True)  # fmt: skip
        compare_with_susie({"p": np.array([x.shape[1]]), "X": x, "y": y}, long.pip, causes)


def bench_loci(folder: pathlib.Path) -> None:
    """Loci drawn from the prior: sets must contain a cause as often as they say, and so must bins of probabilities."""
    x = np.load(folder / "N3finemapping.npz")["X"].astype(float)
    x = (x - x.mean(0)) / x.std(0, ddof=1)
    n, p, rng = len(x), 200, np.random.default_rng(7)
    for name in ("drawn from the prior", "three times the effects"):
        pips, causes, masses, hits = [], [], [], []
        for locus in range(LOCI if name.startswith("drawn") else LOCI // 5):
            first = int(rng.integers(0, x.shape[1] - p))
            part = x[:, first : first + p]
            causal = rng.random(p) < 1 / p
            scale = 1.0 if name.startswith("drawn") else 3.0
            y = part[:, causal] @ rng.normal(0, scale * np.sqrt(0.2), causal.sum()) + rng.normal(size=n)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = poise.select(part, y, seed=locus + 1, draws=500, thin=8, threads=1, progress=False)
            pips.append(answer.pip)
            causes.append(causal)
            index = {variable: k for k, variable in enumerate(answer.names)}
            for one in answer.sets:
                masses.append(one["mass"])
                hits.append(any(causal[index[variable]] for variable in one["variables"]))
        stated, found, count = float(np.mean(masses)), float(np.mean(hits)), len(masses)
        error = np.sqrt(np.mean(np.array(masses) * (1 - np.array(masses))) / count) + 1e-9
        print(f"loci {name}: {count} sets, stated {stated:.4f}, contain a cause {found:.4f}, "
              f"{(found - stated) / error:+.1f} errors", flush=True)
        pip, cause = np.concatenate(pips), np.concatenate(causes)
        for low, high in zip((0, 0.001, 0.01, 0.1, 0.5, 0.9), (0.001, 0.01, 0.1, 0.5, 0.9, 1.01), strict=True):
            here = (pip >= low) & (pip < high)
            if not here.any():
                continue
            error = np.sqrt((pip[here] * (1 - pip[here])).sum()) + 1e-9
            print(f"  PIP {low:5} to {min(high, 1):5}: {here.sum():6} variables, expected {pip[here].sum():8.1f}, "
                  f"found {cause[here].sum():5}, {(cause[here].sum() - pip[here].sum()) / error:+.1f} errors")


def bench_wide(_: pathlib.Path) -> None:
    n, p, rng = 1000, 50_000, np.random.default_rng(5)
    x = np.empty((n, p), order="F")
    x[:, 0] = rng.normal(size=n)
    for k in range(1, p):
        x[:, k] = 0.9 * x[:, k - 1] + np.sqrt(1 - 0.81) * rng.normal(size=n)
    causal = np.arange(10) * 5000 + 2500
    y = x[:, causal] @ rng.choice([-0.4, 0.4], 10) + rng.normal(size=n)
    begun = time.time()
    answer, seconds = timed(lambda: poise.select(x, y, draws=150, thin=2, warmup=50, progress=False))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"p = 50000, n = 1000: {seconds:.0f} s of processor time, {time.time() - begun:.0f} s in all, {memory:.2f} GiB, "
          f"{len(answer.sets)} sets, causes found {int((answer.pip[causal] > 0.5).sum())} of 10")
    print(f"  warnings: {[str(one) for one in answer.warnings]}; largest standard error {answer.pip_se.max():.4f}")


def bench_blocks(_: pathlib.Path) -> None:
    """Summary statistics of a hundred thousand variants in blocks of fifty, ten of them causes."""
    import scipy.sparse
    p, size, rng = 100_000, 50, np.random.default_rng(0)
    block = 0.95 ** abs(np.subtract.outer(np.arange(size), np.arange(size)))
    r = scipy.sparse.block_diag([scipy.sparse.csr_matrix(block)] * (p // size), format="csc")
    z = (np.linalg.cholesky(block) @ rng.normal(size=(size, p // size))).T.ravel()
    causes = 5000 + 9000 * np.arange(10)
    for cause in causes:
        first = cause // size * size
        z[first : first + size] += 8 * block[cause - first]
    answer, seconds = timed(
        lambda: poise.finemap(z, r, 200_000, draws=200, thin=2, warmup=50, threads=1, progress=False)
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    hits = sum(any(f"x[{cause}]" in one["variables"] for cause in causes) for one in answer.sets)
    print(f"p = 100000 in blocks: {seconds:.0f} s, {memory:.2f} GiB, {len(answer.sets)} sets, {hits} with a cause, "
          f"warnings {[str(one) for one in answer.warnings]}")


def bench_consistency(folder: pathlib.Path) -> None:
    """Warnings about loci whose R is of the same sample: as they are, and with the second largest z reversed."""
    genotypes = np.load(folder / "N3finemapping.npz")["X"].astype(float)
    rng = np.random.default_rng(42)
    for name, rho in (("genotypes", None), ("autocorrelated by 0.95", 0.95), ("by 0.5", 0.5), ("independent", 0.0)):
        named, alone, count = 0, 0, 0
        for n, effect in ((574, 0.3), (574, 1.0), (5000, 0.3), (5000, 1.0)):
            for _ in range(10):
                p = int(rng.integers(20, 120))
                if rho is None:
                    first = int(rng.integers(0, genotypes.shape[1] - p))
                    x = genotypes[rng.integers(0, len(genotypes), n), first : first + p]
                    x = x[:, x.std(0) > 0]
                else:
                    x = rng.normal(size=(n, p))
                    for k in range(1, p):
                        x[:, k] = rho * x[:, k - 1] + np.sqrt(1 - rho**2) * x[:, k]
                causes = rng.choice(x.shape[1], 2, replace=False)
                y = x[:, causes] / x[:, causes].std(0) @ (effect * rng.normal(size=2)) + rng.normal(size=n)
                c = np.array([np.corrcoef(column, y)[0, 1] for column in x.T])
                z, r = c * np.sqrt((n - 2) / (1 - c * c)), np.corrcoef(x.T)
                turned = int(np.abs(z).argsort()[-2])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    settings: dict[str, Any] = {"draws": 1, "warmup": 0, "chains": 1, "threads": 1, "progress": False}
                    sound = poise.finemap(z, r, n, **settings)
                    wrong = poise.finemap(np.where(np.arange(len(z)) == turned, -z, z), r, n, **settings)
                count += 1
                named += bool(sound.warnings)
                found = [str(one) for one in wrong.warnings]
                alone += len(found) == 1 and found[0].startswith("One variant") and f"x[{turned}] (" in found[0]
        print(f"consistency, {name}: {count} loci, {named} with a warning; of a reversed z, {alone} are named alone",
              flush=True)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    parts = {"speed": bench_speed, "convergence": bench_convergence, "traits": bench_traits, "susie": bench_susie,
             "loci": bench_loci, "wide": bench_wide, "blocks": bench_blocks, "consistency": bench_consistency}  # fmt: skip
    for name in sys.argv[2:] or parts:
        parts[name](folder)


if __name__ == "__main__":
    main()
