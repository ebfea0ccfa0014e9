"""Models from arrays, and tables from runs."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

import poise
from conftest import required


def energies(Q, offset=0.0):
    n = len(Q)
    states = np.array(list(itertools.product([0, 1], repeat=n)))
    return states, np.einsum("si,ij,sj->s", states, Q, states) + offset


@pytest.fixture
def Q():
    return np.random.default_rng(3).normal(size=(5, 5))


def test_a_qubo_is_the_same_from_a_dictionary_an_array_and_a_sparse_matrix(Q):
    states, energy = energies(Q, 2.5)
    exact = math.log(np.exp(-0.7 * energy).sum())
    sparse = required("scipy.sparse").csr_matrix(Q)
    given = [Q, {(i, j): Q[i, j] for i in range(5) for j in range(5)}, sparse]
    for one in given:
        model = poise.qubo(one, beta=0.7, offset=2.5)
        assert poise.logz(model).log_partition == pytest.approx(exact, abs=1e-9)
        best = poise.optimize(model)
        assert best.objective == pytest.approx(energy.min(), abs=1e-9)
        assert best.state.tolist() == states[energy.argmin()].tolist()
        fit = poise.sample(model, "gibbs", draws=50, chains=2, progress=False)
        flat = fit.draws.reshape(-1, 5)
        assert np.allclose(fit["energy"].ravel(), np.einsum("si,ij,sj->s", flat, Q, flat) + 2.5)
        assert np.allclose(fit.log_prob, -0.7 * fit["energy"])
    assert poise.logz(poise.qubo(Q, T=1 / 0.7, offset=2.5)).log_partition == pytest.approx(exact, abs=1e-9)


def test_a_qubo_takes_what_dimod_gives():
    """A model of dimod, and what its to_qubo() and to_ising() give."""
    h, J = {(0, 1): -1.0, (1, 0): 2.0, (2, 2): 0.25}, {((0, 1), (1, 0)): 1.0, ((1, 0), (2, 2)): -0.5}
    states = np.array(list(itertools.product([-1, 1], repeat=3)))
    energy = states @ np.array([-1.0, 2.0, 0.25]) + states[:, 0] * states[:, 1] - 0.5 * states[:, 1] * states[:, 2] + 3
    spins = SimpleNamespace(linear=h, quadratic=J, offset=3.0, vartype=SimpleNamespace(name="SPIN"))
    given = [poise.qubo(spins), poise.qubo(J, 3.0, h=h, vartype="SPIN"), poise.qubo(J, offset=3, h=h, vartype=spins.vartype)]
    for model in given:
        best = poise.optimize(model)
        assert best.objective == energy.min() == -1.75
        assert dict(zip(h, best.state.tolist(), strict=True)) == {(0, 1): 1, (1, 0): -1, (2, 2): -1}
        assert model.names == ["(0, 1)", "(1, 0)", "(2, 2)"]
        assert poise.logz(model).log_partition == pytest.approx(math.log(np.exp(-energy).sum()), abs=1e-9)
    with pytest.raises(ValueError, match="all or none to be tuples"):
        poise.qubo({**h, **J}, vartype="SPIN")
    # Numbers of a model of dimod need not begin with 0 nor be all there.
    binary = SimpleNamespace(linear={5: -1.0, 2: 1.0}, quadratic={(5, 2): 0.5}, offset=0.0, vartype="BINARY")
    model = poise.qubo(binary)
    assert model.names == ["5", "2"]
    assert poise.optimize(model).state.tolist() == [1, 0]
    assert poise.optimize(poise.qubo([[0, 2.0], [0, 0]], h=[-1, 0.5])).objective == -1.0
    assert poise.optimize(poise.qubo({(0, 1): 1.0}, h=[1, 0, -2.0])).state.tolist() == [0, 0, 1]


def test_names_stay(Q):
    names = ["a", "b", "c", "d", "e"]
    model = poise.qubo({(names[i], names[j]): Q[i, j] for i in range(5) for j in range(5)})
    assert model.names == names
    assert poise.optimize(model, fix={"c": 1}).state[2] == 1
    required("pandas")
    frame = poise.sample(model, draws=10, chains=2, progress=False).to_pandas()
    assert list(frame.columns) == ["chain", "draw", "log_prob", *names]
    assert len(frame) == 20


def test_cuts_of_edges_arrays_and_graphs():
    edges = [(0, 1, 2.0), (1, 2, 1.0), (2, 3, 0.5), (3, 0, 1.5), (0, 2, 1.0)]
    weights = np.zeros((4, 4))
    for i, j, w in edges:
        weights[i, j] = weights[j, i] = w
    first, second, third = (np.array(column) for column in zip(*edges, strict=True))
    graph = required("networkx").Graph()
    graph.add_weighted_edges_from(edges)
    given = [edges, {(i, j): w for i, j, w in edges}, (first, second, third), weights, graph]
    assert {poise.optimize(poise.maxcut(one)).objective for one in given} == {5.0}
    assert poise.optimize(poise.maxcut([(0, 1), (1, 2)])).objective == 2.0


def test_ising_of_couplings_with_and_without_fields():
    J = {(0, 1): 0.5, (1, 2): -0.3}
    h = np.array([0.1, -0.2, 0.4])
    states = np.array(list(itertools.product([-1, 1], repeat=3)))

    def log_z(fields, beta):
        log_p = beta * (states @ fields + 0.5 * states[:, 0] * states[:, 1] - 0.3 * states[:, 1] * states[:, 2])
        return math.log(np.exp(log_p).sum())

    matrix = np.zeros((3, 3))
    matrix[0, 1], matrix[1, 2] = 0.5, -0.3
    for one in (J, matrix, matrix + matrix.T):
        assert poise.logz(poise.ising(J=one)).log_partition == pytest.approx(log_z(0 * h, 1.0), abs=1e-9)
        assert poise.logz(poise.ising(J=one, h=h, T=2)).log_partition == pytest.approx(log_z(h, 0.5), abs=1e-9)
    assert poise.ising(J=J, h={0: 0.1, 1: -0.2, 2: 0.4}).variables == 3
    assert poise.ising(J=J, h=0.5).labels == (-1, 1)


def test_lattices_of_three_dimensions():
    model = poise.ising(size=(2, 3, 4), coupling=0.2)
    assert model.shape == (2, 3, 4)
    fit = poise.sample(model, "gibbs", draws=20, chains=3, progress=False)
    assert fit.draws.shape == (3, 20, 2, 3, 4)
    assert fit.best["state"].shape == (2, 3, 4)
    field = np.random.default_rng(1).normal(size=(2, 2, 3))
    with_field = poise.ising(coupling=0.2, field=field, boundary="open")
    assert with_field.shape == (2, 2, 3)
    assert poise.potts(size=(2, 2, 2), levels=3, coupling=0.1).variables == 8
    a = poise.ising(size=(3, 3), coupling=0.5, beta=0.4)
    b = poise.ising(size=(3, 3), coupling=0.2)
    assert poise.logz(a).log_partition == pytest.approx(poise.logz(b).log_partition, abs=1e-9)


def test_the_best_draw_is_that_of_all(Q):
    for model, better in ((poise.ising(size=5, coupling=0.3), np.max), (poise.qubo(Q), np.min)):
        for keep in ("draws", "monitors"):
            fit = poise.sample(model, "gibbs", draws=40, keep=keep, progress=False)
            best = fit.best
            series = fit[best.get("name", "log_prob")]
            value = best["objective"] if "name" in best else best["log_prob"]
            assert value == better(series) == series[best["chain"], best["draw"]]
            if keep == "draws":
                assert (fit.draws[best["chain"], best["draw"]] == best["state"]).all()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: poise.qubo(np.zeros((2, 3))), "expected a square one"),
        (lambda: poise.qubo({(0, 1, 2): 1.0}), "expected a pair"),
        (lambda: poise.qubo({(0, 1): np.nan}), "not finite"),
        (lambda: poise.qubo(np.eye(2), beta=0.0), "above 0"),
        (lambda: poise.qubo(np.eye(2), beta=1.0, T=2.0), "expected one of them"),
        (lambda: poise.qubo({}), "no variable"),
        (lambda: poise.maxcut([(0, 0)]), "with itself"),
        (lambda: poise.maxcut([(0, 1), (1, 0)]), "add their weights up"),
        (lambda: poise.ising(J=[[0, 1], [2, 0]]), "neither symmetric nor triangular"),
        (lambda: poise.ising(J={(0, 0): 1.0}), "coupled with itself"),
        (lambda: poise.ising(J={(0, 1): 1.0}, h=[1.0]), "found an array of shape"),
        (lambda: poise.ising(J={(0, 1): 1.0}, size=3), "size: does not go with J"),
        (lambda: poise.ising(h=[1.0]), "does not go without J"),
        (lambda: poise.ising(size=(2,) * 9), "up to 8 sides"),
        (lambda: poise.ising(T=-1.0), "T: found -1"),
    ],
)
def test_what_is_wrong_is_said(make, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()
