"""What a command says: results on standard output, the rest on standard error."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sketchmeans.cli.wording import in_options
from sketchmeans.numerics.escape import escape_control, escape_json, escape_line

if TYPE_CHECKING:
    from sketchmeans.engine.checkpoint import Checkpoint


class Screen:
    """The streams of one command, and how much goes there.

    Parameters
    ----------
    as_json : bool
        Results are one JSON object on standard output, and nothing else.
    quiet : bool
        Nothing but errors and warnings, and what the command is for.
    verbose : bool
        A line a stage and a pass in the place of bars.
    debug : bool
        Errors of the library are raised.
    on_error : bool
        What is meant for people goes to standard error, as standard output is taken.
    answers : bool
        What is printed is what the command is for: `quiet` leaves it.

    Names of columns, classes and files may hold anything: control codes are spelled
    out, and nothing is read as markup.
    """

    def __init__(
        self,
        *,
        as_json: bool = False,
        quiet: bool = False,
        verbose: bool = False,
        debug: bool = False,
        on_error: bool = False,
        answers: bool = False,
    ) -> None:
        self.as_json, self.quiet, self.verbose = as_json, quiet, verbose
        self.debug, self._on_error = debug, on_error
        self._is_silent = as_json or (quiet and not answers)
        #: What files are called that the user did not name.
        self.called: dict[str, str] = {}
        #: What holds the work that is done if the command is stopped.
        self.checkpoint: Checkpoint | None = None
        #: Files that are there, whatever happens next.
        self.written: list[str] = []

    @cached_property
    def errors(self) -> Console:
        """Standard error."""
        return Console(stderr=True, soft_wrap=True, highlight=False)

    @cached_property
    def _results(self) -> Console:
        return Console(stderr=self._on_error, soft_wrap=True, highlight=False)

    def say(self, text: str = "", style: str = "") -> None:
        """Print a line of the result."""
        if not self._is_silent:
            self._results.print(Text(escape_control(self._renamed(text)), style=style))

    def pairs(self, lines: Mapping[str, str]) -> None:
        """Print names and values, one below the other."""
        width = max(len(name) for name in lines) + 2
        for name, value in lines.items():
            if not self._is_silent:
                line = Text(f"  {name:<{width}}", style="dim")
                self._results.print(line.append(self._text(value, "not dim")))

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        left: int = 1,
        best: int | None = None,
    ) -> None:
        """Print a table whose first `left` columns are words; `best` is a bold row."""
        if self._is_silent:
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
        for i, name in enumerate(columns):
            table.add_column(
                name, justify="left" if i < left else "right", no_wrap=True
            )
        for i, row in enumerate(rows):
            style = "bold" if i == best else None
            table.add_row(*(self._text(cell) for cell in row), style=style)
        # As wide as it is: a table in a file or a pipe is not cut at 80 signs.
        console = self._results
        wide = console.options.update(max_width=10_000)
        before = console.width
        console.width = console.measure(table, options=wide).maximum
        console.print(table, crop=False)
        console.width = before

    def json(self, found: Mapping[str, Any]) -> None:
        """Print the result for machines, if that is asked for."""
        if self.as_json:
            from sketchmeans.theory.base import plain

            text = json.dumps(plain(dict(found)), ensure_ascii=False)
            sys.stdout.write(escape_json(self._renamed(text)) + "\n")

    def say_error(self, text: str) -> None:
        """Print a line to standard error."""
        self.errors.print(self._text(text))

    def error(self, text: str) -> None:
        """Print what is wrong, in one line."""
        line = Text("Error: ", style="bold red").append(self._text(text, "default"))
        self.errors.print(line)

    def _text(self, text: str, style: str = "") -> Text:
        return Text(escape_line(self._renamed(text)), style=style)

    def _renamed(self, text: str) -> str:
        for file, name in self.called.items():
            text = text.replace(file, name)
        return text

    def working(self, text: str) -> AbstractContextManager[Any]:
        """Show that something goes on, on a terminal."""
        if self.has_bars:
            return self.errors.status(self._text(text))
        if self.verbose:
            self.say_error(text)
        return nullcontext()

    @property
    def has_bars(self) -> bool:
        """Whether bars are drawn: on a terminal, unless told otherwise."""
        return self.errors.is_terminal and not (self.quiet or self.verbose)

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Print warnings of the library as lines, each of them once."""
        seen: set[str] = set()

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            text = in_options(str(message))
            if text not in seen:
                seen.add(text)
                line = Text("Warning: ", style="yellow")
                self.errors.print(line.append(self._text(text, "default")))

        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = show
            yield


#: The screen of the command that runs.
current: ContextVar[Screen] = ContextVar("screen")
