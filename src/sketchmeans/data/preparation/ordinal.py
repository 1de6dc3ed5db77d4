"""Columns of ordered words: answers from "never" to "always", ranges such as 18-24."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from sketchmeans.data.preparation.column_plan import ColumnPlan, Rules, leave_out
from sketchmeans.data.preparation.encoders import OrdinalEncoder
from sketchmeans.data.preparation.values import to_words

if TYPE_CHECKING:
    import pyarrow as pa

#: Fewer levels than these are categories, unless the user says that they are ordered.
_MIN_LEVELS = 3
#: Scales of answers, the lowest first; in braces, what may stand in one place.
_SCALES = """
{strongly completely totally}+disagree {disagree} {somewhat slightly rather}+disagree
    {neutral undecided neither neither+agree+nor+disagree neither+agree+or+disagree}
    {somewhat slightly rather}+agree {agree} {strongly completely totally}+agree
{very extremely completely}+dissatisfied {dissatisfied unsatisfied}
    {somewhat slightly}+dissatisfied
    {neutral neither neither+satisfied+nor+dissatisfied}
    {somewhat slightly}+satisfied {satisfied} {very extremely completely}+satisfied
{very extremely}+unlikely {unlikely} {somewhat}+unlikely
    {neutral neither neither+likely+nor+unlikely} {somewhat}+likely {likely}
    {very extremely}+likely
{never} {almost+never hardly+ever} {rarely seldom} {sometimes occasionally}
    {often frequently regularly} {usually very+often almost+always} {always}
{never} {yearly annually once+a+year} {quarterly} {monthly once+a+month}
    {weekly once+a+week} {daily every+day}
{not+at+all} {a+little slightly} {somewhat moderately} {quite+a+bit very}
    {extremely very+much a+lot a+great+deal}
{none} {mild minor slight} {moderate} {severe major} {very+severe critical}
{very+poor terrible very+bad} {poor bad} {fair average ok okay acceptable} {good}
    {very+good} {excellent}
{very+low} {low} {medium moderate normal} {high} {very+high} {urgent} {critical}
{xxs} {xs extra+small} {s small} {m medium} {l large} {xl extra+large} {xxl 2xl}
    {xxxl 3xl}
{stimme trifft}+{überhaupt gar}+nicht+zu {stimme trifft}+nicht+zu
    {stimme trifft}+eher+nicht+zu {teils+teils teils/teils weder+noch neutral}
    {stimme trifft}+eher+zu {stimme trifft}+zu {stimme trifft}+{voll völlig}+zu
{stimme trifft}+{überhaupt gar}+nicht+zu {stimme trifft}+nicht+zu
    {stimme trifft}+eher+nicht+zu {teils+teils teils/teils weder+noch neutral}
    {stimme trifft}+eher+zu {stimme trifft}+zu {stimme trifft}+voll+und+ganz+zu
{sehr+unzufrieden} {unzufrieden} {eher+unzufrieden} {neutral teils+teils teils/teils}
    {eher+zufrieden} {zufrieden} {sehr+zufrieden}
{nie niemals} {fast+nie} {selten} {manchmal gelegentlich} {oft häufig}
    {meistens sehr+oft fast+immer} {immer}
{sehr+niedrig sehr+gering} {niedrig gering} {mittel normal} {hoch} {sehr+hoch}
    {dringend kritisch}
{sehr+schlecht} {schlecht} {mittel mittelmäßig} {gut} {sehr+gut} {ausgezeichnet}
{pas+du+tout+d'accord} {pas+d'accord plutôt+pas+d'accord}
    {neutre ni+d'accord+ni+pas+d'accord} {d'accord plutôt+d'accord}
    {tout+à+fait+d'accord}
{jamais} {rarement} {parfois quelquefois} {souvent} {toujours}
{très+faible} {faible} {moyen moyenne} {élevé élevée} {très+élevé très+élevée}
{totalmente muy}+en+desacuerdo {en+desacuerdo}
    {neutral ni+de+acuerdo+ni+en+desacuerdo} {de+acuerdo} {totalmente muy}+de+acuerdo
{nunca} {casi+nunca} {rara+vez raramente} {a+veces} {a+menudo frecuentemente}
    {casi+siempre} {siempre}
{muy+bajo muy+baja} {bajo baja} {medio media} {alto alta} {muy+alto muy+alta}
{mai} {raramente} {a+volte qualche+volta} {spesso} {sempre}
"""
#: Words beside answers that say nothing.
_NO_ANSWER = (
    *("don't know", "do not know", "not sure", "unsure", "unknown", "no answer"),
    *("prefer not to say", "prefer not to answer", "not applicable", "keine angabe"),
    *("weiß nicht", "weiss nicht", "unbekannt", "ne sait pas", "no sabe", "non so"),
)
#: What ranges are made of: numbers, what stands between two, and open ends.
_NUMBER = re.compile(
    r"\d+(?:[.,]\d{3})*(?:[.,]\d+)?(?:\s?k(?![^\W\d_]))?", re.IGNORECASE
)
_TOKEN = re.compile(r"[^\W\d_]+|<=|>=|[^\w\s.,]")
_BETWEEN = ("-", "–", "—", "to", "bis", "and", "und", "à", "a")
_BELOW = (
    *("<", "<=", "≤", "under", "below", "less", "than", "up", "to", "unter", "bis"),
    *("weniger", "als"),
)
_ABOVE = (
    *(">", ">=", "≥", "+", "over", "above", "more", "than", "or", "and", "older"),
    *("über", "ab", "mehr", "als"),
)
_CURRENCY = ("$", "€", "£", "usd", "eur", "gbp")


def plan_ordinal(name: str, column: pa.ChunkedArray, rules: Rules) -> ColumnPlan:
    """Return the plan for a column of ordered words; not used if there is no order."""
    del rules
    words = to_words(column).fold()
    found = find_order(words.levels, 2)
    if found is None:
        return leave_out(name, "ordinal", "no order of its values is known")
    levels, missing = found
    reason = f"{len(levels)} ordered levels, from {levels[0]!r} to {levels[-1]!r}"
    if missing:
        reason += f"; {' and '.join(map(repr, missing))} count as missing"
    return ColumnPlan(name, "ordinal", reason, OrdinalEncoder(levels, missing))


def find_order(
    levels: Sequence[str], min_levels: int = _MIN_LEVELS
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return levels in their order, and words that say nothing; None if none is known.

    Examples
    --------
    >>> find_order(["Often", "Never", "don't know", "Sometimes"])
    (('Never', 'Sometimes', 'Often'), ("don't know",))
    >>> find_order(["25-34", "under 18", "35+", "18-24"])
    (('under 18', '18-24', '25-34', '35+'), ())
    >>> find_order(["red", "green", "blue"]) is None
    True
    """
    missing = [level for level in levels if level.casefold() in _NO_ANSWER]
    answers = [level for level in levels if level not in missing]
    if len(answers) < min_levels:
        return None
    ranks = _rank_answers(answers) or _rank_ranges(answers)
    if ranks is None:
        return None
    order = sorted(range(len(answers)), key=ranks.__getitem__)
    return tuple(answers[i] for i in order), tuple(sorted(missing))


def _rank_answers(levels: Sequence[str]) -> list[float] | None:
    """Return the places of levels in one of the scales, which all have to be in."""
    words = [" ".join(re.split(r"[\s_]+", level.casefold())) for level in levels]
    last = {word.rpartition(" ")[2] for word in words}
    shorter = [word.rpartition(" ")[0] for word in words]  # very important: very
    for scale in _read_scales():
        for tried in (words, shorter) if len(last) == 1 else (words,):
            if all(word in scale for word in tried):
                places = [scale[word] for word in tried]
                if len(set(places)) == len(places):
                    return [float(place) for place in places]
    return None


def _read_scales() -> Iterator[dict[str, int]]:
    """Yield the place of each answer of a scale."""
    for line in re.sub(r"\n\s+", " ", _SCALES).strip().splitlines():
        places: dict[str, int] = {}
        for place, step in enumerate(re.findall(r"(?:\{[^}]*\}|\S)+", line)):
            spelled = [""]
            for braces, plain in re.findall(r"\{([^}]*)\}|([^{}]+)", step):
                parts = braces.split() or [plain]
                spelled = [start + part for start in spelled for part in parts]
            places |= {word.replace("+", " "): place for word in spelled}
        yield places


def _rank_ranges(levels: Sequence[str]) -> list[float] | None:
    """Return the middles of ranges that do not overlap: 18-24, 25-34, 35+."""
    ranges, units = [], set()
    for level in levels:
        found = _read_range(level)
        if found is None:
            return None
        low, high, others = found
        ranges.append((low, high))
        units |= others
    ordered = sorted(ranges)
    is_apart = all(a[1] <= b[0] for a, b in pairwise(ordered))
    is_range = any(low < high for low, high in ranges)
    if not is_range or not is_apart or len(units) > 1 or len(set(ranges)) < len(ranges):
        return None
    return [float(ordered.index(one)) for one in ranges]


def _read_range(level: str) -> tuple[float, float, set[str]] | None:
    """Return both ends of a range, and the words of its unit."""
    numbers = [_read_number(one) for one in _NUMBER.findall(level)]
    words = _TOKEN.findall(_NUMBER.sub(" ", level.casefold()))
    words = [word for word in words if word not in _CURRENCY]
    known: tuple[str, ...] = ()
    if len(numbers) == 2 and numbers[0] < numbers[1]:
        known, low, high = _BETWEEN, numbers[0], numbers[1]
        if not set(known) & set(words):
            return None
    elif len(numbers) != 1:
        return None
    elif words and words[0] in _BELOW:
        known, low, high = _BELOW, -math.inf, numbers[0]
    elif set(_ABOVE) & set(words):
        known, low, high = _ABOVE, numbers[0], math.inf
    else:
        low, high = numbers[0], numbers[0]
    return low, high, {word for word in words if word not in known}


def _read_number(text: str) -> float:
    digits = re.sub(r"[.,](?=\d{3}(?!\d))", "", text.strip().lower().removesuffix("k"))
    factor = 1e3 if text.strip()[-1] in "kK" else 1.0
    return factor * float(digits.replace(",", "."))
