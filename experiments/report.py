"""RESULTS.md: verdicts with their numbers, figures and tables from one commit."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from textwrap import fill

import numpy as np
import pandas as pd

from experiments import datasets
from experiments.catalog import EXPERIMENTS
from experiments.claims import CLAIMS, EARLIER
from experiments.corrections import CORRECTED, FOREWORD, RUN_NOTES
from experiments.evidence import Evidence, Finding, Part, Verdict, judge
from experiments.figures import save
from experiments.guides import feature_guide, landmark_guide
from experiments.stages import second_looks
from experiments.store import Store, check_one_origin
from experiments.tables import markdown

Tables = dict[str, pd.DataFrame]
Gathered = dict[str, list[Evidence]]

_INTRODUCTION = """# The papers, re-run

Written by `python -m experiments report`; every number below is computed from the files
in `experiments/results`, by the rules of `experiments/PROTOCOL.md`, fixed before these
draws were made but for those named below. Some rules were changed after an earlier run
had been seen, whose draws are not used: [what they
said](#verdicts-under-earlier-rules). Errors in the papers are in `docs/errata.md`.

FOREWORD

```console
$ export SKETCHMEANS_DATA=...                   # folder of .npz files
$ python -m experiments run all --jobs 2        # resumes where it was stopped
$ python -m experiments report
```

CR18: Calandriello & Rosasco, Statistical and computational trade-offs in kernel
k-means. L21: Liu, Refined learning bounds for kernel and approximate k-means. OG17:
Oglic & Gärtner, Nyström method with kernel k-means++ samples as landmarks. B14:
Boutsidis, Zouzias, Mahoney & Drineas, Randomized dimensionality reduction for k-means
clustering.
"""
_SMALL = """
**Not all of this is the full grid.** {names}. Verdicts that rest on less than the full
grid are marked.
"""


_MISSING = """## What is not here

- CR18: one fit of 8.1 million digits, whose rows alone are 6.4 GB (times are in
  proportion from 200,000); Corollary 1 (it needs a manifold of known dimension in
  feature space); Proposition 4 (margins cannot be measured). Theorem 2 in H_m: costs
  of seeds within Nyström over lower bounds stand with `l21_search`; Definition 4 on
  L21's mixture and all budgets with `lemmas`; the paper's solver, mini-batch k-means,
  with `cr18_mnist`.
- L21: Theorems 2, 6 and 7 are run on digits, not on tables of its §5.2.
- OG17: CT-slice; six of the ten bandwidths; oversampled K-DPP, restarts and Lloyd
  refinement. Corollary 2 is false as an equality (errata); its inequality is reported
  with O11.
- B14: LIGHT; projections to 8 ln m/ε² on USPS, which has fewer features; that to 432
  of ORL's 4,096 features, which a slip left out: more than its 400 rows were taken for
  too many. The code is mended since; its cells are not run again.
"""


_FIGURES = """## Figures and tables

Bands and bars in the figures are 95% intervals of a mean by Student's law, where there
are five draws or more; points of fewer draws have none. Tables have means over draws.
"""


def write_report(out: Path) -> Path:
    """Draw the figures and write RESULTS.md; return its path."""
    for name, table in results(out).items():
        more = getattr(EXPERIMENTS[name], "more_figures", None)
        drawn = {name: EXPERIMENTS[name].figure(table), **(more(table) if more else {})}
        for stem, figure in drawn.items():
            save(figure, out / "figures" / f"{stem}.png")
    path = out / "RESULTS.md"
    path.write_text(report_text(out), encoding="utf-8")
    return path


def results(out: Path) -> Tables:
    """Return the tables of the experiments that were run; all are of one commit."""
    tables, commits = {}, set()
    for name in EXPERIMENTS:
        table = Store(_csv(out, name), []).table()
        if not table.empty:
            tables[name] = table
            commits.add(check_one_origin(table, _csv(out, name)))
    if len(commits) > 1:
        raise ValueError(
            f"{out / 'results'} has rows of {', '.join(sorted(commits))}: results of "
            "different commits do not mix. Run what is older again."
        )
    return tables


def report_text(out: Path) -> str:
    """Return what RESULTS.md says."""
    tables = results(out)
    evidence = gather(tables)
    findings = decide(evidence)
    short = {name: _shortage(name, table) for name, table in tables.items()}
    small = [f"{name}: {words}" for name, words in short.items() if words]
    parts = [_introduction(), _provenance(out, tables)]
    if small:
        parts.append(_SMALL.format(names="; ".join(small)))
    parts += [
        f"**{tally(findings)}**\n",
        second_looks(out, _open(evidence, findings, list(tables)))
        if tables and not small
        else "",
        _verdicts(findings, _shortages(evidence, short)),
        _corrected(findings),
        _earlier(findings),
        _MISSING,
        _FIGURES,
    ]
    parts += [landmark_guide(tables), feature_guide(tables)]
    parts += [_section(name, table) for name, table in tables.items()]
    parts += [_data_section(), _machine(out)]
    return "\n".join(part for part in parts if part)


def _introduction() -> str:
    words = FOREWORD.format(names=", ".join(CORRECTED))
    return _INTRODUCTION.replace("FOREWORD", fill(words, 88))


def _grid(table: pd.DataFrame) -> str:
    return str(table["grid"].iloc[0])


def _settings(name: str, table: pd.DataFrame) -> tuple[int, int]:
    """Return how many settings were run, and how many the grid has."""
    all_cells = EXPERIMENTS[name].cells(_grid(table), 1)
    keys = [key for key in all_cells[0] if key != "repeat"]
    wanted = {tuple(cell[key] for key in keys) for cell in all_cells}
    return table.groupby(keys).ngroups, len(wanted)


def _shortage(name: str, table: pd.DataFrame) -> str:
    """Return what is missing from the full grid, or nothing."""
    done, wanted = _settings(name, table)
    words = "" if _grid(table) == "full" else _grid(table)
    if done < wanted:
        words += f"{', ' if words else ''}{done} of {wanted} settings"
    return words


def _shortages(gathered: Gathered, short: dict[str, str]) -> dict[str, str]:
    """Return in words what the experiments of each claim lack."""
    found: dict[str, list[str]] = {}
    for name, items in gathered.items():
        for item in items if short[name] else ():
            found.setdefault(item.claim, []).append(short[name])
    return {claim: ", ".join(dict.fromkeys(words)) for claim, words in found.items()}


def gather(tables: Tables) -> Gathered:
    """Return the evidence of each experiment."""
    found = {}
    for name, table in tables.items():
        # References of another experiment, where they are dear.
        other = tables.get(getattr(EXPERIMENTS[name], "BORROWS", ""))
        if other is not None:
            table = pd.concat([table, other[other.part == "reference"]])
        found[name] = EXPERIMENTS[name].claims(table)
    return found


def decide(gathered: Gathered) -> dict[str, Finding]:
    """Return the finding on every claim, judged paper by paper."""
    evidence: dict[str, Evidence] = {}
    for item in chain.from_iterable(gathered.values()):
        # Costs and times of a claim may be of two experiments.
        known = evidence.get(item.claim, Evidence(item.claim, ()))
        notes = [note for note in (known.note, item.note) if note]
        both = [*known.parts, *item.parts]
        before = [*known.earlier, *item.earlier]
        evidence[item.claim] = Evidence(
            item.claim, both, "; ".join(notes), before, item.remark or known.remark
        )
    papers: dict[str, list[Evidence]] = {}
    for claim in CLAIMS.values():
        found = evidence.get(claim.id, Evidence(claim.id, (), "its cells were not run"))
        papers.setdefault(claim.paper, []).append(found)
    findings = [finding for items in papers.values() for finding in judge(items)]
    found = {finding.claim: finding for finding in findings}
    return {claim: found[claim] for claim in CLAIMS}


def undecided(out: Path, names: list[str]) -> dict[str, set[str]]:
    """Return the experiments that leave claims undecided, with these claims."""
    gathered = gather(results(out))
    return _open(gathered, decide(gathered), names)


def _open(
    gathered: Gathered, findings: dict[str, Finding], names: list[str]
) -> dict[str, set[str]]:
    # More repeats of what is decided, or cannot fail, decide nothing.
    left = {
        id(part)
        for finding in findings.values()
        for part, verdict in zip(finding.parts, finding.verdicts, strict=True)
        if finding.verdict is verdict is Verdict.UNDECIDED
    }
    found = {
        name: {
            item.claim
            for item in gathered.get(name, ())
            if any(id(part) in left for part in item.parts)
        }
        for name in names
    }
    return {name: claims for name, claims in found.items() if claims}


def tally(findings: dict[str, Finding]) -> str:
    """Return how many claims have which verdict, in a line."""
    counts = Counter(finding.verdict for finding in findings.values())
    words = [f"{counts[verdict]} {verdict}" for verdict in Verdict]
    words[-1] += " (numbers that could not have contradicted the claim)"
    return f"Of {len(findings)} claims: {', '.join(words)}."


def _provenance(out: Path, tables: Tables) -> str:
    commits = {str(table["commit"].iloc[0]) for table in tables.values()}
    runs = Store(_csv(out, "runs"), []).table()
    # That of the runs: it may have been changed since.
    protocols = dict.fromkeys(runs["protocol"]) if len(runs) else {}
    cpu = sum(
        table.drop_duplicates(["seed"]).cpu_seconds.sum() for table in tables.values()
    )
    return (
        f"Code: commit {', '.join(sorted(commits)) or 'none'}. Protocol: commit "
        f"{', '.join(map(str, protocols)) or 'none'}. {cpu / 3600:.2f} CPU hours.\n"
    )


def _verdicts(findings: dict[str, Finding], grids: dict[str, str]) -> str:
    lines = [
        "## Verdicts\n",
        "A part has its estimate, its 95% interval, what is claimed, and the distance "
        "to the nearest end of the region in standard deviations of a draw (d, "
        "positive inside); ✓ is supported, ✗ contradicted, ? undecided, · reported: it "
        "decides nothing, for the reason that it has. *Decisions are at 0.05/3 for all "
        "parts of a paper together (Holm), so a part may be undecided though its 95% "
        "interval is inside.*\n",
        "| | claim | verdict | parts |",
        "|---|---|---|---|",
    ]
    for name, finding in findings.items():
        claim = CLAIMS[name]
        cells = [
            _part_text(part, verdict)
            for part, verdict in zip(finding.parts, finding.verdicts, strict=True)
        ]
        if finding.note:
            # An asterisk in a note, as that of m*, does not end the italics.
            cells.append("*" + finding.note.replace("*", r"\*") + "*")
        text = "<br>".join(cells).replace("|", "\\|")
        verdict = f"**{finding.verdict}**"
        if finding.remark:
            verdict += f" ({finding.remark})"
        if name in grids:
            verdict += f" ({grids[name]})"
        lines.append(
            f"| {name} | {claim.statement} ({claim.source}) | {verdict} | {text} |"
        )
    return "\n".join([*lines, ""])


def _corrected(findings: dict[str, Finding]) -> str:
    """Return the rules as committed of the claims whose rules were corrected."""
    lines = [
        "## Rules corrected after the run\n",
        "By the rules as they were committed, on these draws; why they were corrected "
        "stands at the end of the protocol.\n",
        "| | rule as committed | its verdict | verdict |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {rule} | {then} | {findings[name].verdict} |"
        for name, (rule, then) in CORRECTED.items()
    ]
    return "\n".join([*lines, ""])


def _earlier(findings: dict[str, Finding]) -> str:
    """Return what the rules said that were changed after results had been seen."""
    lines = [
        "## Verdicts under earlier rules\n",
        "Rules that were changed after the results of commit 11189a0 had been seen. "
        "The earlier rule is also applied to the draws of this page, where it asks for "
        "another number (level 0.05/3, divided by the number of parts of the paper).\n",
        "| | earlier rule | its verdict then | its verdict on these draws | verdict |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {rule} | {then} | {findings[name].earlier or ''} | "
        f"{findings[name].verdict} |"
        for name, (rule, then) in EARLIER.items()
    ]
    return "\n".join([*lines, ""])


def _part_text(part: Part, verdict: Verdict) -> str:
    marks = {Verdict.SUPPORTED: "✓", Verdict.CONTRADICTED: "✗", Verdict.REPORTED: "·"}
    effect = f", d = {part.effect:.1f}" if np.isfinite(part.effect) else ""
    return f"{marks.get(verdict, '?')} {part}{effect}"


def _section(name: str, table: pd.DataFrame) -> str:
    experiment = EXPERIMENTS[name]
    keys = [key for key in experiment.cells("full", 1)[0] if key != "repeat"]
    repeats = table.groupby(keys)["repeat"].nunique()
    done, wanted = _settings(name, table)
    lines = [
        f"## {name}: {experiment.TITLE}\n",
        f"![{experiment.TITLE}](figures/{name}.png)\n",
        f"{len(table):,} rows in [results/{name}.csv](results/{name}.csv), "
        f"{_grid(table)} grid, {done} of {wanted} settings, {_range(repeats)} repeats "
        "of a setting.\n",
        f"Against the paper: {experiment.REDUCED}\n",
    ]
    if name in RUN_NOTES:
        lines.append(f"{RUN_NOTES[name]}\n")
    for stem, title in getattr(experiment, "MORE_FIGURES", {}).items():
        lines.insert(2, f"![{title}](figures/{stem}.png)\n")
    return "\n".join([*lines, markdown(experiment.summary(table), 3), ""])


def _range(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


def _data_section() -> str:
    lines = ["## Data\n", "| name | what it is |", "|---|---|"]
    lines += [f"| {name} | {entry.note} |" for name, entry in datasets.REGISTRY.items()]
    return "\n".join([*lines, ""])


def _machine(out: Path) -> str:
    runs = Store(_csv(out, "runs"), []).table()
    if runs.empty:
        return ""
    lines = ["## Machine and versions\n"]
    columns = [name for name in runs.columns if name not in ("run", "command")]
    for _, row in runs[columns].drop_duplicates().iterrows():
        lines.append("- " + ", ".join(f"{name} {row[name]}" for name in columns))
    lines.append(
        f"\n{len(runs)} runs, listed with their commands in "
        "[results/runs.csv](results/runs.csv); each row of the results names its run, "
        "commit, seed, cores, CPU and wall seconds.\n"
    )
    return "\n".join(lines)


def _csv(out: Path, name: str) -> Path:
    return out / "results" / f"{name}.csv"
