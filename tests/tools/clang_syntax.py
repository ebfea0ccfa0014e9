"""clang takes the library and the program, which are compiled by another compiler: clang_syntax.py BUILD CLANG.

BUILD is a configured folder. Every file in it is checked by itself, and nothing is written.
"""

import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys


def check(clang, entry):
    """What clang says of a file; nothing where it takes it."""
    words = shlex.split(re.sub(r" -o \S+ -c ", " ", entry["command"]))
    first = next(i for i, word in enumerate(words) if word.startswith("-"))  # the compiler, and what it is started by
    command = [clang, "-fsyntax-only", "-w", *words[first:]]
    return subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True).stderr


def main(build, clang):
    entries = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    # The rooms of the library, the program and the studies, each in files that are compiled together.
    entries = [entry for entry in entries if re.search(r" -o CMakeFiles/poise_\w+\.dir/.* -c .*\.c(pp|xx)$", entry["command"])]
    if not entries:
        sys.exit(f"{build} has no commands that compile the library")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        words = [said for said in pool.map(lambda entry: check(clang, entry), entries) if said]
    print("\n".join(words))
    print(f"{len(entries)} files, {len(words)} with errors")
    sys.exit(1 if words else 0)


main(*sys.argv[1:])
