"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re
from ast import literal_eval

#: The parameters that are options of the same name, and those of another name.
_SAME = """
checkpoint columns coef0 degree exclude gamma header image_shape init kernel
label_column landmarks max_iter max_memory missing n_clusters n_init n_landmarks
n_neighbors rank
reducer scale tol zero_based
"""
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME.split()}
_OPTIONS |= {"random_state": "--seed", "n_jobs": "--jobs"}
_CLASSES = {
    "NystromKMeans": "--estimator nystrom",
    "KernelKMeans": "--estimator exact",
    "SketchedKMeans": "--estimator sketched",
    "SpectralKMeans": "--estimator spectral",
}

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
#: Strings, lists and tuples, objects such as Sigmoid(coef0=1), numbers and words.
_VALUE = (
    rf"{_QUOTED}|\[(?:{_QUOTED}|[^\]'\"])*\]|\([^()]*\)|\w+\([^()]*\)|[\w.+-]*[\w+]"
)
_PARAMETER = re.compile(rf"\b({'|'.join(_OPTIONS)})=({_VALUE})?")
#: The same, or an object alone, whose parameters are not options.
_PARAMETER_OR_OBJECT = re.compile(rf"{_PARAMETER.pattern}|\b[A-Z]\w*\([^()]*\)")
#: What to do about messages of scikit-learn.
_ADVICE = {"X contains negative values.": "Try --scale none."}
#: Names without a value that are not English words; not in quotes or in paths.
_WORDS = "|".join([*(name for name in _OPTIONS if "_" in name), *_CLASSES])
_BARE = re.compile(rf"(?<!['\"\w/.-])({_WORDS})(?![\w='\"/(-]|\.\w)")


def names_parameter(text: str) -> bool:
    """Say whether a message is about the value of a parameter: it starts with it."""
    return _PARAMETER.match(text) is not None


def translate_errors(text: str) -> str:
    """Return a message of the library in the words of the command line.

    Examples
    --------
    >>> translate_errors("n_landmarks=900 should be <= n_samples=20.")
    '--n-landmarks 900 should be <= n_samples=20.'
    >>> translate_errors("exclude=['a', 'b c'] leaves no column; image_shape=(28, 28)")
    "--exclude 'a,b c' leaves no column; --image-shape 28x28"
    >>> translate_errors("max_memory allows 1 kB. Lower n_landmarks or missing='drop'.")
    '--max-memory allows 1 kB. Lower --n-landmarks or --missing drop.'
    """

    def translate_bare(text: str) -> str:
        return _BARE.sub(lambda found: (_OPTIONS | _CLASSES)[found[0]], text)

    if text in _ADVICE:
        return f"{text} {_ADVICE[text]}"
    pieces, end = [], 0
    for found in _PARAMETER_OR_OBJECT.finditer(text):
        pieces.append(translate_bare(text[end : found.start()]))
        option = found[1] and f"{_OPTIONS[found[1]]} {_as_typed(found[2] or '')}"
        pieces.append(option.rstrip() if option else found[0])
        end = found.end()
    return "".join([*pieces, translate_bare(text[end:])])


def _as_typed(value: str) -> str:
    """Return a Python value as it is typed in a shell."""
    if re.fullmatch(r"\w+\(.*\)", value, re.S):  # an object
        return value.partition("(")[0].lower()
    if value[:1] not in ("'", '"', "[", "("):
        return {"True": "yes", "False": "no"}.get(value, value)
    try:
        parts = literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    if isinstance(parts, tuple):
        return "x".join(str(part) for part in parts)
    text = parts if isinstance(parts, str) else ",".join(str(part) for part in parts)
    return text if re.fullmatch(r"\S+", text) else f"'{text}'"
