"""Finds a shape in a noisy image: the posterior of an Ising model, with its uncertainty.

    python python/examples/segmentation.py --out segmentation.png
"""

from __future__ import annotations

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import poise


def draw_truth(side: int) -> np.ndarray:
    """A ring and a bar, +1 inside and -1 outside."""
    y, x = np.mgrid[0:side, 0:side] / (side - 1.0)
    distance = np.hypot(x - 0.4, y - 0.45)
    ring = (distance > 0.16) & (distance < 0.3)
    bar = (np.abs(x - 0.82) < 0.06) & (np.abs(y - 0.5) < 0.35)
    return np.where(ring | bar, 1, -1)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--side", type=int, default=64)
    arguments.add_argument("--noise", type=float, default=1.2, help="standard deviation of the noise on -1 and +1")
    arguments.add_argument("--coupling", type=float, default=0.5, help="how much neighbours like to agree")
    arguments.add_argument("--draws", type=int, default=500)
    arguments.add_argument("--out", default="segmentation.png")
    given = arguments.parse_args()

    truth = draw_truth(given.side)
    seen = truth + given.noise * np.random.default_rng(1).normal(size=truth.shape)
    # log p(seen | x) = const + sum of seen x / noise^2 for spins: that is a field.
    model = poise.ising(coupling=given.coupling, field=seen / given.noise**2, boundary="open")

    fit = poise.sample(model, draws=given.draws, seed=1)
    mean = fit.draws.mean((0, 1))
    print(fit)
    print(f"wrong pixels: {np.mean((seen > 0) != (truth > 0)):.1%} by threshold, {np.mean((mean > 0) != (truth > 0)):.1%} by the mean")

    panels = [("what is seen", seen, "gray"), ("one draw", fit.draws[0, -1], "gray"), ("mean of the draws", mean, "gray"),
              ("probability that the mean is wrong", (1 - np.abs(mean)) / 2, "magma")]
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
    for axis, (title, image, colours) in zip(axes, panels):
        shown = axis.imshow(image, cmap=colours)
        axis.set_title(title, fontsize=10)
        axis.set_axis_off()
        figure.colorbar(shown, ax=axis, shrink=0.75)
    figure.savefig(given.out, dpi=110)
    print(f"picture: {given.out}")


if __name__ == "__main__":
    main()
