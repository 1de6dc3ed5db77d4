"""Values, columns and clusters in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sketchmeans.cluster.segment_names import MAX_NAME_LENGTH
from sketchmeans.numerics.escape import escape_line

if TYPE_CHECKING:
    from sketchmeans.diagnostics.segment_facts import Fact

#: Longest name of a column or a level in a phrase, and in a fact.
_PHRASE_LENGTH, _FACT_LENGTH = 28, 120
#: Facts of at least this strength are worth a name.
_TELLING = 0.33
#: Length of a range in days below which days are shown, and not months.
_FEW_DAYS = 400.0


def to_words(name: str, length: int = _FACT_LENGTH) -> str:
    """Return the name of a column or a level as words, cut where it is too long.

    Examples
    --------
    >>> to_words("days_since_order"), to_words("(missing)")
    ('days since order', 'missing')
    """
    text = " ".join(escape_line(str(name)).replace("_", " ").split())
    text = "".join(sign for sign in text if sign.isprintable())  # no joiners
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    if len(text) > length:  # columns of many names differ at the end
        start, end = text[: length // 2], text[-((length + 1) // 2) :]  # words if any
        text = f"{start.rpartition(' ')[0] or start}…{end.partition(' ')[2] or end[1:]}"
    return text or "(no name)"


def to_few_words(name: str) -> str:
    """Return the name of a column or a level as words for a phrase."""
    return to_words(name, _PHRASE_LENGTH)


def to_amount(name: str, is_high: bool, is_whole: bool) -> str:
    """Return a phrase for a number: many of what is counted, a high amount of others.

    Examples
    --------
    >>> to_amount("days_since_order", True, True), to_amount("revenue", False, False)
    ('many days since order', 'low revenue')
    """
    text = to_few_words(name)
    first = text.split()[0].lower()
    is_plural = first.endswith("s") and not first.endswith(("ss", "us", "is"))
    if is_whole and is_plural:
        return f"{'many' if is_high else 'few'} {text}"
    return f"{'high' if is_high else 'low'} {text}"


def to_time(name: str, is_early: bool) -> str:
    """Return a phrase for a date: what was done when, or a thing and its time.

    Examples
    --------
    >>> to_time("created_at", False), to_time("last_order", True)
    ('created recently', 'early last order')
    """
    text = to_few_words(name)
    first, *others = text.split()
    if not first.lower().endswith("ed"):
        return f"{'early' if is_early else 'recent'} {text}"
    if others and others[-1].lower() in ("at", "on", "date"):
        others.pop()
    return " ".join([first, *others, "early" if is_early else "recently"])


def format_percent(share: float) -> str:
    """Return a share in percent; no share but 0 and 1 is shown as 0% or 100%.

    Examples
    --------
    >>> [format_percent(share) for share in (0.42, 0.0, 0.004, 0.997, 1.0)]
    ['42%', '0%', '0.4%', 'nearly 100%', '100%']
    """
    if 0.0 < share < 0.0005:
        return "under 0.1%"
    if 0.0 < share < 0.0095:
        return f"{share:.1%}"
    return "nearly 100%" if 0.995 <= share < 1.0 else f"{share:.0%}"


def format_quantity(value: float, is_whole: bool = False) -> str:
    """Return a number in three digits, with thousands separated.

    Whole numbers that may be years are shown as they are.

    Examples
    --------
    >>> [format_quantity(value) for value in (0.01234, 34.56, 5512.3, 1.2e9, -3.0)]
    ['0.0123', '34.6', '5,510', '1.2 billion', '−3']
    >>> format_quantity(1987, is_whole=True)
    '1987'
    """
    if is_whole and 1500 <= value < 2200:
        return f"{value:.0f}"
    for unit, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if unit <= abs(value) < 1e3 * unit:
            return f"{value / unit:.3g} {word}".replace("-", "−")
    if 100.0 <= abs(value) < 1e6:
        step = 10.0 ** max(int(np.floor(np.log10(abs(value)))) - 2, 0)
        return f"{round(value / step) * step:,.0f}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def format_date(day: float, span: float) -> str:
    """Return a day since 1970 as month and year, or in full if the range is short."""
    try:
        date = np.datetime64(round(day), "D").item()
        return date.strftime("%d %b %Y" if span < _FEW_DAYS else "%b %Y")
    except (AttributeError, ValueError, OverflowError):  # beyond the calendar
        return f"day {day:.0f}"


def name_segments(facts: Sequence[Sequence[Fact]], sizes: Sequence[int]) -> list[str]:
    """Return a different name for each cluster, from what sets it apart most."""
    if sum(size > 0 for size in sizes) == 1:
        return ["All rows" if size else f"Empty {j}" for j, size in enumerate(sizes)]
    phrases = [_list_phrases(own) for own in facts]
    names = [_join(own[:2]) for own in phrases]
    _tell_degrees(names, phrases, facts)
    for n_used in (3, 4):
        for j in _find_repeated(names):
            names[j] = _join(phrases[j][:n_used])
    for j, size in enumerate(sizes):
        if not size:
            names[j] = f"Empty {j}"
        elif not names[j]:
            names[j] = f"Segment {j}"
    for j in _find_repeated(names):
        names[j] = f"{names[j][: MAX_NAME_LENGTH - 8]} ({j})"
    return names


def _list_phrases(facts: Sequence[Fact]) -> list[str]:
    """Return phrases of strong facts; of the strongest alone if there are no others."""
    strong = [fact.phrase for fact in facts if abs(fact.strength) >= _TELLING]
    return strong or [fact.phrase for fact in facts[:1]]


def _join(phrases: Sequence[str]) -> str:
    """Return a name of whole phrases that is not too long."""
    text = ""
    for phrase in phrases:
        longer = f"{text}, {phrase}" if text else phrase
        if len(longer) > MAX_NAME_LENGTH - 8:
            break
        text = longer
    return text[:1].upper() + text[1:]


def _find_repeated(names: Sequence[str]) -> list[int]:
    counts = Counter(name.casefold() for name in names)
    return [j for j, name in enumerate(names) if counts[name.casefold()] > 1]


def _tell_degrees(
    names: list[str], phrases: list[list[str]], facts: Sequence[Sequence[Fact]]
) -> None:
    """Say "very" in one of several equal names, where values are most extreme."""
    for name in {names[j] for j in _find_repeated(names)}:
        group = [j for j, other in enumerate(names) if other == name and facts[j]]
        numbers = [j for j in group if isinstance(facts[j][0].value, float)]
        if not numbers or facts[numbers[0]][0].level is not None:
            continue
        sign = np.sign(facts[numbers[0]][0].strength)
        most = max(numbers, key=lambda j: sign * float(facts[j][0].value))
        phrases[most] = [f"very {phrases[most][0]}", *phrases[most][1:]]
        names[most] = _join(phrases[most][:2])
