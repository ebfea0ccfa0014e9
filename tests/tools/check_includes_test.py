"""Forbidden includes of every kind make tools/check-includes fail, in trees made for it."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "check-includes"
# One header for each kind of room that the cases below name.
HEADERS = ["include/poise/types.hpp", "include/poise/run.hpp", "src/base/clock.hpp", "src/run/warmup.hpp",
           "src/engines/cuda/walk.cuh", "app/output.hpp", "studies/document.hpp"]


def check(files: dict[str, str]) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for path, text in ({header: "" for header in HEADERS} | files).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        done = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True)
        return done.returncode, done.stdout


class CheckIncludes(unittest.TestCase):
    def assert_fails(self, path: str, line: str, why: str):
        code, said = check({path: f"// a head\n{line}\n"})
        self.assertEqual(code, 1, said)
        self.assertIn(f"{path}:2: {why}", said)
        self.assertEqual(said.count("\n"), 1, said)

    def test_includes_of_rooms_before_pass(self):
        code, said = check({"src/run/run.cpp": '#include "base/clock.hpp"\n#include <poise/types.hpp>\n#include <vector>\n',
                            "app/main.cpp": '#include "output.hpp"\n#include "run/warmup.hpp"\n',
                            "studies/ising.cpp": '#include "studies/document.hpp"\n#include "run/warmup.hpp"\n',
                            "python/src/runs.cpp": '#include "run/warmup.hpp"\n'})
        self.assertEqual((code, said), (0, "includes point one way\n"))

    def test_quoted_includes_of_later_rooms_fail(self):
        self.assert_fails("src/base/file.cpp", '#include "run/warmup.hpp"', "room 'base' must not see 'run'")

    def test_public_headers_of_later_rooms_fail(self):
        self.assert_fails("src/models/ising.cpp", "#include <poise/run.hpp>", "room 'models' must not see 'run'")

    def test_includes_relative_to_the_file_are_seen(self):
        self.assert_fails("src/base/file.cpp", '#include "../run/warmup.hpp"', "room 'base' must not see 'run'")

    def test_device_code_is_checked(self):
        for suffix in ("cu", "cuh"):
            self.assert_fails(f"src/engines/cuda/kernel.{suffix}", '#include "run/warmup.hpp"',
                              "room 'engines' must not see 'run'")
        self.assert_fails("src/kernels/walk.hpp", '#include "engines/cuda/walk.cuh"',
                          "room 'kernels' must not see 'engines'")

    def test_the_program_is_not_seen_from_python_nor_from_the_library(self):
        self.assert_fails("python/src/runs.cpp", '#include "app/output.hpp"', "'python' must not see 'app'")
        self.assert_fails("src/report/text.cpp", '#include "app/output.hpp"', "'report' must not see 'app'")

    def test_the_library_does_not_see_studies(self):
        self.assert_fails("src/inference/marginals.cpp", '#include "studies/document.hpp"',
                          "room 'inference' must not see 'studies'")

    def test_installed_headers_include_only_installed_ones(self):
        self.assert_fails("include/poise/model.hpp", '#include "base/clock.hpp"',
                          "an installed header must not include src/base/clock.hpp")

    def test_headers_that_are_not_there_fail(self):
        self.assert_fails("python/src/runs.cpp", '#include "run/gone.hpp"', "there is no run/gone.hpp")

    def test_files_in_no_room_fail(self):
        code, said = check({"src/attic/old.cpp": ""})
        self.assertEqual((code, said), (1, "src/attic/old.cpp: in no room\n"))


if __name__ == "__main__":
    unittest.main()
