"""What the engine costs beside user code on a GPU: steps of chains, and the evaluations that they need by themselves.

    PYTHONPATH=build/release/python python python/bench/gpu_energy.py [--chains 256] [--steps 1000] [--compile]

The energy is a small convolutional network on binary images of 28 x 28. Prints JSON: microseconds a step of
`poise.Stepper`, microseconds an evaluation (forward pass and autograd of the same module on as many states), and the
engine's share of the time, 1 - evaluation / step. Both are the least of some turns that alternate, so that clocks and
caches are the same for both. Needs PyTorch with CUDA.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable

import torch

import poise


class Energy(torch.nn.Module):
    """Three convolutions with SiLU, and a sum over what they find."""

    shape = (28, 28)

    def __init__(self, channels: tuple[int, int, int]) -> None:
        super().__init__()
        first, second, third = channels
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(1, first, 3, padding=1),
            torch.nn.SiLU(),
            torch.nn.Conv2d(first, second, 3, stride=2, padding=1),
            torch.nn.SiLU(),
            torch.nn.Conv2d(second, third, 3, stride=2, padding=1),
            torch.nn.SiLU(),
        )
        self.weights = torch.nn.Linear(third, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weights(self.features(x.unsqueeze(1)).sum((2, 3))).squeeze(1)


def timed(work: Callable[[], None]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=256)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--channels", type=int, nargs=3, default=[32, 64, 64])
    parser.add_argument("--sampler", default="dlmc:tau=0.1")
    parser.add_argument("--compile", action="store_true", help="the module by torch.compile")
    options = parser.parse_args()
    warnings.simplefilter("ignore", poise.PoiseWarning)
    torch.manual_seed(1)
    module = Energy(tuple(options.channels)).to("cuda").eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    log_prob = torch.compile(module) if options.compile else module
    target = poise.target(log_prob, shape=Energy.shape, framework="torch", dtype="float32", device="cuda", check=False)
    stepper = poise.Stepper(target, chains=options.chains, sampler=options.sampler, seed=1, device="cuda")
    states = (torch.rand(options.chains, *Energy.shape, device="cuda") < 0.5).float()

    def evaluate() -> None:
        for _ in range(options.steps):
            x = states.detach().requires_grad_(True)
            torch.autograd.grad(log_prob(x).sum(), x)

    def step() -> None:
        stepper.step(options.steps)

    for warm in (evaluate, step):
        warm()
    times = [(timed(step), timed(evaluate)) for _ in range(options.turns)]
    steps, evaluations = (min(one[k] for one in times) / options.steps for k in (0, 1))
    print(
        json.dumps(
            {
                "device": torch.cuda.get_device_name(),
                "torch": torch.__version__,
                "chains": options.chains,
                "channels": options.channels,
                "sampler": options.sampler,
                "compiled": options.compile,
                "microseconds_a_step": round(1e6 * steps, 2),
                "microseconds_an_evaluation": round(1e6 * evaluations, 2),
                "share_of_the_engine": round(1 - evaluations / steps, 4),
                "asked": 0.2,
                "aim": 0.05,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
