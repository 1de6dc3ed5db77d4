"""What a command prints: results to standard output, the rest to standard error."""

from __future__ import annotations

import json
import re
import shlex
import sys
import warnings
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sketchmeans.cli.options import ESTIMATORS, PrintOptions
from sketchmeans.numerics.escape import escape_control, escape_json, escape_line

if TYPE_CHECKING:
    from sketchmeans import Checkpoint

#: The parameters that are options of the same name, and those of another name.
_SAME = """
checkpoint columns coef0 decimal degree encoding exclude gamma header image_shape init
kernel label_column landmarks max_iter max_memory missing n_clusters n_init n_landmarks
n_neighbors na rank reducer scale sep sheet skip_rows tol trim zero_based
"""
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME.split()}
_OPTIONS |= {"random_state": "--seed", "n_jobs": "--jobs", "as_kinds": "--as"}
_OPTIONS |= {"id_column": "--id"}
_CLASSES = {name: f"--estimator {typed}" for typed, name in ESTIMATORS.items()}

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
#: Strings, lists and tuples, objects such as Sigmoid(coef0=1), numbers and words.
_VALUE = (
    rf"{_QUOTED}|\[(?:{_QUOTED}|[^\]'\"])*\]|\{{(?:{_QUOTED}|[^}}'\"])*\}}|"
    r"\([^()]*\)|\w+\([^()]*\)|[\w.+-]*[\w+]"
)
_PARAMETER = re.compile(rf"\b({'|'.join(_OPTIONS)})=({_VALUE})?")
#: The same, or an object alone, whose parameters are not options.
_PARAMETER_OR_OBJECT = re.compile(rf"{_PARAMETER.pattern}|\b[A-Z]\w*\([^()]*\)")
#: What to do about messages of scikit-learn.
_ADVICE = {"X contains negative values.": "Try --scale none."}
#: Names without a value that are not English words; not in quotes or in paths.
_WORDS = "|".join([*(name for name in _OPTIONS if "_" in name), *_CLASSES])
_BARE = re.compile(rf"(?<!['\"\w/.-])({_WORDS})(?![\w='\"/(-]|\.\w)")


class Screen:
    """The streams of one command, and how much is printed there.

    Parameters
    ----------
    options : PrintOptions
    labels_on_output : bool
        Standard output is for labels, so that everything else goes to standard error.
    answers : bool
        What is printed is the purpose of the command: `quiet` does not suppress it.

    Names of columns, classes and files may hold anything: control characters are
    spelled out, and nothing is read as markup.
    """

    def __init__(
        self,
        options: PrintOptions = PrintOptions(),  # noqa: B008 - it is frozen
        *,
        labels_on_output: bool = False,
        answers: bool = False,
    ) -> None:
        self.quiet, self.verbose = options.quiet, options.verbose
        self.as_json, self.debug = options.as_json, options.debug
        if self.quiet and self.verbose:
            raise typer.BadParameter("--quiet and --verbose exclude each other.")
        if labels_on_output and self.as_json:
            raise typer.BadParameter(
                "--json and labels cannot both go to standard output."
            )
        self._results_on_error = labels_on_output
        self._is_silent = self.as_json or (self.quiet and not answers)
        #: Names to print instead of the paths of temporary files.
        self.names: dict[str, str] = {}
        #: Holds the work that is done if the command is stopped.
        self.checkpoint: Checkpoint | None = None
        #: Files that are complete, whatever happens next.
        self.written: list[str] = []
        #: The signal that stops the command.
        self.signal: int | None = None
        current_screen.set(self)

    @cached_property
    def errors(self) -> Console:
        """Standard error."""
        return Console(stderr=True, soft_wrap=True, highlight=False)

    @cached_property
    def _results(self) -> Console:
        return Console(stderr=self._results_on_error, soft_wrap=True, highlight=False)

    def print(self, text: str = "", style: str = "") -> None:
        """Print a line of the result."""
        if not self._is_silent:
            self._results.print(Text(escape_control(self._rename(text)), style=style))

    def print_pairs(self, lines: Mapping[str, str]) -> None:
        """Print names and values, one pair per line."""
        width = max(len(name) for name in lines) + 2
        for name, value in lines.items():
            if not self._is_silent:
                line = Text(f"  {name:<{width}}", style="dim")
                self._results.print(line.append(self._text(value, "not dim")))

    def print_table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        left: int = 1,
        right: int = 0,
        best: int | None = None,
    ) -> None:
        """Print a table; row `best` is bold.

        The first `left` and the last `right` columns are text.
        """
        if self._is_silent:
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
        for i, name in enumerate(columns):
            is_text = i < left or i >= len(columns) - right
            table.add_column(name, justify="left" if is_text else "right", no_wrap=True)
        for i, row in enumerate(rows):
            style = "bold" if i == best else None
            table.add_row(*(self._text(cell) for cell in row), style=style)
        # As wide as it is: a table in a file or a pipe is not cut at 80 characters.
        console = self._results
        wide = console.options.update(max_width=10_000)
        before = console.width
        console.width = console.measure(table, options=wide).maximum
        console.print(table, crop=False)
        console.width = before

    def print_rest(self, count: int, most: int, what: str) -> None:
        """Print how many are not listed, if there are more than `most`."""
        if count > most:
            self.print(f"... and {count - most:,} {what}")

    def print_json(self, result: Mapping[str, Any]) -> None:
        """Print the result as JSON, if that is asked for."""
        if self.as_json:
            from sketchmeans.theory.results import to_plain

            text = json.dumps(to_plain(dict(result)), ensure_ascii=False)
            sys.stdout.write(escape_json(self._rename(text)) + "\n")

    def print_error(self, text: str, label: str = "", style: str = "") -> None:
        """Print a line to standard error, after a label such as Error."""
        line = Text(f"{label}: " if label else "", style=style)
        self.errors.print(line.append(self._text(text, "default" if label else "")))

    def show_status(self, text: str) -> AbstractContextManager[Any]:
        """Show what is being done, on a terminal."""
        if self.has_bars:
            return self.errors.status(self._text(text))
        if self.verbose:
            self.print_error(text)
        return nullcontext()

    @property
    def has_bars(self) -> bool:
        """Whether bars are drawn: on a terminal, unless an option says otherwise."""
        return self.errors.is_terminal and not (self.quiet or self.verbose)

    @contextmanager
    def print_warnings(self) -> Iterator[None]:
        """Print warnings of the library as lines, each once."""
        seen: set[str] = set()

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            text = translate_errors(str(message))
            if text not in seen:
                seen.add(text)
                self.print_error(text, "Warning", "yellow")

        with warnings.catch_warnings():
            warnings.simplefilter("default")
            # Files that a signal leaves open are closed with the process.
            warnings.simplefilter("ignore", ResourceWarning)
            warnings.showwarning = show
            yield

    def _text(self, text: str, style: str = "") -> Text:
        return Text(escape_line(self._rename(text)), style=style)

    def _rename(self, text: str) -> str:
        for file, name in self.names.items():
            text = text.replace(file, name)
        return text


#: The screen of the command that runs.
current_screen: ContextVar[Screen] = ContextVar("screen")


def format_duration(seconds: float) -> str:
    """Return a time for people.

    Examples
    --------
    >>> format_duration(0.0123), format_duration(4.56), format_duration(7260)
    ('0.01 s', '4.6 s', '2 h 1 min')
    """
    if seconds < 1.0:
        return f"{seconds:.2f} s"
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


# --- messages of the library in the words of the command line -------------------------


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
    if value[:1] not in ("'", '"', "[", "(", "{"):
        return {"True": "yes", "False": "no"}.get(value, value)
    try:
        parts = literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    if isinstance(parts, dict):
        return " --as ".join(shlex.quote(f"{name}={k}") for name, k in parts.items())
    if isinstance(parts, tuple):
        return "x".join(str(part) for part in parts)
    text = parts if isinstance(parts, str) else ",".join(str(part) for part in parts)
    return text if re.fullmatch(r"\S+", text) else f"'{text}'"
