"""Trains a small convolutional energy model in PyTorch by persistent contrastive divergence.

The chains of a `poise.Stepper` are the model's own samples while it learns: every update pulls log p up at the data and
down at the samples. Data are images of 10 x 10 pixels with a few horizontal or vertical bars.

    python python/examples/energy_model.py --out energy_model.png
"""

from __future__ import annotations

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

import poise

SIDE = 10


def bars(count: int, random: np.random.Generator) -> np.ndarray:
    """Images in which every row, or every column, is on or off as a whole."""
    lines = random.random((count, SIDE)) < 0.4
    images = np.repeat(lines[:, :, None], SIDE, axis=2)
    turned = random.random(count) < 0.5
    images[turned] = images[turned].transpose(0, 2, 1)
    return images.astype(np.float32)


def order(images: np.ndarray) -> np.ndarray:
    """How much of an image is explained by its rows or by its columns: 1 for bars, about 0.1 for noise."""
    images = images.astype(np.float64)
    total = images.var(axis=(1, 2)) + 1e-12
    return np.maximum(images.mean(2).var(1), images.mean(1).var(1)) / total


class Energy(torch.nn.Module):
    """Log p of an image, up to a constant: local features, and features of these, summed over the image."""

    shape = (SIDE, SIDE)

    def __init__(self, features: int = 16) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(1, features, 3, padding=1, padding_mode="circular")
        self.second = torch.nn.Conv2d(features, features, 3, padding=1, padding_mode="circular")
        self.field = torch.nn.Parameter(torch.zeros(()))

    def log_prob(self, x: torch.Tensor) -> torch.Tensor:
        spins = 2.0 * x[:, None] - 1.0
        found = torch.nn.functional.softplus(self.first(spins))
        found = torch.nn.functional.softplus(self.second(found))
        return found.sum((1, 2, 3)) + self.field * spins.sum((1, 2, 3))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--updates", type=int, default=400)
    arguments.add_argument("--chains", type=int, default=64)
    arguments.add_argument("--steps", type=int, default=20, help="of the chains between two updates")
    arguments.add_argument("--sampler", default="dlsb", help="dlsb changes many pixels for one gradient, gwg one")
    arguments.add_argument("--out", default="energy_model.png")
    given = arguments.parse_args()

    torch.manual_seed(0)
    random = np.random.default_rng(0)
    model = Energy()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.5, 0.99))
    # Small steps at the end: the samples then belong to the model as it is.
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: min(1.0, 2.0 * (1.0 - update / given.updates)))
    stepper = poise.Stepper(model, chains=given.chains, sampler=given.sampler, seed=1)
    before = order(stepper.states).mean()
    for update in range(given.updates):
        samples = torch.from_numpy(stepper.step(given.steps).astype(np.float32))
        data = torch.from_numpy(bars(given.chains, random))
        at_data, at_samples = model.log_prob(data), model.log_prob(samples)
        loss = at_samples.mean() - at_data.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (update + 1) % max(1, given.updates // 8) == 0:
            print(
                f"update {update + 1:4}: log p of data - samples {float(at_data.mean() - at_samples.mean()):7.2f}, "
                f"order of samples {order(stepper.states).mean():.2f} (data 1, noise {before:.2f})"
            )

    figure, axes = plt.subplots(1, 2, figsize=(10, 5.4), layout="constrained")
    for axis, title, images in [(axes[0], "data", bars(64, random)), (axes[1], "samples", stepper.states[:64])]:
        padded = np.pad(np.asarray(images, float), ((0, 64 - len(images)), (1, 1), (1, 1)), constant_values=0.5)
        axis.imshow(padded.reshape(8, 8, SIDE + 2, SIDE + 2).transpose(0, 2, 1, 3).reshape(8 * (SIDE + 2), -1), cmap="gray")
        axis.set_title(title)
        axis.set_axis_off()
    figure.savefig(given.out, dpi=110)
    print(f"picture: {given.out}")


if __name__ == "__main__":
    main()
