"""What a fit holds: arrays without copies, tables, text."""

import gc
import itertools
import warnings

import numpy as np
import pytest

import poise


@pytest.fixture(scope="module")
def fit():
    return poise.sample(poise.ising(size=6, coupling=0.2), draws=400, chains=3, seed=1, progress=False)


def test_draws_are_views(fit):
    first, second = fit.draws, fit.draws
    assert first.ctypes.data == second.ctypes.data
    assert not first.flags.writeable
    assert first.shape == (3, 400, 6, 6)
    assert set(np.unique(first)) == {-1, 1}


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (3, 3), (7, 9), (5, 13)])
def test_two_valued_draws_are_labels(size):
    labels = poise.sample(
        poise.ising(size=size, coupling=0.2), "gibbs", draws=9, chains=2, warmup=5, seed=1, progress=False
    ).draws
    assert labels.dtype == np.int8
    assert labels.shape == (2, 9, *size)
    assert labels.flags.c_contiguous
    assert set(np.unique(labels)) <= {-1, 1}
    with pytest.raises(ValueError, match="read-only"):
        labels[0, 0, 0, 0] = 1


def test_draws_outlive_the_fit():
    draws = poise.sample(poise.ising(size=4, coupling=0.2), draws=50, seed=3, progress=False).draws
    gc.collect()
    again = poise.sample(poise.ising(size=4, coupling=0.2), draws=50, seed=3, progress=False).draws
    np.testing.assert_array_equal(draws, again)


def test_monitors_belong_to_the_draws(fit):
    np.testing.assert_array_equal(fit["magnetization"], fit.draws.sum((2, 3)))
    x = fit.draws.astype(float)
    bonds = x * np.roll(x, 1, axis=2) + x * np.roll(x, 1, axis=3)
    np.testing.assert_allclose(fit.log_prob, 0.2 * bonds.sum((2, 3)), atol=1e-9)


def test_tables(fit):
    table = fit.summary()
    assert table.rows == ["log_prob", "magnetization", "hamming"]
    assert table["mean"][1] == pytest.approx(fit["magnetization"].mean())
    frame = table.to_pandas()
    assert frame.loc["log_prob", "r_hat"] == table["r_hat"][0]
    variables = fit.variables().to_pandas()
    assert len(variables) == 36
    np.testing.assert_allclose(variables["mean"], fit.draws.mean((0, 1)).ravel(), atol=1e-12)
    assert "log_prob" in str(table)


def test_text(fit):
    assert "ising:size=6" in str(fit)
    assert "magnetization" in str(fit)
    assert repr(fit) == "<poise fit of ising:size=6,coupling=0.2 by gibbs, chosen by auto: 3 chains of 400 draws>"
    assert fit._repr_html_().startswith("<iframe")


def test_empirical_marginals_count_every_step(fit):
    assert fit.empirical_marginals.shape == (36,)
    np.testing.assert_allclose(2 * fit.empirical_marginals - 1, fit.draws.mean((0, 1)).ravel(), atol=0.25)
    assert fit.warmup_log_prob.shape[1] == 2


def test_warnings_are_issued():
    with pytest.warns(poise.RHatWarning, match="R-hat"):
        fit = poise.sample(poise.ising(size=16, coupling=0.35), "gibbs", draws=30, warmup=5, progress=False)
    assert fit.warnings
    for warning, one in zip(fit.warnings, fit.report["warnings"], strict=True):
        assert isinstance(warning, poise.PoiseWarning)
        assert (warning.code, str(warning)) == (one["code"], one["message"])
    assert any(type(warning) is poise.RHatWarning and warning.code == "rhat" for warning in fit.warnings)
    # What to type next is a keyword argument here.
    assert str(fit.warnings[0]).endswith('; try sampler="wolff"')
    assert 'try sampler="wolff"' in " ".join(str(fit).split())


def test_warnings_have_categories():
    with pytest.warns(poise.ShortWarning, match="; try draws=1000"):
        poise.sample(poise.ising(size=4, coupling=0.2), "gibbs", draws=5, progress=False)
    with pytest.warns(poise.OneChainWarning, match="; try chains=4"):
        poise.sample(poise.ising(size=4, coupling=0.2), "gibbs", chains=1, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", poise.PoiseWarning)
        poise.sample(poise.potts(size=2, levels=3, coupling=0.3), "exact", draws=5, chains=1, progress=False)


def test_compare():
    table = poise.compare(poise.ising(size=6, coupling=0.3), ["lb:g=sqrt", "gwg", "lsb"], draws=300, progress=False)
    assert len(table) == 3
    frame = table.to_pandas()
    assert list(frame.index) == ["lb:g=sqrt", "gwg", "lsb"]
    assert (frame["ess_per_second"] > 0).all()
    assert "lb:g=sqrt" in str(table)
    assert table.report["results"][0]["sampler"] == "lb:g=sqrt"


def test_progress_is_told(capsys):
    poise.sample(poise.ising(size=16, coupling=0.3), draws=300, progress=True)
    shown = capsys.readouterr().err
    assert "sample" in shown and "300/300" in shown
    poise.sample(poise.ising(size=4, coupling=0.3), draws=20, progress=False)
    assert capsys.readouterr().err == ""


def test_network_names_and_marginals(tmp_path):
    bif = tmp_path / "rain.bif"
    bif.write_text(
        """network rain {}
variable rain { type discrete [2] { yes, no }; }
variable wet { type discrete [2] { yes, no }; }
probability (rain) { table 0.2, 0.8; }
probability (wet | rain) { (yes) 0.9, 0.1; (no) 0.1, 0.9; }
"""
    )
    answer = poise.read(bif, evidence={"wet": "yes"}).marginals()
    assert answer["rain"] == pytest.approx([0.18 / 0.26, 0.08 / 0.26])
    assert answer.method == "exact" and not answer.warnings
    frame = answer.to_pandas()
    assert list(frame["level"]) == ["yes", "no", "yes", "no"]
    answer.save(tmp_path / "rain.MAR")
    assert (tmp_path / "rain.MAR").read_text().startswith("MAR")
    by_number = poise.read(bif, evidence={1: 0}).marginals()
    np.testing.assert_array_equal(by_number[0], answer[0])
    sampled = poise.read(bif, evidence={"wet": "yes"}).marginals("sample", seconds=0.3, progress=False)
    assert sampled.method == "sample"
    assert abs(sampled["rain"][0] - 0.18 / 0.26) < 6 * sampled.mcse[0][0] + 1e-6
    fit = poise.sample(poise.read(bif), draws=100, progress=False)
    assert fit.draws.shape == (4, 100, 2)
    assert "rain" in str(fit)


def test_machines(tmp_path):
    weights = np.random.default_rng(0).normal(size=(5, 12)).astype(np.float32)
    model = poise.rbm(weights, shape=(3, 4))
    fit = poise.sample(model, "gwg", draws=50, warmup=20, progress=False)
    assert fit.draws.shape == (4, 50, 3, 4)
    np.savez(tmp_path / "w.npz", weights=weights, visible_bias=np.zeros(12, np.float32),
             hidden_bias=np.zeros(5, np.float32))
    again = poise.sample(poise.rbm(tmp_path / "w.npz"), "gwg", draws=50, warmup=20, progress=False)
    np.testing.assert_array_equal(again.draws.reshape(fit.draws.shape), fit.draws)


def test_spins_from_arrays():
    field = np.random.default_rng(0).normal(size=(4, 5))
    lattice = poise.sample(poise.ising(coupling=0.3, field=field), "gibbs", draws=50, progress=False)
    assert lattice.draws.shape == (4, 50, 4, 5)
    x = lattice.draws.astype(float)
    bonds = (x * np.roll(x, 1, 2) + x * np.roll(x, 1, 3)).sum((2, 3))
    np.testing.assert_allclose(lattice.log_prob, 0.3 * bonds + (x * field).sum((2, 3)), atol=1e-9)
    edges = (np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([0.5, -0.25, 1.0]))
    graph = poise.sample(poise.ising(edges=edges, field=[0.1, 0.2, 0.3]), draws=50, progress=False)
    x = graph.draws.astype(float)
    expected = x @ [0.1, 0.2, 0.3] + 0.5 * x[..., 0] * x[..., 1] - 0.25 * x[..., 1] * x[..., 2] + x[..., 2] * x[..., 0]
    np.testing.assert_allclose(graph.log_prob, expected, atol=1e-9)


def test_the_choice_of_a_sampler_is_visible(tmp_path):
    model = poise.potts(size=6, levels=3, coupling=0.4)
    fit = poise.sample(model, draws=200, seed=2, out=tmp_path / "run.zarr", progress=False)
    choice = fit.choice
    assert choice is not None
    assert choice["sampler"] == fit.sampler == fit.report["sampler"]
    assert choice["reason"]
    assert "chosen by auto" in repr(fit) and "chosen by auto" in str(fit)
    assert poise.load(tmp_path / "run.zarr").choice == choice
    named = poise.sample(model, fit.sampler, draws=200, seed=2, progress=False)
    assert named.choice is None
    assert (named.draws == fit.draws).all()


def test_targets_of_ones_own_are_chosen_for_by_what_they_have():
    couplings = np.random.default_rng(0).normal(size=(20, 20)) / 20
    couplings += couplings.T

    def log_prob(x):
        return 0.5 * np.einsum("ci,ij,cj->c", x, couplings, x)

    def log_ratios(x):
        change = 1.0 - 2.0 * x
        return change * (x @ couplings) + 0.5 * np.diag(couplings)

    def sampler_of(variables=20, **more):
        model = poise.target(log_prob, variables=variables, **more)
        return poise.sample(model, draws=50, progress=False).choice

    assert sampler_of()["sampler"] == "gibbs"
    assert sampler_of(gradient=lambda x: x @ couplings)["sampler"] == "dlsb"
    assert sampler_of(log_ratios=log_ratios)["sampler"] in ("lb", "dlsb")
    small = poise.target(lambda x: x @ np.arange(10.0), variables=10)
    assert poise.sample(small, draws=50, progress=False).sampler == "exact"


def test_marginals_of_models_from_arrays():
    """A lattice and a graph that are given as numbers are networks like those from specs."""
    field = np.array([[0.3, -0.2, 0.1], [0.0, 0.5, -0.4]])
    lattice = poise.ising(coupling=0.4, field=field, boundary="open")
    first, second = [0, 1, 3, 4, 0, 1, 2], [1, 2, 4, 5, 3, 4, 5]
    graph = poise.ising(edges=(first, second, np.full(7, 0.4)), field=field.ravel())
    states = np.array(list(itertools.product([-1, 1], repeat=6)))
    log_prob = states @ field.ravel() + 0.4 * sum(states[:, i] * states[:, j] for i, j in zip(first, second))
    weights = np.exp(log_prob)
    for model in (lattice, graph):
        answer = model.marginals()
        assert answer.method == "exact"
        up = [probabilities[1] for probabilities in answer]
        np.testing.assert_allclose(up, weights @ (states > 0) / weights.sum(), atol=1e-12)
        np.testing.assert_allclose(answer.log10_partition, np.log10(weights.sum()), atol=1e-12)


def test_log_z_and_log_prob_of_objectives_have_their_constant(tmp_path):
    (tmp_path / "edge.mc").write_text("2 1\n1 2 1\n")
    (tmp_path / "f.coo").write_text("0 0 -1\n0 1 2\n1 1 -0.5\n")
    cut = poise.maxcut(tmp_path / "edge.mc")
    energies = np.array([0.0, -1.0, -0.5, 0.5])
    for model, truth, name, scale in [
        (cut, np.log(2 + 2 * np.e), "cut", 1.0),
        (poise.qubo(tmp_path / "f.coo", beta=2), np.log(np.exp(-2 * energies).sum()), "energy", -2.0),
        (poise.qubo(tmp_path / "f.coo", sense="max"), np.log(np.exp(energies).sum()), "energy", 1.0),
    ]:
        np.testing.assert_allclose(model.marginals().log10_partition * np.log(10), truth, atol=1e-12)
        fit = poise.sample(model, "temper", draws=500, progress=False)
        np.testing.assert_allclose(fit.log_prob, scale * fit.monitors[name], atol=1e-12)
        assert abs(fit.tempering["log_partition"] - truth) <= 5 * fit.tempering["log_partition_error"] + 1e-9
