"""Words among numbers that stand for missing values."""

from __future__ import annotations

#: Words among numbers stand for missing values if they are at most this many different
#: ones, in at most this share of the values, among this many different numbers.
STRAY_WORDS, STRAY_SHARE, STRAY_NUMBERS = 3, 0.25, 10


def are_stray(words: list[str], n_numbers: int) -> bool:
    """Say whether words are too few, among so many numbers, to be values."""
    no_digits = not any(sign.isdigit() for word in words for sign in word)
    return len(words) <= STRAY_WORDS and n_numbers >= STRAY_NUMBERS and no_digits
