#!/usr/bin/env python3
"""The most probable states of network files by `poise optimize` and by toulbar2, in a table.

    bench/mpe.py networks/                     # all .uai and .bif files of a folder, with name.evid as evidence
    bench/mpe.py --make hard/ && bench/mpe.py hard/ --seconds 30

Both get one thread and the same limit, which toulbar2 counts in processor seconds and Poise by the clock: on a busy
machine Poise gets less. Times are processor seconds, reading included, of the better setting for toulbar2. Every state is evaluated here, from
the file, so the columns compare states and not what programs say of them. BIF files are written as UAI files for
toulbar2 by this script.
"""

import argparse
import itertools
import json
import math
import random
import re
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path


def words_of(path):
    lines = path.read_text().splitlines()
    kept = (line.split("#")[0].split() for line in lines)
    return [word for words in kept if words and words[0] != "c" for word in words]


def read_uai(path):
    """Cardinalities, and a list of (scope, table)."""
    words = iter(words_of(path))
    next(words)
    levels = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    tables = [[float(next(words)) for _ in range(int(next(words)))] for _ in scopes]
    return levels, list(zip(scopes, tables))


def read_bif(path):
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", path.read_text(), flags=re.S)
    names, labels, factors = [], {}, []
    for name, body in re.findall(r"\bvariable\s+\"?(\w+)\"?\s*\{(.*?)\}\s*;?\s*\}", text, flags=re.S):
        names.append(name)
        labels[name] = [word.strip(' "') for word in body.split("{")[1].split(",")]
    number = {name: k for k, name in enumerate(names)}
    for head, body in re.findall(r"\bprobability\s*\((.*?)\)\s*\{(.*?)\}", text, flags=re.S):
        scope = [word for word in re.split(r"[\s|,\"]+", head) if word]
        child, parents = scope[0], scope[1:]
        rows = {}
        for key, numbers in re.findall(r"\(([^)]*)\)\s*([^;]*);", body):
            rows[tuple(word.strip(' "') for word in key.split(","))] = [float(w) for w in re.split(r"[\s,]+", numbers.strip())]
        table = re.search(r"\btable\s+([^;]*);", body)
        if table:
            flat = [float(w) for w in re.split(r"[\s,]+", table.group(1).strip())]
            size = len(flat) // len(labels[child])
            rows = {
                key: [flat[level * size + at] for level in range(len(labels[child]))]
                for at, key in enumerate(itertools.product(*(labels[p] for p in parents)))
            }
        order = itertools.product(*(labels[p] for p in parents))
        factors.append(([number[p] for p in parents] + [number[child]], [value for key in order for value in rows[key]]))
    return [len(labels[name]) for name in names], factors


def write_uai(path, levels, factors):
    lines = ["MARKOV", str(len(levels)), " ".join(map(str, levels)), str(len(factors))]
    lines += [" ".join(map(str, [len(scope), *scope])) for scope, _ in factors]
    lines += [f"\n{len(table)}\n" + " ".join(repr(value) for value in table) for _, table in factors]
    path.write_text("\n".join(lines) + "\n")


def log_value(levels, factors, state):
    total = 0.0
    for scope, table in factors:
        place = 0
        for i in scope:
            place = place * levels[i] + state[i]
        if table[place] <= 0.0:
            return -math.inf
        total += math.log(table[place])
    return total


def processor_seconds(command, limit):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        output = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, output


def by_poise(options, path, evidence, folder):
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    command = [*options.poise.split(), str(path), "--seconds", str(options.seconds), "--threads", "1", "--json", str(answer)]
    if evidence:
        command += ["--evidence", str(evidence)]
    seconds, output = processor_seconds(command, 4 * options.seconds + 60)
    if not answer.exists():
        raise SystemExit(f"{' '.join(command)} wrote no answer:\n{output}")
    found = json.loads(answer.read_text())
    return found["best"]["state"], found["optimal"], found["bound"], seconds


def by_toulbar2(options, path, evidence, folder):
    """What each setting finds: by default best-first search, then with virtual arc consistency, then neighbourhood search."""
    for setting in options.toulbar2.split("|"):
        solution = folder / "solution"
        solution.unlink(missing_ok=True)
        command = ["toulbar2", str(path), *([str(evidence)] if evidence else []), f"-timer={math.ceil(options.seconds)}", f"-w={solution}"]
        seconds, output = processor_seconds([*command, *setting.split()], 2 * options.seconds + 30)
        proved = "Optimum:" in output
        lines = [line for line in solution.read_text().splitlines() if line.strip()] if solution.exists() else []
        state = [int(word) for word in lines[-1].split()] if lines else None
        yield state, proved, seconds, setting


def grid(rng, side, levels, spread):
    factors = []
    for i in range(side * side):
        factors.append(([i], [math.exp(rng.gauss(0, 0.5 * spread)) for _ in range(levels)]))
        for j in [i + 1] * (i % side + 1 < side) + [i + side] * (i + side < side * side):
            factors.append(([i, j], [math.exp(rng.gauss(0, spread)) for _ in range(levels * levels)]))
    return [levels] * (side * side), factors


def regular(rng, variables, levels, arity, degree, zeros):
    """Each variable in `degree` factors of `arity` variables."""
    while True:
        ends = [i for i in range(variables) for _ in range(degree)]
        rng.shuffle(ends)
        scopes = [ends[k : k + arity] for k in range(0, len(ends), arity)]
        if all(len(set(scope)) == arity for scope in scopes):
            break
        # A few repeated variables in a scope are common: they are exchanged with others by chance.
        for scope in scopes:
            while len(set(scope)) < arity:
                other = rng.choice(scopes)
                a, b = rng.randrange(arity), rng.randrange(arity)
                scope[a], other[b] = other[b], scope[a]
        if all(len(set(scope)) == arity for scope in scopes):
            break
    planted = [rng.randrange(levels) for _ in range(variables)]
    factors = []
    for scope in scopes:
        table = [0.0 if rng.random() < zeros else math.exp(rng.gauss(0, 1)) for _ in range(levels**arity)]
        place = 0
        for i in scope:
            place = place * levels + planted[i]
        table[place] = table[place] or math.exp(rng.gauss(0, 1))
        factors.append((scope, table))
    return [levels] * variables, factors


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {
        "grid60_2": lambda rng: grid(rng, 60, 2, 1.0),
        "grid60_4": lambda rng: grid(rng, 60, 4, 1.0),
        "grid40_10": lambda rng: grid(rng, 40, 10, 1.0),
        "regular600_2": lambda rng: regular(rng, 600, 2, 3, 3, 0.0),
        "regular300_4": lambda rng: regular(rng, 300, 4, 3, 3, 0.0),
        "regular600_3_zeros": lambda rng: regular(rng, 600, 3, 3, 3, 0.4),
        "regular400_2_arity4": lambda rng: regular(rng, 400, 2, 4, 3, 0.0),
        "regular500_3_pairs": lambda rng: regular(rng, 500, 3, 2, 4, 0.0),
    }
    for number, (name, kind) in enumerate(kinds.items()):
        write_uai(folder / f"{name}.uai", *kind(random.Random(number)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", type=Path, help="a folder of .uai and .bif files")
    parser.add_argument("--make", action="store_true", help="write networks that are too wide for exact inference there")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--only", default="", help="a part of the names")
    parser.add_argument("--poise", default="build/release/poise optimize")
    parser.add_argument("--toulbar2", default="| -A=-3 | -vns", help="settings to try, separated by |")
    options = parser.parse_args()
    if options.make:
        make(options.networks)
        return
    has_peer = shutil.which("toulbar2") is not None
    print(f"{'network':24} {'log p':>16} {'proved':>6} {'bound':>14} {'s':>7}   {'toulbar2':>16} {'proved':>6} {'s':>7}  setting")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for path in sorted([*options.networks.glob("*.uai"), *options.networks.glob("*.bif")]):
            if options.only not in path.name:
                continue
            levels, factors = read_uai(path) if path.suffix == ".uai" else read_bif(path)
            evidence = path.with_name(path.name + ".evid")
            evidence = evidence if evidence.exists() else None
            state, proved, bound, seconds = by_poise(options, path, evidence, folder)
            ours = log_value(levels, factors, state)
            row = f"{path.name[:24]:24} {ours:16.6f} {'yes' if proved else 'no':>6} {bound if bound is not None else math.inf:14.4f} {seconds:7.2f}"
            print(row, end="", flush=True)
            if has_peer:
                converted = folder / "network.uai"
                write_uai(converted, levels, factors)
                rows = []
                for state, proved, seconds, setting in by_toulbar2(options, converted, evidence, folder):
                    theirs = log_value(levels, factors, state) if state else -math.inf
                    rows.append((-round(theirs, 6), not proved, seconds, theirs, setting))
                _, unproved, seconds, theirs, setting = min(rows)
                print(f"   {theirs:16.6f} {'no' if unproved else 'yes':>6} {seconds:7.2f}  {setting.strip() or 'default'}", end="")
            print(flush=True)


if __name__ == "__main__":
    main()
