"""Log Z, queries, distances and training from Python."""

import math

import numpy as np
import pytest

import poise

GRASS = """network grass { }
variable Rain { type discrete [ 2 ] { yes, no }; }
variable Grass { type discrete [ 2 ] { wet, dry }; }
probability ( Rain ) { table 0.2, 0.8; }
probability ( Grass | Rain ) { (yes) 0.9, 0.1; (no) 0.3, 0.7; }
"""


@pytest.fixture
def grass(tmp_path):
    file = tmp_path / "grass.bif"
    file.write_text(GRASS)
    return file


def test_typed_evidence_and_queries(grass):
    answer = poise.read(grass, evidence="Grass=wet").marginals()
    assert answer.evidence_probability == pytest.approx(0.42)
    assert answer["Rain"] == pytest.approx([0.18 / 0.42, 0.24 / 0.42])
    joint = poise.read(grass).marginals(query=["Grass", "Rain"])
    assert joint.joint == pytest.approx(np.array([[0.18, 0.24], [0.02, 0.56]]))
    assert joint.joint_mcse is None
    assert joint.joint_table().rows[0] == "Grass = wet, Rain = yes"
    sampled = poise.read(grass).marginals("sample", seconds=0.3, query="Grass,Rain")
    assert np.all(np.abs(sampled.joint - joint.joint) < 6 * sampled.joint_mcse)
    with pytest.raises(ValueError, match="did you mean 'Grass'"):
        poise.read(grass, evidence="Gras=wet")
    assert poise.logz(poise.read(grass, evidence="Grass=wet")).evidence_probability == pytest.approx(0.42)


def test_info_and_logz():
    model = poise.ising(size=4, coupling=0.2)
    assert poise.info(model)["variables"] == 16
    rbm = poise.rbm(np.zeros((3, 6)))
    assert poise.info(rbm)["method"] == "sample"
    assert float(poise.logz(rbm, "exact")) == pytest.approx(9 * math.log(2), abs=1e-6)
    assert poise.logz(rbm, "ais", temperatures=100, chains=16).mcse is not None
    with pytest.raises(TypeError, match="no option 'temperatures'"):
        poise.logz(model, temperatures=3)


def test_mmd_tells_two_laws_apart():
    fits = [
        poise.sample(poise.ising(size=4, coupling=strength), "exact", seed=seed, draws=300, progress=False)
        for strength, seed in ((0.1, 1), (0.1, 2), (0.5, 3))
    ]
    assert poise.mmd(fits[0], fits[1])["p_value"] > 1e-3
    assert poise.mmd(fits[0], fits[2])["p_value"] < 0.01
    with pytest.raises(TypeError, match="expected a fit"):
        poise.mmd(fits[0], 3)


def test_training_from_an_array(tmp_path, program):
    X = (np.random.default_rng(0).random((200, 12)) < 0.3).astype(np.uint8)
    model = poise.train_rbm(X, hidden=5, epochs=2, seed=3, progress=False)
    np.save(tmp_path / "X.npy", X)
    program("train", "rbm", "--data", str(tmp_path / "X.npy"), "--hidden", "5", "--epochs", "2", "--seed", "3", "--out",
            str(tmp_path / "w.npz"), "--quiet")  # fmt: skip
    assert (np.load(tmp_path / "w.npz")["weights"] == model.weights).all()
    model.save(tmp_path / "own.safetensors")
    fits = [poise.sample(one, "rbm-gibbs", draws=20, progress=False) for one in (model, poise.rbm(tmp_path / "own.safetensors"))]
    assert (fits[0].draws == fits[1].draws).all()
    images = poise.train_rbm(X.reshape(200, 3, 4) * 255, hidden=2, binarise="sample", progress=False)
    assert images.shape == (3, 4)
    for wrong in (np.zeros(3), -X.astype(float), X * 1.5, [["a"]]):
        with pytest.raises((ValueError, TypeError), match="X: "):
            poise.train_rbm(wrong, progress=False)


def test_targets_may_be_energies():
    weights = np.array([0.5, -1.0, 2.0])
    by_energy = poise.target(energy=lambda x: -(x @ weights), variables=3, gradient=lambda x: np.broadcast_to(-weights, x.shape))
    by_log_prob = poise.target(lambda x: x @ weights, variables=3, gradient=lambda x: np.broadcast_to(weights, x.shape))
    fits = [poise.sample(one, "gwg", draws=50, progress=False) for one in (by_energy, by_log_prob)]
    assert (fits[0].draws == fits[1].draws).all()
    with pytest.raises(TypeError, match="one of log_prob and energy"):
        poise.target(variables=3)
