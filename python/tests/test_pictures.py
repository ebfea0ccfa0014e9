"""Pictures and pages of runs, comparisons and marginals: in notebooks and as files."""

import html
import xml.etree.ElementTree as ET

import poise

MODEL = poise.ising(size=6, coupling=0.3)


def test_pictures_are_svg(tmp_path):
    fit = poise.sample(MODEL, "lsb", draws=100, warmup=50, progress=False)
    comparison = poise.compare(MODEL, ["gibbs", "lb"], draws=50, progress=False)
    for shown in (fit, comparison, MODEL.marginals(progress=False)):
        picture = shown.plot()
        assert ET.fromstring(picture).tag.endswith("svg")
        assert picture._repr_svg_() == picture
        picture.save(tmp_path / "a.svg")
        assert (tmp_path / "a.svg").read_text() == picture
    assert "balancing" in fit.to_html() and "rank" in fit.plot()


def test_a_notebook_shows_the_page_in_a_frame():
    fit = poise.sample(MODEL, "gibbs", draws=50, progress=False)
    shown = fit._repr_html_()
    assert shown.startswith("<iframe") and html.escape("<!doctype html>") in shown
    assert "<svg" in MODEL.marginals(progress=False)._repr_html_()


def test_the_page_is_that_of_the_program(program, tmp_path):
    # Without a warning: remedies are keywords in Python and flags in the program.
    fit = poise.sample(poise.ising(size=6, coupling=0.1), "gibbs", draws=1000, progress=False)
    assert not fit.warnings
    fit.save(tmp_path / "run.zarr")
    fit.to_html(tmp_path / "python.html")
    program("report", str(tmp_path / "run.zarr"))
    assert (tmp_path / "run.html").read_text() == (tmp_path / "python.html").read_text()
    assert poise.load(tmp_path / "run.zarr").to_html() == fit.to_html()
