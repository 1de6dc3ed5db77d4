"""Files that a customer system exports, in eight styles: what ``fit FILE -k 4`` finds.

Each style has four planted groups that differ in numbers and in categories, and what
real files have: identifiers, addresses, notes, codes for missing values, skewed
amounts, columns that say nothing, its own language, and its own way to write numbers
and dates.  The first four were used to design with, the others to report; the file of
the gym was looked at, too, when a decimal mark of its own was misread there.

`by hand` is what a careful person does who knows which columns tell the groups apart:
codes of missing values replaced by medians, logarithms of skewed amounts, deviations
of one, indicators of categories, scikit-learn's `KMeans(n_init=10)` on them alone.
`ceiling` is a naive Bayes classifier that was told the groups, on the same columns: no
clustering can be expected to do better.

    python -m benchmarks.crm --half report --seeds 200-202
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from benchmarks.mixed import Maker
from sketchmeans import NystromKMeans, TableClusterer

#: Columns, which of them tell the groups apart, and how the file is written.
Export = tuple[dict[str, object], list[str], dict[str, str]]


def german_shop(make: Maker) -> Export:
    rng, n = make.rng, make.n
    umsatz = make.amount([4.2, 5.4, 6.4, 7.6], 0.6)
    columns = {
        "Kundennummer": rng.permutation(n) + 100_000,
        "E-Mail": [f"kunde{i}@beispiel.de" for i in range(n)],
        "Anrede": make.category(["Herr", "Frau", "Firma"], [1, 0, 1, 2], 0.6),
        "PLZ": rng.integers(10_000, 99_999, n),
        "Umsatz (€)": [_german(v) for v in umsatz],
        "Bestellungen": make.count([2, 5, 11, 8]),
        "Alter": _code(make, make.normal([28, 45, 63, 44], 8).round(), 999, 0.03),
        "Vertriebskanal": make.category(
            ["Online", "Filiale", "Katalog", "Vertreter"], [0, 1, 2, 3], 0.7
        ),
        "Newsletter": make.flag([0.8, 0.5, 0.2, 0.4], ("nein", "ja")),
        "Kunde seit": make.date([1100, 700, 0, 500], 600, "%d.%m.%Y"),
        "Bemerkung": [f"Rückruf wegen Auftrag {i} erbeten bitte" for i in range(n)],
    }
    told = ["Anrede", "Bestellungen", "Alter", "Vertriebskanal", "Newsletter"]
    return columns, [*told, "Umsatz (€)", "Kunde seit"], {"sep": ";", "code": "cp1252"}


def english_saas(make: Maker) -> Export:
    rng, n = make.rng, make.n
    columns = {
        "account_id": [f"ACC-{rng.integers(16**8):08x}" for _ in range(n)],
        "signup_date": make.date([0, 500, 900, 300], 500, "%Y-%m-%d"),
        "mrr_usd": [f"${v:,.2f}" for v in make.amount([3.2, 4.6, 6.2, 7.9], 0.5)],
        "seats": make.count([1.5, 6, 20, 60]) + 1,
        "logins_30d": make.count([4, 15, 12, 25]),
        "tickets": make.count([0.5, 1.5, 1.0, 4.0]),
        "nps": make.normal([20, 45, 10, 55], 18).round(),
        "plan": make.category(
            ["free", "team", "business", "enterprise"], [0, 1, 2, 3], 0.7
        ),
        "industry": make.category(
            ["retail", "software", "finance", "health", "education"], [4, 1, 0, 2], 0.5
        ),
        "sso": make.flag([0.05, 0.2, 0.6, 0.95], ("FALSE", "TRUE")),
        "theme": make.category(["light", "dark"], [0] * 4, 0.0),
        "source": "crm-export",
    }
    return (
        columns,
        [
            "mrr_usd",
            "seats",
            "logins_30d",
            "tickets",
            "nps",
            "plan",
            "industry",
            "sso",
            "signup_date",
        ],
        {},
    )


def french_insurer(make: Maker) -> Export:
    rng, n = make.rng, make.n
    columns = {
        "N° client": rng.permutation(n) + 5_000_000,
        "Sexe": make.category(["F", "H"], [0, 1, 0, 1], 0.3),
        "Âge": make.normal([26, 38, 52, 68], 7).round(),
        "Prime annuelle": [_french(v) for v in make.amount([5.6, 6.4, 7.0, 6.2], 0.35)],
        "Sinistres": make.count([1.8, 0.8, 0.5, 0.3]),
        "Ancienneté": _code(
            make, make.normal([2, 7, 15, 25], 3).clip(0).round(), -1, 0.02
        ),
        "Formule": make.category(["tiers", "mixte", "tous risques"], [0, 1, 2, 1], 0.7),
        "Paiement": make.category(
            ["mensuel", "trimestriel", "annuel"], [0, 0, 2, 2], 0.6
        ),
        "Région": make.category(
            ["Nord", "Sud", "Est", "Ouest", "Île-de-France"], [0] * 4, 0.0
        ),
        "Propriétaire": make.flag([0.1, 0.5, 0.85, 0.8], ("non", "oui")),
        "Remise": [
            f"{v:.1f} %".replace(".", ",") for v in make.normal([2, 5, 9, 12], 2.5)
        ],
    }
    return (
        columns,
        [
            "Sexe",
            "Âge",
            "Prime annuelle",
            "Sinistres",
            "Ancienneté",
            "Formule",
            "Paiement",
            "Propriétaire",
            "Remise",
        ],
        {"sep": ";"},
    )


def bank(make: Maker) -> Export:
    rng, n = make.rng, make.n
    balance = make.amount([6.0, 7.6, 9.0, 10.6], 0.9)
    columns = {
        "CustomerID": rng.choice(900_000, n, replace=False) + 100_000,
        "Surname": [f"Name{rng.integers(2 * n)}" for _ in range(n)],
        "CreditScore": make.normal([560, 640, 700, 760], 40).round(),
        "Balance": balance,
        "BalanceEUR": (balance * 0.92).round(2),
        "Age": make.gaps(make.normal([24, 35, 47, 60], 7).round(), 0.05),
        "Products": make.count([0.4, 1.2, 1.8, 3.0]) + 1,
        "Income": make.amount([9.8, 10.3, 10.8, 11.4], 0.35),
        "Job": make.category(
            ["student", "clerk", "manager", "retired", "worker", "other"],
            [0, 1, 2, 3],
            0.6,
        ),
        "HasCard": make.flag([0.3, 0.7, 0.8, 0.9], ("0", "1")),
        "Branch": make.category([f"B{i:02d}" for i in range(25)], [0] * 4, 0.0),
        "Opened": make.date([1200, 800, 400, 0], 500, "%m/%d/%Y"),
    }
    return (
        columns,
        [
            "CreditScore",
            "Balance",
            "Age",
            "Products",
            "Income",
            "Job",
            "HasCard",
            "Opened",
        ],
        {"na": "?"},
    )


def spanish_gym(make: Maker) -> Export:
    rng, n = make.rng, make.n
    columns = {
        "id_socio": rng.permutation(n) + 1,
        "correo": [f"socio{i}@ejemplo.es" for i in range(n)],
        "edad": _code(make, make.normal([22, 34, 45, 60], 6).round(), 99, 0.02),
        "cuota": [
            f"{v:.2f} €".replace(".", ",")
            for v in make.amount([3.1, 3.5, 4.0, 3.3], 0.15)
        ],
        "visitas_mes": make.count([12, 6, 9, 4]),
        "gasto_extra": make.amount([1.5, 2.8, 4.2, 2.0], 0.7),
        "tarifa": make.category(
            ["joven", "básica", "premium", "senior"], [0, 1, 2, 3], 0.75
        ),
        "horario": make.category(["mañana", "tarde", "noche"], [2, 1, 2, 0], 0.6),
        "entrenador": make.flag([0.1, 0.2, 0.8, 0.3], ("no", "sí")),
        "alta": make.date([900, 600, 300, 0], 700, "%d/%m/%Y"),
        "taquilla": rng.integers(1, 400, n),
    }
    return (
        columns,
        [
            "edad",
            "cuota",
            "visitas_mes",
            "gasto_extra",
            "tarifa",
            "horario",
            "entrenador",
            "alta",
        ],
        {"sep": ";", "code": "utf-16"},
    )


def us_retail(make: Maker) -> Export:
    rng, n = make.rng, make.n
    columns = {
        "Customer, Name": [f"Last{i}, First{i % 97}" for i in range(n)],
        "Phone": rng.choice(10**9, n, replace=False) + 2 * 10**9,
        "Lifetime Value": [
            f"${v:,.0f}" for v in make.amount([4.5, 5.6, 6.8, 8.0], 0.65)
        ],
        "Avg Basket": make.amount([2.8, 3.4, 3.9, 4.7], 0.4),
        "Orders": make.count([2, 5, 10, 14]),
        "Return Rate": [f"{v:.1f}%" for v in make.normal([12, 6, 9, 3], 2.5).clip(0)],
        "Days Since Last": make.amount([5.2, 4.0, 3.2, 2.5], 0.6).round(),
        "Loyalty Tier": make.category(
            ["None", "Silver", "Gold", "Platinum"], [0, 1, 2, 3], 0.7
        ),
        "Channel": make.category(["Store", "Web", "App"], [0, 1, 2, 2], 0.6),
        "State": make.category(
            ["CA", "TX", "NY", "FL", "WA", "IL", "OH"], [0] * 4, 0.0
        ),
        "Opt-In": make.flag([0.2, 0.5, 0.7, 0.9], ("N", "Y")),
        "Notes": ["spoke with the customer about delivery " + str(i) for i in range(n)],
    }
    return columns, [c for c in list(columns)[2:] if c not in ("State", "Notes")], {}


def hotel(make: Maker) -> Export:
    rng, n = make.rng, make.n
    columns = {
        "Gast-Nr": rng.permutation(n) + 70_000,
        "Nationalität": make.category(
            ["DE", "AT", "CH", "NL", "IT", "UK"], [0, 1, 2, 3], 0.35
        ),
        "Nächte": make.count([1, 3, 7, 2]) + 1,
        "Rate": [_german(v) for v in make.normal([95, 120, 160, 240], 18)],
        "Vorlauf (Tage)": make.amount([1.2, 3.2, 4.6, 3.0], 0.6).round(),
        "Restaurant": [_german(v) for v in make.amount([2.5, 3.6, 4.4, 5.4], 0.6)],
        "Personen": make.count([0.1, 1.0, 2.2, 0.8]) + 1,
        "Buchung": make.category(
            ["Portal", "Telefon", "Web", "Firma"], [3, 0, 2, 1], 0.65
        ),
        "Zimmer": make.category(
            ["Einzel", "Doppel", "Familie", "Suite"], [0, 1, 2, 3], 0.7
        ),
        "Haustier": make.flag([0.02, 0.1, 0.3, 0.1], ("nein", "ja")),
        "Letzter Besuch": _date_code(
            make, make.date([800, 600, 400, 700], 500, "%d.%m.%Y"), "01.01.1900"
        ),
    }
    return (
        columns,
        list(columns)[1:],
        {"sep": "\t", "title": "Gästeliste\n\n"},
    )


def donors(make: Maker) -> Export:
    rng, n = make.rng, make.n
    columns = {
        "guid": [
            f"{rng.integers(2**62):016x}{rng.integers(2**62):016x}" for _ in range(n)
        ],
        "gifts": make.count([1, 3, 8, 4]) + 1,
        "largest_gift": make.amount([3.0, 3.8, 4.4, 7.0], 0.6),
        "total": make.amount([3.2, 4.8, 6.2, 8.0], 0.6),
        "age": make.gaps(make.normal([30, 48, 66, 58], 8).round(), 0.1),
        "events": make.count([0.3, 0.8, 1.5, 3.0]),
        "first_gift": make.date([1300, 700, 0, 500], 500, "%Y-%m-%d"),
        "payment": make.category(
            ["card", "debit", "cheque", "transfer"], [0, 1, 2, 3], 0.65
        ),
        "appeal": make.category(["social", "mail", "phone", "gala"], [0, 1, 1, 3], 0.6),
        "volunteer": make.flag([0.3, 0.2, 0.1, 0.1], ("false", "true")),
        "region": make.category(["N", "E", "S", "W"], [0] * 4, 0.0),
        "batch": rng.integers(1, 13, n),
    }
    return (
        columns,
        [c for c in list(columns)[1:] if c not in ("region", "batch")],
        {"na": "N/A"},
    )


STYLES: dict[str, list[Callable[[Maker], Export]]] = {
    "design": [german_shop, english_saas, french_insurer, bank],
    "report": [spanish_gym, us_retail, hotel, donors],
}


def _german(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def _french(value: float) -> str:
    return f"{value:,.2f} €".translate(str.maketrans(",.", " ,"))


def _code(make: Maker, values: np.ndarray, code: int, share: float) -> np.ndarray:
    return np.where(make.rng.random(make.n) < share, code, values).astype(int)


def _date_code(make: Maker, values: np.ndarray, code: str) -> np.ndarray:
    return np.where(make.rng.random(make.n) < 0.02, code, values)


def write(
    style: Callable[[Maker], Export], seed: int, folder: Path
) -> tuple[Path, Maker]:
    """Write the file of a style, and return where, and its groups."""
    make = Maker(seed, 3000, 4)
    columns, _, form = style(make)
    path = folder / f"{style.__name__}-{seed}.csv"
    text = pd.DataFrame(columns).to_csv(
        index=False, sep=form.get("sep", ","), na_rep=form.get("na", "")
    )
    path.write_text(form.get("title", "") + text, encoding=form.get("code", "utf-8"))
    return path, make


def read_by_hand(style: Callable[[Maker], Export], seed: int) -> tuple[list, Maker]:
    """Return telling columns: floats, or codes of categories, as integers."""
    make = Maker(seed, 3000, 4)
    columns, told, _ = style(make)
    read = []
    for name in told:
        values = pd.Series(np.asarray(columns[name], dtype=object)).astype(str)
        numbers = _as_numbers(values)
        words = values.astype("category").cat.codes.to_numpy(np.int64)
        read.append(words if numbers is None else numbers)
    return read, make


def cluster_by_hand(columns: list[np.ndarray], make: Maker) -> float:
    """Return the index of k-means on scaled numbers and indicators."""
    features = [
        np.eye(column.max() + 1)[column]
        if column.dtype == np.int64
        else ((column - column.mean()) / column.std())[:, None]
        for column in columns
    ]
    found = KMeans(make.k, n_init=10, random_state=0).fit_predict(np.hstack(features))
    return float(adjusted_rand_score(make.groups, found))


def find_ceiling(columns: list[np.ndarray], make: Maker) -> float:
    """Return the index of naive Bayes that knows the groups."""
    prior = np.log(np.bincount(make.groups) / make.n)
    scores = np.tile(prior, (make.n, 1))
    for column in columns:
        model = CategoricalNB() if column.dtype == np.int64 else GaussianNB()
        values = column[:, None]
        scores += model.fit(values, make.groups).predict_log_proba(values) - prior
    return float(adjusted_rand_score(make.groups, scores.argmax(axis=1)))


def _as_numbers(values: pd.Series) -> np.ndarray | None:
    """Return numbers or days, on a logarithmic scale if skewed; None for words."""
    if values.str.contains(r"\d{1,4}[-./]\d\d?[-./]\d", regex=True).mean() > 0.9:
        first = values.str.contains(r"^\d{4}").all()
        us = (
            values.str.contains("/").any()
            and values.str.split("/").str[1].astype(int).max() > 12
        )
        form = "%Y-%m-%d" if first else "%m/%d/%Y" if us else None
        days = pd.to_datetime(values, format=form, dayfirst=form is None)
        days = days.where(days.dt.year > 1950, days.median())
        return days.to_numpy().astype("datetime64[D]").astype(float)
    plain = values.str.replace(r"[€$%\s]", "", regex=True)
    if plain.str.contains(r",\d\d?$", regex=True).mean() > 0.9:
        plain = plain.str.replace(".", "", regex=False).str.replace(
            ",", ".", regex=False
        )
    numbers = pd.to_numeric(plain.str.replace(",", "", regex=False), errors="coerce")
    if numbers.isna().mean() > 0.2:
        return None
    numbers = numbers.where(~numbers.isin([-1, 99, 999]))
    numbers = numbers.fillna(numbers.median())
    skewed = numbers.min() >= 0 and numbers.skew() > 1.0
    return (np.log1p(numbers) if skewed else numbers).to_numpy(float)


def main() -> None:
    """Print the index of each style: ours, and what could be had."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=tuple(STYLES), default="report")
    parser.add_argument("--seeds", default="200-202", help="first and last")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    warnings.simplefilter("ignore")
    print(f"{'style':<16}{'ours':>8}{'by hand':>9}{'ceiling':>9}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for style in STYLES[options.half]:
            found = []
            for seed in seeds:
                path, make = write(style, seed, Path(folder))
                model = TableClusterer(NystromKMeans(4, random_state=0))
                ours = adjusted_rand_score(make.groups, model.fit_predict(str(path)))
                read = read_by_hand(style, seed)
                found.append((ours, cluster_by_hand(*read), find_ceiling(*read)))
            rows.append(np.mean(found, axis=0))
            _print_line(style.__name__, rows[-1])
    _print_line("mean", np.mean(rows, axis=0))


def _print_line(name: str, row: np.ndarray) -> None:
    print(f"{name:<16}{row[0]:8.3f}{row[1]:9.3f}{row[2]:9.3f}", flush=True)


if __name__ == "__main__":
    main()
