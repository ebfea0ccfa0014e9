#!/usr/bin/env python3
"""The best states that `poise optimize` finds beside dwave-samplers and OpenJij: same graphs, same seconds, one core.

    make bench-optimize GRAPHS=FOLDER [FULL=1]

FOLDER has max-cut files of the G-set (G11.txt, ...) and `best_known.tsv` with a name and a cut on each line, and perhaps
`optima_biqmac.tsv` with a file name and its optimum. Random graphs for independent sets are drawn here. Every
run has a limit of processor seconds, one thread and a seed of its own; the table shows the median of the objectives, how
many runs reached the best known value, and the median of the processor seconds that these took. `poise optimize` counts
its limit by the clock, so here it is interrupted when its processor time is used up. Without FULL=1 there are three
seeds and the short limits. Results go to build/bench-optimize.jsonl line by line, so a run that was stopped
continues; delete the file to begin anew.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import resource
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "peers-optimize"
PACKAGES = ["dwave-samplers==1.8.0", "openjij"]
PROGRAM = pathlib.Path(os.environ.get("POISE", ROOT / "build" / "release" / "poise"))
RESULTS = ROOT / "build" / "bench-optimize.jsonl"

# Limits in processor seconds by the name of the graph; the last ones with FULL=1 only.
SHORT = {"G11": 1, "G32": 1, "G43": 1, "G14": 10, "G22": 10, "G35": 10, "G70": 10, "G81": 10, "G55": 20}
LONG = {"G35": 60, "G55": 60, "G70": 60, "G81": 60}
SETS, SET_SECONDS, SET_LONG = 8, 1, 20


def enter_environment() -> None:
    """Runs this script again with the packages of the peers, on one core."""
    python = ENVIRONMENT / "bin" / "python"
    installed = ENVIRONMENT / "installed.txt"
    if not installed.exists() or installed.read_text().split() != PACKAGES:
        print(f"Preparing Python in {ENVIRONMENT.relative_to(ROOT)}", flush=True)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        installed.write_text("\n".join(PACKAGES))
    os.environ.update(POISE_BENCH="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.execv(python, [str(python), __file__, *sys.argv[1:]])


def read_cut(path: pathlib.Path) -> tuple[int, dict[tuple[int, int], float]]:
    lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    edges = {}
    for words in lines[1:]:
        weight = float(words[2]) if len(words) > 2 else 1.0
        edges[int(words[0]) - 1, int(words[1]) - 1] = weight
    return int(lines[0][0]), edges


def processor_seconds(process: int) -> float:
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def poise(model: str, seconds: float, seed: int, target: float | None) -> tuple[float, float]:
    """The objective, and the processor seconds that the program took, reading included."""
    words = [str(PROGRAM), "optimize", model, "--seconds", str(1000 * seconds), "--seed", str(seed), "--threads", "1",
             "--quiet", "--json", "-"]
    if target is not None:
        words += ["--target", str(target)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    # A shell's background jobs ignore SIGINT, and so would what they start.
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    run = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=heed)
    while True:
        try:
            output, _ = run.communicate(timeout=0.02)
            break
        except subprocess.TimeoutExpired:
            if processor_seconds(run.pid) >= seconds:
                run.send_signal(signal.SIGINT)
                output, _ = run.communicate()
                break
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return json.loads(output)["best"]["objective"], used


def peer(name: str, path: pathlib.Path, seconds: float, seed: int, target: float | None) -> tuple[float, float]:
    """The best of as many calls as fit into the time."""
    import dimod

    _, edges = read_cut(path)
    model = dimod.BinaryQuadraticModel({}, edges, 0.0, dimod.SPIN)  # its energy is the total weight less twice the cut
    total = sum(edges.values())
    if name == "tabu":
        from dwave.samplers import TabuSampler

        def call(k: int, left: float):
            return TabuSampler().sample(model, num_reads=1, timeout=int(1000 * left), seed=seed * 1000 + k)
    elif name == "openjij":
        import openjij

        def call(k: int, left: float):
            return openjij.SASampler().sample(model, num_reads=1, num_sweeps=1000, seed=seed * 1000 + k)
    else:
        from dwave.samplers import SimulatedAnnealingSampler

        def call(k: int, left: float):
            return SimulatedAnnealingSampler().sample(model, num_reads=1, num_sweeps=1000, seed=seed * 1000 + k)
    begun = time.process_time()
    best = float("-inf")
    for k in range(10**9):
        left = seconds - (time.process_time() - begun)
        if left < 0.001 or (target is not None and best >= target):
            break
        best = max(best, (total - call(k, left).first.energy) / 2)
    return best, time.process_time() - begun


def known_values(path: pathlib.Path, column: int) -> dict[str, float]:
    values = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split("\t") if "\t" in line else line.split()
        try:
            values[pathlib.Path(words[0]).name] = float(words[column])
        except (ValueError, IndexError):
            continue  # a title, a comment, or an instance whose optimum is not known
    return values


def random_graphs(folder: pathlib.Path) -> list[pathlib.Path]:
    """G(n, 0.15) with n from 700 to 800, as the benchmarks of independent sets have them."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = random.Random(1)
    paths = []
    for k in range(64):
        n = numbers.randint(700, 800)
        edges = [(i, j) for i in range(1, n + 1) for j in range(i + 1, n + 1) if numbers.random() < 0.15]
        paths.append(folder / f"set{k}.txt")
        paths[-1].write_text(f"p edge {n} {len(edges)}\n" + "".join(f"e {i} {j}\n" for i, j in edges))
    return paths


class Results:
    """What was measured, also by an earlier call."""

    def __init__(self) -> None:
        lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
        self.rows = [json.loads(line) for line in lines if line.endswith("}")]

    def measure(self, key: dict, work) -> dict:
        for row in self.rows:
            if all(row[name] == value for name, value in key.items()):
                return row
        objective, used = work()
        row = {**key, "objective": objective, "processor": used}
        self.rows.append(row)
        with RESULTS.open("a") as out:
            out.write(json.dumps(row) + "\n")
        return row


def show(problem: str, seconds: float, program: str, rows: list[dict], known: float | None) -> None:
    median = statistics.median(row["objective"] for row in rows)
    hits = [row for row in rows if known is not None and row["objective"] >= known]
    reached = f"{len(hits)} of {len(rows)}" if known is not None else "-"
    took = f"{statistics.median(row['processor'] for row in hits):.2f}" if hits else "-"
    shown = "-" if known is None else f"{known:g}"
    print(f"{problem:<14}{seconds:>6g} s  {program:<8}{median:>10g}{shown:>10}{reached:>10}{took:>10}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", type=pathlib.Path)
    arguments = parser.parse_args()
    full = os.environ.get("FULL") == "1"
    seeds = range(1, 11 if full else 4)
    results = Results()
    cuts = known_values(arguments.graphs / "best_known.tsv", 1)
    print(f"{'problem':<14}{'limit':>8}  {'program':<8}{'median':>10}{'known':>10}{'reached':>10}{'seconds':>10}")
    limits = [*SHORT.items(), *(LONG.items() if full else [])]
    for name, seconds in limits:
        path = arguments.graphs / f"{name}.txt"
        if not path.exists():
            continue
        known = cuts.get(name)
        for program in ["poise", "sa", "tabu", "openjij"]:
            def work(seed: int) -> tuple[float, float]:
                if program == "poise":
                    return poise(f"maxcut:file={path}", seconds, seed, known)
                return peer(program, path, seconds, seed, known)

            rows = [results.measure({"problem": name, "limit": seconds, "program": program, "seed": seed}, lambda: work(seed))
                    for seed in seeds]
            show(name, seconds, program, rows, known)
    optima = known_values(arguments.graphs / "optima_biqmac.tsv", 5)
    for name, known in sorted(optima.items()):
        path = arguments.graphs / name
        if path.exists():
            rows = [results.measure({"problem": name, "limit": 1, "program": "poise", "seed": seed},
                                    lambda: poise(f"maxcut:file={path}", 1, seed, known)) for seed in seeds]
            show(name, 1, "poise", rows, known)
    graphs = random_graphs(ROOT / "build" / "bench-sets")
    graphs = graphs if full else graphs[:SETS]
    means = {}
    for seconds in [SET_SECONDS, SET_LONG]:
        rows = [results.measure({"problem": path.name, "limit": seconds, "program": "poise", "seed": 1},
                                lambda: poise(f"mis:file={path}", seconds, 1, None)) for path in graphs]
        means[seconds] = statistics.mean(row["objective"] for row in rows)
        print(f"independent sets of {len(graphs)} graphs, {seconds:g} s each: mean {means[seconds]:.2f}", flush=True)


if __name__ == "__main__":
    if os.environ.get("POISE_BENCH") != "1":
        enter_environment()
    main()
