"""Words among numbers that stand for missing values."""

from __future__ import annotations

#: Words among numbers stand for missing values if they are at most this many different
#: ones, in at most a share of the values: the first among many different numbers, as
#: ages are, the second among few, as ratings are.
STRAY_WORDS, STRAY_SHARES = 3, (0.25, 0.1)
#: So many different numbers are many, and few.
_MANY, _FEW = 10, 3


def are_stray(words: list[str], n_numbers: int, share: float) -> bool:
    """Say whether words are too few, among so many different numbers, to be values.

    Examples
    --------
    >>> are_stray(["unknown"], 80, 0.2), are_stray(["ground"], 5, 0.2)
    (True, False)
    >>> are_stray(["n.b."], 5, 0.05)
    True
    """
    if any(sign.isdigit() for word in words for sign in word) or n_numbers < _FEW:
        return False
    most = STRAY_SHARES[0] if n_numbers >= _MANY else STRAY_SHARES[1]
    return len(words) <= STRAY_WORDS and share <= most
