"""A frustrated grid that local moves cannot cross: errors of marginals against time, by Gibbs and by tempering.

Couplings of a 16 x 16 grid are drawn from a normal distribution, so modes are many and deep; exact inference still
answers, and shows how far each sampler is off, and whether it said so.

    python python/examples/mixing.py --out mixing.png
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import poise

SIDE = 16
SAMPLERS = {"gibbs": "Gibbs", "temper:collapse=0": "tempered", "temper": "collapsed and tempered"}


def write_grid(path: pathlib.Path, strength: float, seed: int) -> None:
    """A spin glass on a square grid, as a UAI file."""
    rng = np.random.default_rng(seed)
    cells = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    pairs = [*zip(cells[:, :-1].ravel(), cells[:, 1:].ravel()), *zip(cells[:-1].ravel(), cells[1:].ravel())]
    scopes = ["1 %d" % i for i in range(SIDE * SIDE)] + ["2 %d %d" % pair for pair in pairs]
    tables = []
    for field in rng.normal(0.0, 0.2 * strength, SIDE * SIDE):
        tables.append("2 %.8g %.8g" % (np.exp(-field), np.exp(field)))
    for coupling in rng.normal(0.0, strength, len(pairs)):
        alike, unlike = np.exp(coupling), np.exp(-coupling)
        tables.append("4 %.8g %.8g %.8g %.8g" % (alike, unlike, unlike, alike))
    lines = ["MARKOV", str(SIDE * SIDE), " ".join(["2"] * SIDE * SIDE), str(len(scopes)), *scopes, *tables]
    path.write_text("\n".join(lines) + "\n")


def error(answer: poise.Marginals, exact: poise.Marginals) -> float:
    return float(np.mean([np.abs(a - b).mean() for a, b in zip(answer, exact)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="mixing.png", help="picture to write")
    parser.add_argument("--seconds", type=float, default=8.0, help="of the longest run")
    parser.add_argument("--strength", type=float, default=2.0, help="standard deviation of the couplings")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "grid.uai"
        write_grid(path, arguments.strength, arguments.seed)
        model = poise.read(path)
        exact = model.marginals("exact")
        figure, axes = plt.subplots(figsize=(5.6, 3.8))
        axes.set_prop_cycle(color=["#0072b2", "#e66100", "#009e73"])  # told apart by colour-blind readers
        for sampler, label in SAMPLERS.items():
            times, errors, warned = [], [], []
            for halvings in range(5, -1, -1):
                seconds = arguments.seconds / 2**halvings
                answer = model.marginals("sample", sampler=sampler, seconds=seconds, seed=arguments.seed)
                times.append(seconds)
                errors.append(error(answer, exact))
                warned.append(bool(answer.warnings))
                words = "warns" if answer.warnings else "no warning"
                print(f"{label:24} {seconds:6.2f} s   mean absolute error {errors[-1]:.5f}   {words}")
            (line,) = axes.loglog(times, errors, label=label)
            colors = ["white" if warns else line.get_color() for warns in warned]
            axes.scatter(times, errors, c=colors, edgecolors=line.get_color(), zorder=3)
        axes.set_xlabel("seconds")
        axes.set_ylabel("mean absolute error of the marginals")
        axes.set_title("hollow: the answer came with a warning", fontsize=10)
        axes.grid(alpha=0.3)
        axes.set_xticks(times, [f"{seconds:g}" for seconds in times])
        axes.minorticks_off()
        axes.set_ylim(1e-4, 1.0)
        axes.legend(loc="lower left")
        figure.tight_layout()
        figure.savefig(arguments.out, dpi=144)


if __name__ == "__main__":
    main()
