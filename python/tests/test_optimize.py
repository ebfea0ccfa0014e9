"""The best state of a model, from Python: against enumeration, against the program, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import required

import poise


def small_graph(seed: int = 0, variables: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    first, second = np.triu_indices(variables, 1)
    return first, second, random.integers(-3, 4, first.size).astype(float)


def test_small_models_are_proved_to_be_solved():
    first, second, coupling = small_graph()
    field = np.arange(12) - 5.5
    states = np.array(list(itertools.product([-1, 1], repeat=12)))
    values = states @ field + (states[:, first] * states[:, second]) @ coupling
    best = poise.optimize(poise.ising(edges=(first, second, coupling), field=field), seconds=1)
    assert best.optimal
    assert best.bound == best.objective == pytest.approx(values.max())
    assert best.state.tolist() == states[values.argmax()].tolist()
    assert best.history[-1][1] == best.objective
    assert "proved" in str(best) and "optimal" in repr(best)


def test_answers_are_those_of_the_program(program, tmp_path):
    random = np.random.default_rng(3)
    first, second = np.triu_indices(60, 1)
    kept = random.random(first.size) < 0.3
    lines = [f"{i + 1} {j + 1} 1" for i, j in zip(first[kept], second[kept], strict=True)]
    (tmp_path / "graph.mc").write_text(f"60 {len(lines)}\n" + "\n".join(lines) + "\n")
    model = poise.maxcut(tmp_path / "graph.mc")
    best = poise.optimize(model, sweeps=500, solutions=3, seed=5)
    json = tmp_path / "best.json"
    program("optimize", model.name, "--sweeps", "500", "--solutions", "3", "--seed", "5", "--json", str(json))
    import json as reader

    answer = reader.loads(json.read_text())
    assert answer["best"]["state"] == best.state.tolist()
    assert [row["objective"] for row in answer["solutions"]] == [solution.objective for solution in best.solutions]
    assert len({tuple(solution.state * solution.state[0]) for solution in best.solutions}) == len(best.solutions)


def test_fixed_variables_starts_and_targets():
    first, second, coupling = small_graph(1, 40)
    model = poise.ising(edges=(first, second, coupling), field=np.zeros(40))
    free = poise.optimize(model, sweeps=500)
    fixed = poise.optimize(model, sweeps=500, fix={3: -free.state[3], 4: free.state[4]})
    assert fixed.state[3] == -free.state[3] and fixed.state[4] == free.state[4]
    again = poise.optimize(model, sweeps=10**9, init=free.state, target=free.objective)
    assert again.objective == free.objective


def test_independent_sets_of_every_kind_of_graph(tmp_path):
    networkx = required("networkx")
    sparse = required("scipy.sparse")
    random = np.random.default_rng(1)
    matrix = np.triu(random.random((16, 16)) < 0.3, 1)
    first, second = np.nonzero(matrix)
    file = tmp_path / "graph.txt"
    file.write_text(f"p edge 16 {first.size}\n" + "".join(f"e {i + 1} {j + 1}\n" for i, j in zip(first, second, strict=True)))
    graph = networkx.Graph()
    graph.add_nodes_from(range(16))
    graph.add_edges_from(zip(first.tolist(), second.tolist(), strict=True))
    adjacent = matrix | matrix.T
    sizes = {False: 0, True: 0}
    for states in itertools.product([0, 1], repeat=16):
        inside = np.array(states, dtype=bool)
        count = inside.sum()
        edges = adjacent[np.ix_(inside, inside)].sum() / 2
        sizes[False] = max(sizes[False], count if edges == 0 else 0)
        sizes[True] = max(sizes[True], count if edges == count * (count - 1) / 2 else 0)
    for given in [(first, second), sparse.csr_array(matrix), sparse.csr_matrix(adjacent), graph, file]:
        vertices = {"vertices": 16} if isinstance(given, tuple) else {}
        for make, cliques in [(poise.mis, False), (poise.clique, True)]:
            best = poise.optimize(make(given, **vertices), sweeps=100)
            assert best.objective == best.state.sum() == sizes[cliques]


def test_small_user_targets_are_enumerated(quadratic):
    states = np.array(list(itertools.product([0, 1], repeat=6)))
    values = quadratic.log_prob(states)
    model = poise.target(quadratic.log_prob, variables=6)
    best = poise.optimize(model, sweeps=1, solutions=5)
    assert best.objective == pytest.approx(values.max())
    assert best.state.tolist() == states[values.argmax()].tolist()
    assert best.optimal and best.bound == best.objective
    assert [solution.objective for solution in best.solutions] == pytest.approx(sorted(values)[:-6:-1])
    fixed = poise.optimize(model, sweeps=1, fix={2: 1 - best.state[2]})
    assert fixed.objective == pytest.approx(values[states[:, 2] != best.state[2]].max())


def test_user_targets_of_any_scale():
    first, second, coupling = small_graph(2, 30)
    field = np.linspace(-1, 1, 30)
    known = poise.optimize(poise.ising(edges=(first, second, coupling), field=field), sweeps=3000)
    for scale in [1e-6, 1.0, 1e6]:

        def energy(x, scale=scale):
            s = 2.0 * x - 1.0
            return -scale * (s @ field + (s[:, first] * s[:, second]) @ coupling)

        model = poise.target(energy=lambda x, energy=energy: energy(x.reshape(len(x), 30)), shape=(5, 6))
        best = poise.optimize(model, sweeps=500, solutions=3, target=-known.objective * scale * (1 - 1e-12))
        assert best.objective == pytest.approx(-known.objective * scale)
        assert best.report["objective"] == "energy" and best.report["sense"] == "min"
        assert best.state.shape == (5, 6)
        assert (2 * best.state.ravel() - 1).tolist() == known.state.tolist()
        assert [value for _, value in best.history] == sorted((value for _, value in best.history), reverse=True)
        assert not best.optimal and best.bound is None
        assert best.solutions[0].objective <= best.solutions[1].objective
    fixed = poise.optimize(model, sweeps=50, fix={7: 1 - best.state[1, 1]}, init=best.state)
    assert fixed.state[1, 1] == 1 - best.state[1, 1]


def test_states_have_the_shape_of_the_model():
    assert poise.optimize(poise.ising(size=(2, 3), boundary="open"), sweeps=1).state.shape == (2, 3)


def test_what_is_wrong_is_said():
    first, second, coupling = small_graph()
    model = poise.ising(edges=(first, second, coupling), field=np.zeros(12))
    with pytest.raises(TypeError, match="model"):
        poise.optimize(3)
    with pytest.raises(TypeError, match="no option 'second'"):
        poise.optimize(model, second=3)
    with pytest.raises(ValueError, match="seconds"):
        poise.optimize(model, seconds=-1)
    with pytest.raises(ValueError, match="init"):
        poise.optimize(model, init=[1, -1])
    with pytest.raises(ValueError, match="fix: found 7"):
        poise.optimize(model, fix={0: 7})
    with pytest.raises(ValueError, match="fix: found the variable 12"):
        poise.optimize(model, fix={12: 1})
    with pytest.raises(ValueError, match="cuda"):
        poise.optimize(model, device="cuda")
    with pytest.raises(ValueError, match="itself"):
        poise.mis(([0, 1], [1, 1]))
    with pytest.raises(ValueError, match="vertices"):
        poise.clique(([0, 1], [1, 2]), vertices=2)
    with pytest.raises(TypeError, match="graph"):
        poise.mis(7)
