"""The examples run, and do what they say."""

import os
import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def run(folder, name, *arguments):
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *arguments], cwd=folder, env=os.environ, timeout=300,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_segmentation(tmp_path):
    said = run(tmp_path, "segmentation.py", "--side", "48", "--draws", "200")
    before, after = (float(part) for part in re.search(r"wrong pixels: ([\d.]+)% .* ([\d.]+)% by the mean", said).groups())
    assert after < before / 4
    assert (tmp_path / "segmentation.png").stat().st_size > 5000


def test_diagnosis(tmp_path):
    said = run(tmp_path, "diagnosis.py")
    rows = [line for line in said.splitlines() if line.startswith(("nothing", "starts no"))]
    starter = [float(line.split()[-1]) for line in rows]
    assert starter == sorted(starter) and starter[0] < 0.02 and starter[-1] > 0.6
    assert float(re.search(r"largest error of the sampled causes: ([\d.]+)", said)[1]) < 0.01


def test_energy_model(tmp_path):
    said = run(tmp_path, "energy_model.py", "--updates", "120", "--chains", "32")
    order = [float(value) for value in re.findall(r"order of samples ([\d.]+)", said)]
    assert order[-1] > 0.4 > order[0]
    assert (tmp_path / "energy_model.png").stat().st_size > 5000


def test_mixing(tmp_path):
    said = run(tmp_path, "mixing.py", "--seconds", "2")
    last = {label: float(error) for label, error in re.findall(r"^(.*?)  +2\.00 s .*error ([\d.]+)", said, re.MULTILINE)}
    assert last["collapsed and tempered"] < 0.01 < last["Gibbs"]
    assert re.search(r"^Gibbs +2\.00 s .* warns$", said, re.MULTILINE)
    assert (tmp_path / "mixing.png").stat().st_size > 5000
