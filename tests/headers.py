#!/usr/bin/env python3
"""Compiles every installed header by itself, and checks that the public ones are those listed here, no more and no less.

usage: headers.py COMPILER INCLUDE_FOLDER
"""
import concurrent.futures
import pathlib
import subprocess
import sys

# The public API. A header that is added or removed changes what users include: say so in CHANGELOG.md.
PUBLIC = """
collective devices diagnose image log_partition marginals mmd model network optimize plot poise report run sampler selection session
states stepper trace types
""".split()
# Headers of the project that poise.hpp may pull in, itself included.
MOST_PULLED_IN = 30


def compile_alone(compiler: str, folder: pathlib.Path, header: str, *options: str) -> subprocess.CompletedProcess:
    command = [compiler, "-std=c++20", "-x", "c++", *(options or ["-fsyntax-only"]), "-Wall", "-Wextra", "-Wno-psabi",
               f"-I{folder}", '-DPOISE_VERSION="0"', "-"]
    return subprocess.run(command, input=f"#include <{header}>\n", capture_output=True, text=True)


def main() -> int:
    compiler, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    headers = sorted(str(p.relative_to(folder)) for p in folder.rglob("*.hpp"))
    problems = []
    public = {pathlib.Path(h).stem for h in headers if pathlib.Path(h).parent == pathlib.Path("poise")}
    for name in sorted(public ^ set(PUBLIC)):
        problems.append(f"poise/{name}.hpp: {'not on the list of public headers' if name in public else 'missing'}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for header, done in zip(headers, pool.map(lambda h: compile_alone(compiler, folder, h), headers)):
            if done.returncode != 0:
                problems.append(f"{header} does not compile by itself:\n{done.stderr[:2000]}")
    listing = compile_alone(compiler, folder, "poise/poise.hpp", "-M").stdout.replace("\\\n", " ").split()
    pulled = [word for word in listing if word.startswith(str(folder))]
    if len(pulled) > MOST_PULLED_IN:
        problems.append(f"poise/poise.hpp pulls in {len(pulled)} headers of the project, more than {MOST_PULLED_IN}")
    print("\n".join(problems) or f"{len(headers)} headers compile by themselves; poise.hpp pulls in {len(pulled)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
