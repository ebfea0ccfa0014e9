"""What a gradient costs beside log p, for as many states.

    python python/bench/gradients.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

torch.set_num_threads(1)


def seconds(work: Callable[[], Any], calls: int = 200, turns: int = 15) -> float:
    work()
    took = []
    for _ in range(turns):
        started = time.process_time()
        for _ in range(calls):
            work()
        took.append((time.process_time() - started) / calls)
    return min(took)


def torch_multiple(log_prob: Callable[[Any], Any], x: Any) -> float:
    def value() -> Any:
        with torch.no_grad():
            return log_prob(x)

    def gradient() -> Any:
        point = x.detach().clone().requires_grad_(True)
        log_prob(point).sum().backward()
        return point.grad

    return seconds(gradient) / seconds(value)


def main() -> None:
    print("| variables | chains | NumPy, by hand | PyTorch, quadratic | PyTorch, two hidden layers |")
    print("| --- | --- | --- | --- | --- |")
    for variables in (60, 500):
        matrix = np.random.default_rng(0).normal(size=(variables, variables))
        matrix += matrix.T
        tensor = torch.tensor(matrix, dtype=torch.float32)
        layers = [torch.nn.Linear(variables, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)]
        net = torch.nn.Sequential(*layers)
        for chains in (4, 64):
            x = np.random.default_rng(1).integers(0, 2, (chains, variables)).astype(float)
            y = torch.tensor(x, dtype=torch.float32)
            value = seconds(lambda x=x, m=matrix: ((x @ m) * x).sum(1))
            both = seconds(lambda x=x, m=matrix: (((x @ m) * x).sum(1), x @ m))
            quadratic = torch_multiple(lambda s, m=tensor: ((s @ m) * s).sum(1), y)
            layered = torch_multiple(lambda s, n=net: n(s)[:, 0], y)
            print(f"| {variables} | {chains} | {both / value:.1f} | {quadratic:.1f} | {layered:.1f} |")


if __name__ == "__main__":
    main()
