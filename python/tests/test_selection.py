"""Variable selection and fine-mapping against enumeration, and what users see of them."""

import itertools

import numpy as np
import pytest

import poise


def table(n=60, p=7, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) + 0.8 * rng.normal(size=(n, 1)) + 5.0
    return x, 0.6 * x[:, 1] - 0.5 * x[:, 4] + rng.normal(size=n)


def enumerated(x, y, inclusion, variance=0.2):
    """Inclusion probabilities by all models, columns standardised, residual variance integrated out."""
    n, p = x.shape
    x = (x - x.mean(0)) / x.std(0, ddof=1)
    y = y - y.mean()
    logs, sets = [], []
    for size in range(p + 1):
        for chosen in itertools.combinations(range(p), size):
            s = list(chosen)
            m = x[:, s].T @ x[:, s] + np.eye(size) / variance
            r = x[:, s].T @ y
            rest = y @ y - r @ np.linalg.solve(m, r)
            log = -0.5 * size * np.log(variance) - 0.5 * np.linalg.slogdet(m)[1] - 0.5 * (n - 1) * np.log(rest)
            logs.append(log + size * np.log(inclusion) + (p - size) * np.log1p(-inclusion))
            sets.append([k in s for k in range(p)])
    weights = np.exp(np.array(logs) - max(logs))
    return weights @ np.array(sets) / weights.sum()


def test_probabilities_are_those_of_enumeration():
    x, y = table()
    answer = poise.select(x, y, draws=2000, seed=2, progress=False)
    truth = enumerated(x, y, 1 / 7)
    assert np.all(np.abs(answer.pip - truth) < 5 * answer.pip_se + 1e-3)
    assert answer.sizes.sum() == pytest.approx(1)
    assert answer.models[0]["probability"] > 0


def test_other_samplers_agree():
    x, y = table()
    truth = enumerated(x, y, 1 / 7)
    for sampler in ("gibbs", "lb", "lsb", "temper"):
        answer = poise.select(x, y, sampler=sampler, draws=2000, progress=False)
        assert np.all(np.abs(answer.pip - truth) < 0.05), sampler
    with pytest.raises(ValueError, match="gradient"):
        poise.select(x, y, sampler="gwg", progress=False)
    with pytest.raises(ValueError, match="variable selection only"):
        poise.sample(poise.ising(size=4), "wtgs", progress=False)


def test_names_of_a_data_frame_are_kept():
    import pandas
    x, y = table()
    frame = pandas.DataFrame(x, columns=list("abcdefg"))
    answer = poise.select(frame, pandas.Series(y, name="height"), draws=200, progress=False)
    assert answer.names == list("abcdefg")
    assert answer.to_pandas().loc["b", "pip"] == answer.pip[1]
    assert answer.report["response"] == "height"
    assert np.allclose(answer.predict(frame[list("gfedcba")]), answer.predict(x))


def test_predictions_are_averages_over_models():
    x, y = table(400)
    answer = poise.select(x, y, draws=500, progress=False)
    best, *_ = np.linalg.lstsq(np.column_stack([x[:, [1, 4]], np.ones(400)]), y, rcond=None)
    assert answer.coef[1] == pytest.approx(best[0], abs=0.03)
    assert answer.intervals[1, 0] < best[0] < answer.intervals[1, 1]
    assert np.corrcoef(answer.predict(x), np.column_stack([x[:, [1, 4]], np.ones(400)]) @ best)[0, 1] > 0.99


def test_summary_statistics_are_the_same_problem():
    x, y = table(300)
    n = len(y)
    scaled = (x - x.mean(0)) / x.std(0, ddof=1)
    centred = y - y.mean()
    r = scaled.T @ scaled / (n - 1)
    b = scaled.T @ centred / (n - 1)
    residual = ((centred[:, None] - scaled * b) ** 2).sum(0) / (n - 2)
    z = b / np.sqrt(residual / (n - 1))
    truth = enumerated(x, y, 1 / 7)
    by_table = poise.select(x, y, draws=500, seed=4, progress=False)
    by_scores = poise.finemap(z, r, n, draws=500, seed=4, progress=False)
    by_products = poise.finemap(
        xtx=scaled.T @ scaled, xty=scaled.T @ centred, yty=centred @ centred, n=n, draws=500, seed=4, progress=False
    )
    for answer in (by_table, by_scores, by_products):
        assert np.allclose(answer.pip, truth, atol=0.02)


def test_credible_sets():
    r = 0.98 ** np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    answer = poise.finemap(9 * r[20], r, 20000, draws=1000, progress=False)
    assert len(answer.sets) == 1
    one = answer.sets[0]
    assert "x[20]" in one["variables"] and one["mass"] >= 0.95 and one["purity"] >= 0.5
    assert sum(one["share"]) == pytest.approx(1)


def test_flipped_alleles_are_named():
    rng = np.random.default_rng(3)
    r = 0.95 ** np.abs(np.subtract.outer(np.arange(50), np.arange(50)))
    z = 7 * r[25] + np.linalg.cholesky(r) @ rng.normal(size=50)
    z[22] = -z[22]
    with pytest.warns(poise.PoiseWarning, match=r"x\[22\]"):
        poise.finemap(z, r, 5000, draws=100, progress=False)


def test_one_seed_one_answer_for_any_threads():
    x, y = table()
    one = poise.select(x, y, draws=100, seed=3, threads=1, progress=False)
    two = poise.select(x, y, draws=100, seed=3, threads=2, progress=False)
    assert np.array_equal(one.pip, two.pip)
    assert one.models == two.models


def test_sparse_correlations_and_files(tmp_path):
    from scipy import sparse
    block = 0.9 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    r = np.kron(np.eye(3), block).astype(np.float32).astype(float)
    z = 7 * r[14]
    np.save(tmp_path / "r.npy", r)
    np.savetxt(tmp_path / "r.ld", r, fmt="%.9g")
    dense = poise.finemap(z, r, 5000, draws=200, progress=False)
    for other in (sparse.csr_matrix(r), tmp_path / "r.npy", tmp_path / "r.ld"):
        answer = poise.finemap(z, other, 5000, draws=200, progress=False)
        assert np.allclose(answer.pip, dense.pip, atol=0.02)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x, y: (np.where(np.arange(x.size).reshape(x.shape) == 9, np.nan, x), y), "row 2 of column"),
        (lambda x, y: (x, np.ones_like(y)), "response 'y' constant"),
        (lambda x, y: (x, y[:-1]), "expected 60, one for each row"),
        (lambda x, y: (x[:2], y[:2]), "found 2 rows"),
    ],
)
def test_bad_tables_are_a_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        poise.select(*change(*table()), progress=False)


def test_constant_and_double_columns_are_noted():
    x, y = table()
    x[:, 0] = 3.0
    x[:, 6] = 2.0 * x[:, 1] - 1.0
    answer = poise.select(x, y, draws=500, progress=False)
    assert answer.pip[0] == 0
    assert answer.pip[1] == pytest.approx(answer.pip[6], abs=0.1)
    assert any("constant" in note for note in answer.notes)
    assert any("perfectly correlated" in note for note in answer.notes)


def test_bad_summaries_are_a_sentence():
    r = np.eye(4)
    with pytest.raises(ValueError, match="expected 4, one for each"):
        poise.finemap(np.zeros(4), np.eye(5), 100, progress=False)
    with pytest.raises(ValueError, match="sample size"):
        poise.finemap(np.zeros(4), r, 1, progress=False)
    with pytest.raises(ValueError, match="symmetric"):
        poise.finemap(np.zeros(4), r + np.triu(np.full((4, 4), 0.3), 1), 100, progress=False)
    with pytest.raises(ValueError, match="on the diagonal"):
        poise.finemap(np.zeros(4), 0.5 * r, 100, progress=False)
    bad = np.array([[1.0, 0.6, -0.6], [0.6, 1.0, 0.6], [-0.6, 0.6, 1.0]])
    with pytest.warns(poise.PoiseWarning, match="not positive semidefinite"):
        poise.finemap(np.ones(3), bad, 100, draws=50, progress=False)


def test_pictures():
    x, y = table()
    answer = poise.select(x, y, draws=200, progress=False)
    picture = answer.plot()
    assert picture.startswith("<svg ") and "<desc>Inclusion probabilities of 7 variables" in picture
    assert ">position (Mb)<" in answer.plot(positions=2e6 + 1e5 * np.arange(7))
    with pytest.raises(ValueError, match="positions: found 2, expected 7"):
        answer.plot(positions=[1, 2])


def test_what_is_no_table_of_real_numbers():
    import pandas
    x, y = table()
    with pytest.raises(TypeError, match="X: found complex numbers"):
        poise.select(x * 1j, y, progress=False)
    answer = poise.select(pandas.DataFrame(x, columns=list("abcdefg")), y, draws=50, progress=False)
    with pytest.raises(ValueError, match="x: found no column 'a'"):
        answer.predict(pandas.DataFrame(x[:, 1:], columns=list("bcdefg")))


def test_sparse_correlations_are_symmetric():
    import scipy.sparse
    upper = scipy.sparse.csc_matrix([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="both of its triangles"):
        poise.finemap(np.array([5.0, 2.0, 0.0]), upper, 100, progress=False)


def test_files_of_other_tools(tmp_path):
    import gzip

    import scipy.sparse
    r = 0.9 ** abs(np.subtract.outer(np.arange(12), np.arange(12)))
    z = 8 * r[5]
    expected = poise.finemap(z, r, 5000, draws=100, progress=False)
    scipy.sparse.save_npz(tmp_path / "r.npz", scipy.sparse.csr_matrix(r))
    half = np.tril(r)
    np.fill_diagonal(half, 0.5)  # as PolyFun has them
    scipy.sparse.save_npz(tmp_path / "half.npz", scipy.sparse.coo_matrix(half))
    np.savez(tmp_path / "dense.npz", r)
    with gzip.open(tmp_path / "r.ld.gz", "wb") as out:
        np.savetxt(out, r)
    for name in ("r.npz", "half.npz", "dense.npz", "r.ld.gz"):
        answer = poise.finemap(z, tmp_path / name, 5000, draws=100, progress=False)
        np.testing.assert_allclose(answer.pip, expected.pip, atol=0.02)
        assert [one["variables"] for one in answer.sets] == [["x[5]"]], name
    np.savez(tmp_path / "few.npz", row=[0], col=[0], data=[1.0], shape=[4_000_000_000] * 2)
    with pytest.raises(ValueError, match="found 1 numbers for 4000000000 columns"):
        poise.finemap(z, tmp_path / "few.npz", 5000, progress=False)
    np.savez(tmp_path / "two.npz", a=r, b=r)
    with pytest.raises(ValueError, match="found the arrays a.npy, b.npy"):
        poise.finemap(z, tmp_path / "two.npz", 5000, progress=False)


def test_data_frames_of_correlations_are_followed_by_name():
    import pandas
    names = list("abcd")
    r = pandas.DataFrame(np.eye(4) + 0.8 * np.diag([1, 0, 0], 1) + 0.8 * np.diag([1, 0, 0], -1), names, names)
    z = pandas.Series([7.0, 5.6, 0.0, 1.0], names)
    turned = r.loc[names[::-1], names[::-1]]
    expected = poise.finemap(z, r, 1000, draws=100, progress=False)
    answer = poise.finemap(z, turned, 1000, draws=100, progress=False)
    assert answer.names == names and (answer.pip == expected.pip).all()
    assert poise.finemap(z.to_numpy(), r, 1000, draws=50, progress=False).names == names
    with pytest.raises(ValueError, match="R: found no variant 'd'"):
        poise.finemap(z, r.rename(index={"d": "e"}, columns={"d": "e"}), 1000, progress=False)
    with pytest.raises(ValueError, match="names of rows that are not those of columns"):
        poise.finemap(z, r.rename(index={"d": "e"}), 1000, progress=False)


def test_strong_signals_are_no_reason_to_warn(recwarn):
    answer = poise.finemap([20.0, 10.0], [[1, 0.5], [0.5, 1]], 50_000, draws=100, progress=False)
    assert answer.warnings == [] and not recwarn.list


def test_columns_that_are_no_numbers_are_named():
    import pandas
    x, y = table()
    frame = pandas.DataFrame(x, columns=list("abcdefg"))
    with pytest.raises(TypeError, match="in column 'sex'"):
        poise.select(frame.assign(sex="f"), y, progress=False)
    with pytest.raises(ValueError, match="masked"):
        poise.select(np.ma.masked_greater(x, 1.0), y, progress=False)
    with pytest.raises(ValueError, match="found the response 'c' among the columns"):
        poise.select(frame, frame["c"], progress=False)
    answer = poise.select(frame.assign(one=1.0), y, beta_a=1, beta_b=4, draws=50, progress=False)
    assert answer.pip[-1] == 0.0 and "constant" in answer.notes[0]
