"""Mixed tables with known groups: what columns of any kind are worth.

Seven tables with numbers, skewed amounts, categories, dates, gaps and identifiers, made
from seeds, and one of scikit-learn's.  Each row compares the adjusted Rand index of

- `ours`: `TableClusterer(NystromKMeans(k))` with its defaults on the whole table,
- `plain`: the same with `SketchedKMeans(k)`, which is plain k-means,
- `numbers`: the same as ours on the columns of numbers alone, standardised,
- `one-hot`: `OneHotEncoder` + `StandardScaler` + scikit-learn's `KMeans`, with gaps
  filled and identifiers taken out by hand,
- `k-prototypes`: that of `kmodes`, on the same columns, standardised,
- `skrub`: `skrub.TableVectorizer` + `StandardScaler` + `KMeans` on the whole table,
- `sum`, `gower`: exact kernel k-means with a kernel made for mixed columns, on the
  columns and scales of ours.  `sum` is an rbf of the numbers plus the share of equal
  categories, each as heavy as its number of columns; `gower` is the mean over columns
  of 1 - |x - y| / range, or of equality.

A product of an rbf of the numbers and one exp(-c) for each category that differs is no
further method: it is the rbf of numbers and indicators, which is what `ours` takes.
`kmodes` and `skrub` have to be installed.

    python -m benchmarks.mixed --seeds 100-104
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans, TableClusterer

#: A table, its groups, and the columns that a person would take by hand.
Problem = tuple[pd.DataFrame, np.ndarray, list[str]]
_FIRST_DAY = pd.Timestamp("2019-01-01")


class Maker:
    """Draws columns that depend on the groups of the rows."""

    def __init__(self, seed: int, n: int, k: int) -> None:
        self.rng = np.random.default_rng(seed)
        shares = self.rng.dirichlet(np.full(k, 8.0))
        self.groups = self.rng.choice(k, size=n, p=shares)
        self.n, self.k = n, k

    def normal(self, means: list[float], spread: float) -> np.ndarray:
        return np.array(means)[self.groups] + spread * self.rng.normal(size=self.n)

    def amount(self, logs: list[float], spread: float) -> np.ndarray:
        return np.round(np.exp(self.normal(logs, spread)), 2)

    def count(self, means: list[float]) -> np.ndarray:
        return self.rng.poisson(np.array(means)[self.groups])

    def category(
        self, levels: list[str], likely: list[int], share: float
    ) -> np.ndarray:
        """Return the likely level of each group with this share, or else any."""
        own = np.array(likely)[self.groups]
        other = self.rng.integers(len(levels), size=self.n)
        return np.array(levels)[np.where(self.rng.random(self.n) < share, own, other)]

    def flag(self, shares: list[float], words: tuple[str, str]) -> np.ndarray:
        is_true = self.rng.random(self.n) < np.array(shares)[self.groups]
        return np.where(is_true, words[1], words[0])

    def date(self, starts: list[int], days: int, form: str) -> np.ndarray:
        offset = np.array(starts)[self.groups] + self.rng.integers(days, size=self.n)
        moments = _FIRST_DAY + pd.to_timedelta(offset, unit="D")
        return moments.strftime(form).to_numpy()

    def gaps(self, values: np.ndarray, share: float) -> np.ndarray:
        kept = values.astype(object)
        kept[self.rng.random(self.n) < share] = None
        return kept


def make_crm(seed: int) -> Problem:
    make = Maker(seed, 3000, 4)
    rng, n = make.rng, make.n
    frame = pd.DataFrame(
        {
            "customer_no": 200_000 + rng.permutation(n),
            "email": [f"user{i}@example.org" for i in range(n)],
            "country": "DE",
            "revenue": make.amount([4.0, 5.2, 6.4, 7.2], 0.75),
            "orders": make.count([2, 4, 9, 9]),
            "basket": make.amount([3.0, 3.4, 3.4, 4.6], 0.6),
            "age": pd.to_numeric(make.gaps(make.normal([27, 41, 52, 45], 9), 0.03)),
            "channel": make.category(
                ["shop", "web", "phone", "partner"], [1, 0, 0, 3], 0.65
            ),
            "plan": make.category(["basic", "plus", "pro"], [0, 0, 1, 2], 0.7),
            "newsletter": make.flag([0.75, 0.5, 0.25, 0.5], ("no", "yes")),
            "since": make.date([900, 500, 0, 400], 700, "%Y-%m-%d"),
            "region": make.category(["north", "east", "south", "west"], [0] * 4, 0.0),
            "returns": make.count([1.2, 0.4, 0.5, 0.3]),
            "comment": [f"called on day {i} about the order" for i in range(n)],
        }
    )
    columns = [*frame.columns[3:10], "region", "returns"]
    return frame, make.groups, columns


def make_medical(seed: int) -> Problem:
    make = Maker(seed, 1500, 3)
    frame = pd.DataFrame(
        {
            "patient_id": [f"P-{i:05d}" for i in range(make.n)],
            "age": make.normal([35, 58, 70], 9).round(),
            "sex": make.category(["f", "m"], [0, 1, 0], 0.3),
            "systolic": make.normal([118, 138, 146], 11).round(),
            "cholesterol": make.normal([180, 225, 205], 28).round(),
            "crp": make.amount([0.0, 1.0, 2.4], 0.8),
            "smoker": make.flag([0.2, 0.7, 0.2], ("nein", "ja")),
            "diabetes": make.flag([0.03, 0.3, 0.6], ("nein", "ja")),
            "ward": make.category(["A", "B", "C", "D"], [0, 1, 2], 0.6),
            "admitted": make.date([0, 0, 0], 700, "%d.%m.%Y"),
            "weight": make.gaps(make.normal([70, 88, 72], 11), 0.05),
        }
    )
    frame["weight"] = pd.to_numeric(frame["weight"])
    columns = [c for c in frame.columns if c not in ("patient_id", "admitted")]
    return frame, make.groups, columns


def make_retail(seed: int) -> Problem:
    make = Maker(seed, 2500, 5)
    frame = pd.DataFrame(
        {
            "article": make.rng.permutation(make.n) + 1,
            "price": make.amount([1.0, 2.2, 3.4, 4.6, 3.0], 0.45),
            "margin": make.normal([0.2, 0.3, 0.4, 0.25, 0.5], 0.06),
            "weekly_sales": make.amount([5.5, 4.2, 3.0, 1.5, 2.2], 0.7),
            "stock": make.amount([6.0, 5.0, 4.0, 2.5, 3.0], 0.8),
            "department": make.category(
                ["food", "home", "garden", "tech", "toys", "books"],
                [0, 1, 2, 3, 4],
                0.75,
            ),
            "supplier": make.category(
                [f"S{i}" for i in range(12)], [0, 1, 2, 3, 4], 0.4
            ),
            "imported": make.flag([0.2, 0.4, 0.6, 0.9, 0.8], ("false", "true")),
            "online": make.flag([0.3, 0.5, 0.5, 0.9, 0.7], ("false", "true")),
        }
    )
    return frame, make.groups, list(frame.columns[1:])


def make_hr(seed: int) -> Problem:
    make = Maker(seed, 1200, 4)
    frame = pd.DataFrame(
        {
            "EmployeeID": make.rng.choice(90_000, make.n, replace=False) + 10_000,
            "salary": make.amount([10.3, 10.7, 11.1, 11.6], 0.18),
            "hours": make.normal([30, 39, 41, 48], 4),
            "age": make.normal([29, 38, 44, 52], 7).round(),
            "department": make.category(
                ["sales", "it", "hr", "production", "legal"], [0, 1, 3, 4], 0.5
            ),
            "grade": make.category(["A", "B", "C", "D"], [0, 1, 2, 3], 0.6),
            "remote": make.flag([0.2, 0.8, 0.1, 0.5], ("N", "Y")),
            "hired": make.date([1200, 700, 300, -400], 600, "%m/%d/%Y"),
            "gender": make.category(["f", "m"], [0] * 4, 0.0),
        }
    )
    columns = [c for c in frame.columns if c not in ("EmployeeID", "hired")]
    return frame, make.groups, columns


def make_telecom(seed: int) -> Problem:
    make = Maker(seed, 4000, 3)
    frame = pd.DataFrame(
        {
            "phone": make.rng.choice(10**9, make.n, replace=False) + 10**9,
            "tenure": make.normal([8, 30, 55], 9).clip(0).round(),
            "monthly": make.normal([35, 70, 95], 14),
            "data_gb": make.amount([0.3, 2.5, 3.2], 1.0),
            "calls": make.count([1.5, 0.7, 1.0]),
            "contract": make.category(["monthly", "1 year", "2 years"], [0, 1, 2], 0.6),
            "payment": make.category(
                ["card", "transfer", "cheque", "debit"], [2, 0, 3], 0.45
            ),
            "senior": make.flag([0.15, 0.15, 0.3], ("0", "1")).astype(int),
            "partner": make.flag([0.3, 0.5, 0.7], ("No", "Yes")),
            "fibre": make.flag([0.2, 0.6, 0.8], ("No", "Yes")),
        }
    )
    return frame, make.groups, list(frame.columns[1:])


def make_web(seed: int) -> Problem:
    make = Maker(seed, 5000, 4)
    frame = pd.DataFrame(
        {
            "session": [f"{make.rng.integers(2**62):016x}" for _ in range(make.n)],
            "duration": make.amount([2.5, 4.5, 5.8, 6.6], 0.8),
            "pages": make.count([1.2, 4, 9, 14]) + 1,
            "value": np.where(
                make.rng.random(make.n) < np.array([0.02, 0.1, 0.3, 0.8])[make.groups],
                make.amount([3.0, 3.2, 3.8, 4.6], 0.6),
                0.0,
            ),
            "device": make.category(["mobile", "desktop", "tablet"], [0, 0, 1, 1], 0.6),
            "source": make.category(
                ["search", "ads", "mail", "direct", "social"], [4, 1, 0, 2], 0.55
            ),
            "browser": make.category(["a", "b", "c", "d"], [0] * 4, 0.2),
            "returning": make.flag([0.1, 0.3, 0.5, 0.8], ("false", "true")),
            "scroll": make.normal([0.2, 0.45, 0.6, 0.7], 0.12),
        }
    )
    return frame, make.groups, list(frame.columns[1:])


def make_wine(seed: int) -> Problem:
    """Return scikit-learn's wines, four of whose columns are in words."""
    data = load_wine(as_frame=True)
    frame = data.data.copy()
    rng = np.random.default_rng(seed)
    for name in rng.choice(frame.columns, 4, replace=False):
        words = ["low", "middle", "high"]
        frame[name] = pd.qcut(frame[name], 3, labels=words, duplicates="drop").astype(
            str
        )
    frame.insert(0, "bottle", np.arange(len(frame)))
    return frame, data.target.to_numpy(), list(frame.columns[1:])


MAKERS: dict[str, Callable[[int], Problem]] = {
    "crm": make_crm,
    "medical": make_medical,
    "retail": make_retail,
    "hr": make_hr,
    "telecom": make_telecom,
    "web": make_web,
    "wine": make_wine,
}


def split_by_hand(
    frame: pd.DataFrame, columns: list[str]
) -> tuple[list[str], list[str]]:
    """Return the columns of numbers and those of words; dates are left out."""
    chosen = [name for name in columns if name not in ("since", "hired", "admitted")]
    numbers = [name for name in chosen if frame[name].dtype.kind in "fiu"]
    return numbers, [name for name in chosen if name not in numbers]


def cluster_ours(problem: Problem, k: int, seed: int) -> np.ndarray:
    model = TableClusterer(NystromKMeans(k, random_state=seed))
    return model.fit_predict(problem[0])


def cluster_plain(problem: Problem, k: int, seed: int) -> np.ndarray:
    model = TableClusterer(SketchedKMeans(k, random_state=seed))
    return model.fit_predict(problem[0])


def cluster_numbers(problem: Problem, k: int, seed: int) -> np.ndarray:
    numbers, _ = split_by_hand(problem[0], problem[2])
    X = problem[0][numbers].fillna(problem[0][numbers].median()).to_numpy(float)
    return TableClusterer(NystromKMeans(k, random_state=seed)).fit_predict(X)


def cluster_one_hot(problem: Problem, k: int, seed: int) -> np.ndarray:
    numbers, words = split_by_hand(problem[0], problem[2])
    X = problem[0][numbers].fillna(problem[0][numbers].median()).to_numpy(float)
    hot = OneHotEncoder(sparse_output=False).fit_transform(
        problem[0][words].astype(str)
    )
    rows = StandardScaler().fit_transform(np.hstack([X, hot]))
    return KMeans(k, n_init=10, random_state=seed).fit_predict(rows)


def cluster_prototypes(problem: Problem, k: int, seed: int) -> np.ndarray:
    from kmodes.kprototypes import KPrototypes

    numbers, words = split_by_hand(problem[0], problem[2])
    X = problem[0][numbers].fillna(problem[0][numbers].median()).to_numpy(float)
    scaled = StandardScaler().fit_transform(X).astype(object)
    rows = np.hstack([scaled, problem[0][words].astype(str).to_numpy(object)])
    categorical = list(range(len(numbers), rows.shape[1]))
    model = KPrototypes(k, init="Cao", n_init=1, random_state=seed)
    return model.fit_predict(rows, categorical=categorical)


def cluster_skrub(problem: Problem, k: int, seed: int) -> np.ndarray:
    from skrub import TableVectorizer

    features = TableVectorizer().fit_transform(problem[0])
    rows = np.nan_to_num(StandardScaler().fit_transform(features))
    return KMeans(k, n_init=10, random_state=seed).fit_predict(rows)


def split_prepared(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of a table as we scale them, and its categories in codes."""
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(frame)
    kinds = [model.kinds_[name] for name in model.columns_]
    numbers = [j for j, name in enumerate(model.features_) if "=" not in str(name)]
    prepared = model.prepare(frame)
    X = np.asarray(prepared.read(0, len(prepared)), float)[:, numbers]
    words = [
        pd.factorize(frame[name].astype(str))[0]
        for name, kind in zip(model.columns_, kinds, strict=True)
        if kind in ("category", "boolean")
    ]
    return X, np.array(words).T.reshape(len(X), -1)


def share_equal(words: np.ndarray) -> np.ndarray:
    return np.mean([c[:, None] == c for c in words.T], axis=0)


def cluster_sum(problem: Problem, k: int, seed: int) -> np.ndarray:
    X, words = split_prepared(problem[0])
    squares = np.square(X).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * X @ X.T, 0.0)
    rbf = np.exp(-distances / distances.mean())
    gram = X.shape[1] * rbf + words.shape[1] * share_equal(words)
    return KernelKMeans(k, kernel="precomputed", random_state=seed).fit_predict(gram)


def cluster_gower(problem: Problem, k: int, seed: int) -> np.ndarray:
    X, words = split_prepared(problem[0])
    near = [1.0 - np.abs(x[:, None] - x) / np.ptp(x) for x in X.T]
    gram = np.sum(near, axis=0) + words.shape[1] * share_equal(words)
    return KernelKMeans(k, kernel="precomputed", random_state=seed).fit_predict(gram)


METHODS = {
    "ours": cluster_ours,
    "plain": cluster_plain,
    "numbers": cluster_numbers,
    "one-hot": cluster_one_hot,
    "k-prototypes": cluster_prototypes,
    "skrub": cluster_skrub,
    "sum": cluster_sum,
    "gower": cluster_gower,
}


def measure(name: str, method: str, seeds: list[int]) -> float:
    """Return the mean adjusted Rand index of a method on the tables of some seeds."""
    scores = []
    for seed in seeds:
        problem = MAKERS[name](seed)
        k = len(np.unique(problem[1]))
        found = METHODS[method](problem, k, seed)
        scores.append(adjusted_rand_score(problem[1], found))
    return float(np.mean(scores))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="100-104", help="first and last, or one")
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    methods = options.methods.split(",")
    warnings.simplefilter("ignore")
    print("table     " + "".join(f"{method:>14}" for method in methods))
    means = []
    for name in MAKERS:
        scores = [measure(name, method, seeds) for method in methods]
        means.append(scores)
        print(f"{name:<10}" + "".join(f"{score:14.3f}" for score in scores), flush=True)
    print("mean      " + "".join(f"{m:14.3f}" for m in np.mean(means, axis=0)))


if __name__ == "__main__":
    main()
