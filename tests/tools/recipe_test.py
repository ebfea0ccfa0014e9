"""The conda recipe is well formed, and says what pyproject.toml and CMakeLists.txt say: recipe_test.py."""

import pathlib
import re
import tomllib

import yaml

ROOT = pathlib.Path(__file__).parents[2]


def main():
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    version = re.search(r"project\(poise VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert recipe["schema_version"] == 1
    known = {"schema_version", "context", "package", "source", "build", "requirements", "tests", "about"}
    assert set(recipe) == known, set(recipe) ^ known
    assert recipe["context"] == {"name": project["project"]["name"], "version": version}, recipe["context"]
    assert recipe["package"] == {"name": "${{ name }}", "version": "${{ version }}"}
    assert set(recipe["requirements"]) <= {"build", "host", "run", "run_constraints", "run_exports", "ignore_run_exports"}
    for wanted in project["project"]["dependencies"]:
        assert wanted.replace(">=", " >=") in recipe["requirements"]["run"], wanted
    for wanted in project["build-system"]["requires"]:
        assert wanted.replace(">=", " >=") in recipe["requirements"]["host"], wanted
    assert recipe["build"]["number"] == 0 and recipe["build"]["script"]
    assert all(isinstance(test, dict) and set(test) <= {"python", "script"} for test in recipe["tests"])
    assert {"summary", "license", "license_file"} <= set(recipe["about"])


main()
