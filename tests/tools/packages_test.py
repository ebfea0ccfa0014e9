"""Where something is missing, CMake says in one message which Debian packages have it, and installs nothing."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]


class MissingPackages(unittest.TestCase):
    def configure(self, *words, **environment):
        with tempfile.TemporaryDirectory() as folder:
            command = ["cmake", "-S", str(ROOT), "-B", folder, "-G", "Ninja", "-DPOISE_CUDA=OFF", *words]
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_libraries_are_named_at_once(self):
        absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("fmt", "PNG", "Eigen3")]
        self.assertIn("\n    apt-get install libfmt-dev libeigen3-dev libpng-dev\n", self.configure(*absent))

    def test_tools_are_named_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("cmake", "bash", "env", "grep", "dpkg-query", "uname"):
                if found := shutil.which(tool):
                    os.symlink(found, os.path.join(folder, tool))
            message = self.configure(PATH=folder, CXX="")
        self.assertIn("Not found: a C++ compiler and Ninja.", message)
        self.assertIn("\n    apt-get install g++", message)


unittest.main()
