"""Why does the car not start? A small Bayesian network, with more and more evidence, exact and by sampling.

    python python/examples/diagnosis.py
"""

from __future__ import annotations

import pathlib

import poise

NETWORK = pathlib.Path(__file__).with_name("car.bif")
CAUSES = {"battery": "flat", "fuel": "empty", "starter": "broken"}


def main() -> None:
    seen: dict[str, str] = {}
    print(f"{'evidence':44}" + "".join(f"{cause + ' ' + level:>16}" for cause, level in CAUSES.items()))
    for variable, level in [("", ""), ("starts", "no"), ("lights", "bright"), ("cranks", "no")]:
        if variable:
            seen[variable] = level
        model = poise.read(NETWORK, evidence=seen)
        answer = model.marginals()
        assert answer.method == "exact"
        row = ", ".join(f"{name} {value}" for name, value in seen.items()) or "nothing seen"
        print(f"{row:44}" + "".join(f"{answer[cause][1]:16.4f}" for cause in CAUSES))

    # Networks too large for exact inference are sampled, with standard errors; here both can be had.
    model = poise.read(NETWORK, evidence=seen)
    exact, sampled = model.marginals("exact"), model.marginals("sample", seconds=1.0, seed=1)
    print()
    print(sampled)
    error = max(abs(sampled[cause][1] - exact[cause][1]) for cause in CAUSES)
    print(f"largest error of the sampled causes: {error:.5f}")


if __name__ == "__main__":
    main()
