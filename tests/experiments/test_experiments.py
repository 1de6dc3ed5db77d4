"""The experiments: every one runs in small, resumes, and is reported."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import rbf_kernel

import experiments
from benchmarks.data import VARIABLE
from experiments import (
    approximation,
    b14_reduction,
    datasets,
    grid,
    l21_table1,
    sketch_lemmas,
    whole_fits,
)
from experiments.__main__ import main
from experiments.catalog import EXPERIMENTS
from experiments.claims import CLAIMS, EARLIER
from experiments.corrections import CORRECTED
from experiments.datasets import MissingDataError, load
from experiments.evidence import Verdict
from experiments.figures import panels, plain_ticks, strategy_style
from experiments.grid import SALT, run_cells, seed_of, shared_seed
from experiments.methods import (
    LEVERAGE,
    MORE_STRATEGIES,
    PAPER_STRATEGIES,
    SKETCH_SIZES,
)
from experiments.partitions import all_partitions, optimal_cost
from experiments.report import (
    decide,
    gather,
    report_text,
    results,
    undecided,
)
from experiments.simulation import Mixture
from experiments.stages import needed, second_looks
from experiments.store import Cell, Store, protocol_commit
from sketchmeans import Nystrom

PROVENANCE = ("commit", "grid", "cores", "cpu_seconds", "wall_seconds")


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find data files, or ask the network for data."""
    monkeypatch.delenv(VARIABLE, raising=False)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OSError("no network")

    for name in ("openml", "covtype", "california_housing", "olivetti_faces"):
        monkeypatch.setattr(datasets.public, f"fetch_{name}", refuse)
    datasets._loaded.cache_clear()


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the results of every experiment in small."""
    out = tmp_path_factory.mktemp("smoke")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(VARIABLE, raising=False)
        main(["run", "all", "--smoke", "--out", str(out)])
    return out


def _results(out: Path, name: str) -> Path:
    return out / "results" / f"{name}.csv"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_smoke_measures_every_cell(smoke: Path, name: str) -> None:
    cells = EXPERIMENTS[name].cells("smoke", 2)
    store = Store(smoke / "results" / f"{name}.csv", list(cells[0]))
    assert store.finished() == {store.key(cell) for cell in cells}
    table = store.table()
    assert {"seed", "run", "repeat", *PROVENANCE} <= set(table.columns)
    assert (table.cpu_seconds >= 0.0).all()
    assert (table.wall_seconds > 0.0).any()
    assert table.commit.nunique() == 1
    seeds = {store.key(cell): seed_of(cell) for cell in cells}
    for row in table.to_dict("records"):
        assert row["seed"] == seeds[store.key(row)]
    runs = pd.read_csv(smoke / "results" / "runs.csv", dtype=str)
    assert set(table.run.astype(str)) == set(runs.run)
    assert runs.sketchmeans.notna().all()


def _work(cells: list[Cell]) -> int:
    """Return the number of rows of all cells; of cells, where rows are no setting."""
    return sum(cell.get("n", 1) for cell in cells)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_full_grids_are_well_formed(name: str) -> None:
    cells = EXPERIMENTS[name].cells("full", 5)
    store = Store(Path("unused.csv"), list(cells[0]))
    assert all(list(cell) == list(cells[0]) for cell in cells)
    assert len({store.key(cell) for cell in cells}) == len(cells)
    assert len({seed_of(cell) for cell in cells}) == len(cells)
    names = {cell["dataset"] for cell in cells if "dataset" in cell}
    assert names <= set(datasets.REGISTRY)
    fewer = EXPERIMENTS[name].cells("full", 1)
    assert _work(EXPERIMENTS[name].cells("quick", 5)) < _work(cells)
    # What few repeats have run, more repeats need not run again.
    assert {store.key(cell) for cell in fewer} < {store.key(cell) for cell in cells}


def test_a_finished_cell_is_not_run_again(
    smoke: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (smoke / "results" / "l21_rates.csv").read_bytes()
    main(["run", "l21_rates", "--smoke", "--out", str(smoke)])
    assert "0 cells run, 14 were there, 0 left" in capsys.readouterr().out
    assert (smoke / "results" / "l21_rates.csv").read_bytes() == before


def test_the_report_has_every_claim_and_figure(smoke: Path) -> None:
    main(["report", "--smoke", "--out", str(smoke)])
    text = (smoke / "RESULTS.md").read_text(encoding="utf-8")
    for claim in CLAIMS:
        assert f"\n| {claim} | " in text
    for name in EXPERIMENTS:
        assert f"(figures/{name}.png)" in text
        assert (smoke / "figures" / f"{name}.png").stat().st_size < 100_000
    assert "## Which landmarks should I use?" in text
    assert "## Which feature sketch?" in text
    assert "Not all of this is the full grid" in text
    assert "**undecided** (smoke)" in text
    assert f"Protocol: commit {protocol_commit()}." in text


def test_the_committed_report_is_that_of_the_committed_results() -> None:
    home = Path(experiments.__file__).parent
    text = (home / "RESULTS.md").read_text(encoding="utf-8")
    assert text == report_text(home)


def test_results_are_small_files() -> None:
    home = Path(experiments.__file__).parent
    assert all(path.stat().st_size < 2**20 for path in home.glob("results/*.csv"))


def test_the_protocol_names_every_claim() -> None:
    home = Path(experiments.__file__).parent
    text = (home / "PROTOCOL.md").read_text(encoding="utf-8")
    assert [claim for claim in CLAIMS if f"**{claim}**" not in text] == []
    assert f"`{SALT}`" in text
    assert [claim for claim in EARLIER if f"| {claim.rstrip('s')} | " not in text] == []
    after = text.split("After the run of this protocol")[1]
    assert [claim for claim in CORRECTED if claim not in after] == []


def test_rows_of_several_commits_are_refused(smoke: Path, tmp_path: Path) -> None:
    shutil.copytree(smoke, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "results" / "l21_rates.csv"
    table = pd.read_csv(path)
    table.assign(commit="0123abc").to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"results has rows of .*do not mix"):
        main(["report", "--smoke", "--out", str(tmp_path)])
    with pytest.raises(ValueError, match=r"rows of 0123abc, and this is .*do not mix"):
        main(["run", "l21_rates", "--smoke", "--out", str(tmp_path)])
    one = table.assign(grid="full")
    one.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"rows of full, and this is smoke: .*grids"):
        main(["run", "l21_rates", "--smoke", "--out", str(tmp_path)])
    table.loc[0, "commit"] = "0123abc"
    table.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"rows of .*0123abc.*: .*do not mix"):
        main(["report", "--smoke", "--out", str(tmp_path)])


@pytest.mark.slow
def test_undecided_experiments_are_run_on(smoke: Path) -> None:
    again = undecided(smoke, list(EXPERIMENTS))
    gathered = gather(results(smoke))
    findings = decide(gathered)
    for name in EXPERIMENTS:
        verdicts = {item.claim: findings[item.claim].verdict for item in gathered[name]}
        is_open = {c for c, verdict in verdicts.items() if verdict is Verdict.UNDECIDED}
        # A claim of two experiments may be open in one of them.
        assert again.get(name, set()) <= is_open
        assert all(any(claim in found for found in again.values()) for claim in is_open)
    # Two repeats leave something open.
    assert again


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_cells_are_run_again_for_the_claims_that_need_them(
    smoke: Path, name: str
) -> None:
    cells = EXPERIMENTS[name].cells("smoke", 2)
    assert needed(name, cells, None) == cells
    items = EXPERIMENTS[name].claims(Store(_results(smoke, name), []).table())
    found = {item.claim: needed(name, cells, {item.claim}) for item in items}
    assert all(found[item.claim] for item in items if item.parts)
    seeds = {seed_of(cell) for some in found.values() for cell in some}
    # Budgets are numbers that no claim needs.
    wanted = [cell for cell in cells if cell.get("part") != "budgets"]
    assert not found or seeds == {seed_of(cell) for cell in wanted}
    assert needed("cr18_mnist", [{"part": "nmi"}, {"part": "linear"}], {"CR2"}) == [
        {"part": "nmi"}
    ]


def test_a_report_without_results_tests_nothing(tmp_path: Path) -> None:
    main(["report", "--out", str(tmp_path)])
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert f"Of {len(CLAIMS)} claims: 0 supported" in text
    assert text.count(f"**{Verdict.UNTESTED}**") == len(CLAIMS)


@pytest.mark.slow
def test_processes_find_what_one_finds(smoke: Path, tmp_path: Path) -> None:
    main(["run", "l21_landmarks", "--smoke", "--jobs", "2", "--out", str(tmp_path)])
    keys = ["k", "m", "repeat"]
    one, two = (
        pd.read_csv(folder / "results" / "l21_landmarks.csv").sort_values(keys)
        for folder in (smoke, tmp_path)
    )
    for column in (*keys, "seed", "cost_test"):
        np.testing.assert_allclose(one[column], two[column], rtol=1e-5)


def test_the_report_says_on_its_first_lines_what_was_corrected(tmp_path: Path) -> None:
    text = report_text(tmp_path)
    first = text.split("```")[0].replace("\n", " ")
    assert f"Rules of {', '.join(CORRECTED)} were corrected after" in first
    assert "certificates" in first
    for claim, (rule, then) in CORRECTED.items():
        assert f"| {claim} | {rule} | {then} | " in text


def test_no_correction_makes_a_claim_more_decided() -> None:
    home = Path(experiments.__file__).parent
    found = decide(gather(results(home)))
    open_ = (Verdict.UNDECIDED, Verdict.REPORTED)
    for claim, (_, then) in CORRECTED.items():
        assert found[claim].verdict in (*open_, Verdict(then)), claim


def test_a_strategy_looks_the_same_in_all_figures() -> None:
    strategies = {**PAPER_STRATEGIES, **MORE_STRATEGIES}
    looks = {name: strategy_style(name) for name in strategies}
    assert len({look["color"] for look in looks.values()}) == len(looks)
    assert {strategy_style(name)["color"] for name in SKETCH_SIZES} == {
        looks[LEVERAGE]["color"]
    }


@pytest.mark.parametrize("ends", [(0.96, 1.04), (0.8, 1.3), (0.003, 0.2), (1e-4, 2.0)])
def test_logarithmic_axes_have_a_few_numbers(ends: tuple[float, float]) -> None:
    _, (axis,) = panels(1, 1)
    axis.set(xscale="log", xlim=ends)
    plain_ticks(axis)
    marks = [tick for tick in axis.get_xticks() if ends[0] <= tick <= ends[1]]
    assert 2 <= len(marks) <= 9


def test_differences_within_the_spread_of_fits_are_named_so() -> None:
    rows = [
        {"dataset": name, "method": method, "m": m, "repeat": repeat}
        | {
            "seconds": m / 1e3,
            "cost": 1.0 + gap * (method != "uniform") + 1e-3 * repeat,
        }
        for name, gap in (("near", 1e-4), ("far", 1.0))
        for method in whole_fits._METHODS
        for m in (200, 400)
        for repeat in range(5)
    ]
    found = whole_fits.beyond_noise(pd.DataFrame(rows))
    assert found == ["far, uniform m = 200", "far, uniform m = 400"]


# -- the grid and its files ------------------------------------------------------------


def counting(missing: tuple[int, ...] = ()) -> Any:
    """Return an experiment that remembers which cells were run."""
    ran: list[int] = []

    def run(cell: dict[str, Any], context: Any) -> list[dict[str, Any]]:
        if cell["i"] in missing:
            raise MissingDataError("table 7: no such table")
        ran.append(cell["i"])
        if cell["i"] == 99:
            raise RuntimeError("broken")
        return [{"method": method, "value": 0.1 * cell["i"]} for method in "ab"]

    return SimpleNamespace(run=run, ran=ran)


def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    experiment, path = counting(), tmp_path / "x.csv"
    cells = [{"i": i, "share": 0.1 * i, "name": f"n{i}"} for i in (0, 1, 99, 3)]
    with pytest.raises(RuntimeError, match="broken"):
        run_cells(experiment, cells, path, "first")
    assert experiment.ran == [0, 1, 99]
    cells[2]["i"] = 2
    summary = run_cells(experiment, cells, path, "second")
    assert experiment.ran == [0, 1, 99, 2, 3]
    assert (summary.done, summary.resumed, summary.left) == (2, 2, 0)
    table = Store(path, ["i"]).table()
    assert list(table.run) == ["first"] * 4 + ["second"] * 4
    assert not list(tmp_path.glob("*.part"))


def test_missing_data_are_skipped_with_the_reason(tmp_path: Path) -> None:
    experiment = counting(missing=(1, 2))
    cells = [{"i": i} for i in range(4)]
    summary = run_cells(experiment, cells, tmp_path / "x.csv", "run")
    assert summary.skipped == {"table 7: no such table": 2}
    assert (summary.done, summary.left) == (2, 0)


def test_no_cell_starts_after_the_time_is_up(tmp_path: Path) -> None:
    experiment = counting()
    cells = [{"i": i} for i in range(4)]
    path = tmp_path / "x.csv"
    summary = run_cells(experiment, cells, path, "run", max_minutes=0.0)
    assert (summary.done, summary.left, experiment.ran) == (0, 4, [])


def test_results_of_another_grid_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    run_cells(counting(), [{"i": 1}], path, "run")
    with pytest.raises(ValueError, match=r"x.csv has no column 'j'.*move it away"):
        run_cells(counting(), [{"i": 1, "j": 2}], path, "run")


def test_seeds_follow_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seed_of({"a": 1, "b": 2}) == seed_of({"b": 2, "a": 1})
    assert seed_of({"a": 1, "b": 2}) != seed_of({"a": 2, "b": 1})
    one, two = ({"size": size, "repeat": 3} for size in "KL")
    assert shared_seed(one, "size") == shared_seed(two, "size") != seed_of(one)
    before = seed_of(one)
    monkeypatch.setattr(grid, "SALT", "third protocol")
    assert seed_of(one) != before


def test_unfinished_second_looks_are_named(tmp_path: Path) -> None:
    opened = {"l21_landmarks": {"L2"}}
    assert "L2 in `l21_landmarks` has 0 of 20 repeats (20 cells short" in second_looks(
        tmp_path, opened
    )
    path = tmp_path / "results" / "l21_landmarks.csv"
    for repeats, words in ((5, "has 5 of 20 repeats (20 cells"), (20, "have all")):
        cells = EXPERIMENTS["l21_landmarks"].cells("full", repeats)
        path.unlink(missing_ok=True)
        Store(path, list(cells[0])).append(cells)
        assert words in second_looks(tmp_path, opened)


def test_repeats_that_lack_a_cell_are_left_out() -> None:
    table = pd.DataFrame(
        {"dataset": list("xxyyx"), "repeat": [0, 1, 0, 1, 2], "method": "uniform"}
    )
    whole = approximation.whole_draws(table, ["dataset"])
    assert sorted(whole.repeat) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing"], "invalid choice: 'nothing'"),
        (["run", "all", "--repeats", "0"], "0 should be 1 or more"),
        ([], "action"),
    ],
)
def test_bad_commands_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


def test_only_some_cells_may_be_run(tmp_path: Path) -> None:
    command = ["run", "l21_landmarks", "--smoke", "--out", str(tmp_path)]
    main([*command, "--only", "k=4", "--only", "repeat=1"])
    table = pd.read_csv(tmp_path / "results" / "l21_landmarks.csv")
    assert (set(table.k), set(table.repeat)) == ({4}, {1})
    for condition, message in (
        ("size=4", r"'size' should be in \['k', 'n', 'repeat'\]"),
        ("k=5", r"the values of 'k' are \['4', '8'\]"),
    ):
        with pytest.raises(SystemExit, match=message):
            main([*command, "--only", condition])


# -- data ------------------------------------------------------------------------------


def test_files_come_first_and_are_prepared(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(5.0, 3.0, size=(200, 4))
    X[:, 2] = 1.0
    np.savez(tmp_path / "pol.npz", X=X, y=np.zeros(200))
    found = load("pol", tmp_path)
    assert found.X.shape == (200, 3)
    np.testing.assert_allclose(found.X.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(found.X.std(axis=0), 1.0, rtol=1e-5)
    np.savez(tmp_path / "segment.npz", X=X, y=np.arange(200) % 7)
    scaled = load("segment", tmp_path)
    assert (scaled.X.min(), scaled.X.max(), scaled.n_classes) == (-1.0, 1.0, 7)
    assert not scaled.X[:, 2].any()


def test_the_variable_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "mnist.npz", X=np.full((3, 2), 255, np.uint8), y=np.arange(3))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    np.testing.assert_array_equal(load("mnist").X, np.ones((3, 2), np.float32))


def test_public_loaders_are_asked_without_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def fetch(name: str, **settings: Any) -> SimpleNamespace:
        asked.append((name, settings["version"]))
        return SimpleNamespace(data=np.eye(4) * 255, target=np.array(list("abca")))

    monkeypatch.setattr(datasets.public, "fetch_openml", fetch)
    assert load("mnist").n_classes == 3
    assert asked == [("mnist_784", 1)]


def test_categories_become_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"cap": list("abca"), "stalk-root": list("xxyy")})

    def fetch(name: str, **settings: Any) -> SimpleNamespace:
        return SimpleNamespace(data=frame, target=np.array([0, 1, 1, 0]))

    monkeypatch.setattr(datasets.public, "fetch_openml", fetch)
    assert load("mushrooms").X.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("covtype", "covtype: no file in --data or SKETCHMEANS_DATA, and no network"),
        ("ct_slice", "ct_slice: no whole copy was found"),
        ("pie", "pie: no file, and scikit-learn has no loader"),
    ],
)
def test_what_is_not_to_be_had_says_why(name: str, reason: str) -> None:
    with pytest.raises(MissingDataError, match=reason):
        load(name)


def test_unknown_datasets_are_refused() -> None:
    with pytest.raises(ValueError, match=r"dataset 'iris' should be one of \["):
        load("iris")


def test_classes_must_match_rows(tmp_path: Path) -> None:
    np.savez(tmp_path / "covtype.npz", X=np.eye(3), y=np.arange(2))
    with pytest.raises(ValueError, match="covtype: 2 classes should be 3, one a row"):
        load("covtype", tmp_path)


# -- what is measured ------------------------------------------------------------------


def test_all_rows_give_the_norm_itself() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    K = rbf_kernel(X, gamma=0.3)
    F = np.linalg.cholesky(K + 1e-9 * np.eye(300))[:, :20]
    truth = np.linalg.norm(K - F @ F.T) / np.linalg.norm(K)
    everything = np.arange(300)
    whole = approximation.Strip(X, 0.3, everything, K.astype(np.float32))
    error, spread = whole.error(F)
    assert error == pytest.approx(truth, rel=1e-4)
    assert spread == 0.0


def test_random_rows_give_it_within_their_spread() -> None:
    rng = np.random.default_rng(0)
    # Rows that stand alone: few, but they make up most of the error.
    X = np.concatenate([rng.normal(size=(900, 2)), 50.0 * rng.normal(size=(60, 2))])
    K = rbf_kernel(X, gamma=0.3)
    F = Nystrom(gamma=0.3, landmarks=np.arange(30)).fit_transform(X)
    truth = np.linalg.norm(K - F @ F.T)
    inside = 0
    for seed in range(40):
        rows = np.random.default_rng(seed).choice(960, 200, replace=False)
        part = approximation.Strip(X, 0.3, rows, K[rows].astype(np.float32))
        # The norm of K is from the sample, too; it cancels in a lift.
        scale = np.sqrt(len(X) / len(rows)) * np.linalg.norm(K[rows])
        error, spread = (scale * value for value in part.error(F))
        inside += abs(error - truth) <= 2.0 * spread
        assert spread < 0.05 * truth
    assert inside >= 34


def test_bandwidths_are_those_of_og17() -> None:
    X = approximation.table_of("small_groups", None)
    grid = 2.0 * np.array(approximation.bandwidths("small_groups", None))
    low, high = np.percentile(pdist(X, "sqeuclidean"), [1, 99])
    assert len(grid) == 10
    assert grid[0] == pytest.approx(1.0 / high)
    assert grid[-1] == pytest.approx(max(1.0, 1.0 / low))
    np.testing.assert_allclose(np.diff(np.log(grid)), np.log(grid[1] / grid[0]))


def test_lift_is_uniform_over_method() -> None:
    table = pd.DataFrame(
        {
            "dataset": "x",
            "rank": 5,
            "method": ["uniform", "uniform", "better"],
            "error": [0.3, 0.5, 0.1],
            "seconds": 1.0,
        }
    )
    found = approximation.lifts(table, ["dataset", "rank"]).set_index("method").lift
    assert found["uniform"] == pytest.approx(1.0)
    assert found["better"] == pytest.approx(4.0)


def test_all_partitions_are_counted_by_stirling() -> None:
    assert len(all_partitions(7, 3)) == 1 + 63 + 301
    assert len(np.unique(all_partitions(7, 3), axis=0)) == 365


def test_the_optimum_is_below_every_partition() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2))
    K = X @ X.T
    best = optimal_cost(K, 3)
    for _ in range(200):
        labels = rng.integers(3, size=8)
        cost = sum(
            ((X[labels == j] - X[labels == j].mean(axis=0)) ** 2).sum()
            for j in np.unique(labels)
        )
        assert best <= cost / 8 + 1e-12
    assert optimal_cost(K, 8) == pytest.approx(0.0, abs=1e-12)


def test_centroids_in_a_span_cost_more() -> None:
    K = rbf_kernel(np.random.default_rng(0).normal(size=(8, 2)))
    Z = K[:, :2]
    span = Z @ np.linalg.solve(K[:2, :2], Z.T)
    assert optimal_cost(K, 3, span) > optimal_cost(K, 3)
    assert optimal_cost(K, 3, K) == pytest.approx(optimal_cost(K, 3))


def test_simulated_clusters_are_those_of_l21() -> None:
    mixture = Mixture.of(20)
    assert set(np.unique(mixture.centers)) == {-1.0, 1.0}
    X, y = mixture.draw(20_000, seed=3)
    noise = X - mixture.centers[y]
    assert noise.var() == pytest.approx(2.0, rel=0.02)
    assert np.bincount(y).tolist() == [1000] * 20
    assert not np.array_equal(X[:5], mixture.draw(20_000, seed=4)[0][:5])


def test_purity_counts_the_largest_class() -> None:
    y, labels = np.array(["a", "a", "b", "b", "c"]), np.array([0, 0, 0, 1, 1])
    assert l21_table1._purity(y, labels) == pytest.approx(3 / 5)


def test_losses_of_sketches_are_those_of_the_lemma() -> None:
    """By the definition of Ω, S and the pseudoinverse, on a small matrix."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(7, 5))
    _, values, Vt = np.linalg.svd(A, full_matrices=False)
    Z = Vt[:2].T
    R = rng.normal(size=(5, 4))
    error = A @ Z @ Z.T - A @ R @ np.linalg.pinv(Z.T @ R) @ Z.T
    wanted = np.linalg.norm(error) / np.linalg.norm(A - A @ Z @ Z.T)
    found = sketch_lemmas._loss(R @ R.T, Z, values, Vt.T)
    assert found == pytest.approx(wanted, rel=1e-10)
    singular = np.square(np.linalg.svd(Z.T @ R, compute_uv=False))
    distance = sketch_lemmas._distance_to_one(R @ R.T, Z)
    assert distance == pytest.approx(np.abs(singular - 1.0).max(), rel=1e-10)
    # Many draws with replacement come near to the identity.
    weights = np.diag(sketch_lemmas._sampled(Z, 10**6, rng))
    np.testing.assert_allclose(weights, 1.0, atol=0.02)


def test_usps_is_scaled_as_in_b14(tmp_path: Path) -> None:
    X = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
    np.savez(tmp_path / "usps.npz", X=X, y=np.arange(4))
    found = load("usps", tmp_path)
    assert (found.X.min(), found.X.max()) == (0.0, 1.0)


def test_rows_with_one_plus_eps_have_their_features() -> None:
    data = datasets.Dataset("x", np.random.default_rng(0).normal(size=(60, 30)), None)
    data = datasets.Dataset("x", data.X, np.arange(60) % 3)
    total = float(np.square(data.X).sum())
    exact, signs = b14_reduction._relative(data, 0, total)
    assert (exact["features"], signs["features"]) == (27, 295)
    # 27 of 30 directions, and fewer columns than the projection asks for.
    assert 0.0 < exact["objective"] < 1.0
    assert np.isnan(signs["objective"])
    # A projection may have more features than there are rows, an SVD may not.
    X = np.random.default_rng(0).normal(size=(20, 400))
    wide = datasets.Dataset("x", X, np.arange(20) % 3)
    total = float(np.square(X).sum())
    exact, signs = b14_reduction._relative(wide, 0, total)
    assert signs["features"] == 216
    assert 0.0 < signs["objective"] < 1.0
    assert np.isnan(exact["objective"])
