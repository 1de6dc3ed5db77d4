"""Functions as commands: their parameters become arguments and options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

from sketchmeans.cli.options import OPTIONS


def add_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer, with what `OPTIONS` says of its parameters.

    A parameter whose type is a dataclass stands for all fields of it.
    """
    hints = get_type_hints(command)
    groups: dict[str, Any] = {n: t for n, t in hints.items() if is_dataclass(t)}
    plain: dict[str, tuple[Any, Any]] = {}
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            types = get_type_hints(groups[name])
            plain |= {f.name: (types[f.name], f.default) for f in fields(groups[name])}
        else:
            plain[name] = hints[name], parameter.default

    def describe(name: str) -> Any:
        return OPTIONS.get(f"{command.__name__}.{name}") or OPTIONS[name]

    def run(**values: Any) -> None:
        for name, group in groups.items():
            own = {field.name: values.pop(field.name) for field in fields(group)}
            values[name] = group(**own)
        command(**values)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[hint, describe(name)],
            )
            for name, (hint, default) in plain.items()
        ]
    )
    return run
