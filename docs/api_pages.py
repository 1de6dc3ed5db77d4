"""Pages of the API reference, one for each public name; Sphinx writes them first.

Public is what the modules below list in ``__all__``; of the layers that others build on
it is their classes and tables, as the functions there serve those others.  A name that
several modules list has one page.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.base import ClusterMixin

from sketchmeans.theory.results import Result

#: Modules with public names, and the titles of their pages.
MODULES = {
    "sketchmeans": "Estimators, model files, rows",
    "sketchmeans.landmarks": "Landmark selectors",
    "sketchmeans.kernels": "Kernels",
    "sketchmeans.reduction": "Feature sketches",
    "sketchmeans.diagnostics": "Diagnostics",
    "sketchmeans.theory": "Theory",
    "sketchmeans.report": "Reports and pictures",
    "sketchmeans.datasets": "Tables to try things on",
    "sketchmeans.onnx": "Models as ONNX graphs",
    "sketchmeans.testing": "Contracts for your own parts",
}
#: Layers that share functions with others, too.
_LAYERS = {"sketchmeans.landmarks", "sketchmeans.kernels", "sketchmeans.reduction"}
#: Lists the names of `sketchmeans.theory`, too, which have their pages there.
_COLLECTION = "sketchmeans.diagnostics"


def public_names() -> dict[str, list[str]]:
    """Return the names that have a page, by module.

    Examples
    --------
    >>> "NystromKMeans" in public_names()["sketchmeans"]
    True
    """
    names: dict[str, list[str]] = {}
    seen: set[int] = set()
    for module in sorted(MODULES, key=_COLLECTION.__eq__):
        members = {
            name: value
            for name, value in listed_members(module).items()
            if id(value) not in seen and _is_ours(value)
        }
        names[module] = sorted(members)
        seen |= {id(value) for value in members.values()}
    return {module: names[module] for module in MODULES}


def listed_members(module: str) -> dict[str, Any]:
    """Return the public members of a module, whether their pages are there or not."""
    members = {name: _member(module, name) for name in import_module(module).__all__}
    return {
        name: value
        for name, value in members.items()
        if not name.startswith("_")
        and not (module in _LAYERS and inspect.isfunction(value))
    }


def _is_ours(value: Any) -> bool:
    """Say whether something is made here, and not a function of scikit-learn."""
    module = getattr(value, "__module__", "") or ""
    return not inspect.isfunction(value) or module.startswith("sketchmeans")


def _member(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def write_pages(folder: Path) -> None:
    """Write a page for each module and for each of its names, where they changed."""
    pages = make_pages()
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.name not in pages:
            path.unlink()
    for file_name, text in pages.items():
        path = folder / file_name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def make_pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    pages = {f"{module}.rst": _module_page(module) for module in MODULES}
    pages["index.rst"] = _index_page()
    for module, names in public_names().items():
        for name in names:
            pages[f"{page_name(module, name)}.rst"] = _name_page(module, name)
    return pages


def page_name(module: str, name: str) -> str:
    """Return the name of a page, which differs from others by more than by case.

    macOS and Windows keep one file for both `Certificate` and `certificate`: the class
    gets an addition where another page, of a function or a module, has its letters.

    Examples
    --------
    >>> page_name("sketchmeans.diagnostics", "Certificate")
    'sketchmeans.diagnostics.Certificate-class'
    >>> page_name("sketchmeans.diagnostics", "certificate")
    'sketchmeans.diagnostics.certificate'
    """
    page = f"{module}.{name}"
    is_class = inspect.isclass(_member(module, name))
    return f"{page}-class" if is_class and _letters()[page.lower()] > 1 else page


@cache
def _letters() -> Counter[str]:
    """Count the pages by their names in small letters."""
    names = [f"{m}.{name}" for m, names in public_names().items() for name in names]
    return Counter(page.lower() for page in [*MODULES, *names])


def _title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]


def _index_page() -> str:
    lines = [
        *_title("API reference"),
        "Every public name. What is not listed here may change in any release.",
        "",
        "Costs are numbers of operations, for n rows of d features, m landmarks, k",
        "clusters, and passes over the rows. Memory is that of the result and of a few",
        "blocks of rows for each thread, unless a page says otherwise.",
        "",
        "`SparkTable` and `transform_spark` of `sketchmeans.spark` are public, too:",
        "they need Spark, see :doc:`/scale`.",
        "",
        ".. toctree::",
        "   :maxdepth: 1",
        "",
        *(f"   {module}" for module in MODULES),
        "",
    ]
    return "\n".join(lines)


def _module_page(module: str) -> str:
    names = public_names()[module]
    others = sorted(set(listed_members(module)) - set(names))
    note = "Also here, documented elsewhere: " + ", ".join(f"`{n}`" for n in others)
    lines = [
        *_title(f"{MODULES[module]}: {module}"),
        f".. currentmodule:: {module}",
        "",
        inspect.cleandoc(import_module(module).__doc__ or ""),
        "",
        ".. autosummary::",
        "   :nosignatures:",
        "",
        *(f"   {name}" for name in names),
        "",
        *([f"{note}.", ""] if others else []),
        ".. toctree::",
        "   :hidden:",
        "",
        *(f"   {name} <{page_name(module, name)}>" for name in names),
        "",
    ]
    return "\n".join(lines)


def _name_page(module: str, name: str) -> str:
    value = _member(module, name)
    lines = [*_title(name), f".. currentmodule:: {module}", ""]
    if inspect.isclass(value):
        lines += [f".. autoclass:: {name}", ""]
        for kind, member in _public_members(value):
            lines += [f"   .. auto{kind}:: {name}.{member}", ""]
    elif callable(value):
        lines += [f".. autofunction:: {name}", ""]
    else:
        lines += [f".. autodata:: {name}", "   :no-value:", ""]
    homes = {n: home for home, names in public_names().items() for n in names}
    sources = [f":py:obj:`~{homes[n]}.{n}`" for n in described_with(name)]
    if sources and not states_cost(value.__doc__ or ""):
        lines += [f"Formula and cost: see {', '.join(sources)}.", ""]
    related = related_names(module, name)
    if related and "See Also" not in (value.__doc__ or ""):
        links = [f":py:obj:`~{homes[n]}.{n}`" for n in related]
        lines += [f"See also {', '.join(links)}.", ""]
    return "\n".join(lines)


def related_names(module: str, name: str) -> list[str]:
    """Return the public names that signatures, base classes or tables connect to it.

    Examples
    --------
    >>> "certificate" in related_names("sketchmeans.diagnostics", "Certificate")
    True
    >>> "Kernel" in related_names("sketchmeans.kernels", "Cosine")
    True
    """
    links = _links()
    others = {other for other in links if name in links[other]} | links[name]
    return sorted(others - {name})


def states_cost(text: str) -> bool:
    """Say whether a docstring has a cost: an order of growth, passes, or a sentence.

    Examples
    --------
    >>> states_cost("Costs a fit of each."), states_cost("Costs of all rows.")
    (True, False)
    """
    return bool(
        re.search(r"\bO\(|n·|[mn][²³]|\bOne pass|\bcosts |\bCosts (?!of)", text)
    )


def described_with(name: str) -> list[str]:
    """Return the names that say what a result or an implementation computes and costs.

    They are the functions that return a result, or a result that holds it, and the
    public classes that a class is based on.

    Examples
    --------
    >>> described_with("ColumnChange"), described_with("Cosine")
    (['drift'], ['Kernel'])
    """
    values = _values()
    found, holders = set(), {name}
    while holders:
        found |= holders
        holders = {
            other
            for other, value in values.items()
            if other not in found
            and any(re.search(rf"\b{part}\b", _made_by(value)) for part in found)
        }
    bases = {b.__name__ for b in getattr(values[name], "__mro__", ())} & set(values)
    makers = {n for n in found if inspect.isfunction(values[n])}
    return sorted((makers | bases) - {name})


def _made_by(value: Any) -> str:
    """Return the types of what a function returns, or of the fields of a result."""
    if inspect.isfunction(value):
        return str(inspect.signature(value).return_annotation)
    fields = getattr(value, "__dataclass_fields__", {})
    is_result = inspect.isclass(value) and issubclass(value, Result)
    return " ".join(str(f.type) for f in fields.values()) if is_result else ""


@cache
def _values() -> dict[str, Any]:
    return {n: _member(m, n) for m, names in public_names().items() for n in names}


@cache
def _links() -> dict[str, set[str]]:
    """Return the public names in each public signature, class or table."""
    values, links = _values(), {}
    for name, value in values.items():
        if inspect.isclass(value):
            words = {parent.__name__ for parent in value.__mro__}
            fields = " ".join(map(str, vars(value).get("__annotations__", {}).values()))
            words |= set(re.findall(r"\w+", fields))
        elif callable(value):
            signature = inspect.signature(value)
            types = [p.annotation for p in signature.parameters.values()]
            words = set(re.findall(r"\w+", f"{[*types, signature.return_annotation]}"))
        else:  # a table of names
            words = {
                getattr(part, "__name__", "")
                for part in getattr(value, "values", list)()
            }
        links[name] = words & set(values) - {name}
        if _is_clusterer(value):
            links[name] |= {n for n, other in values.items() if _is_clusterer(other)}
    return links


def _is_clusterer(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, ClusterMixin)


def _public_members(cls: type) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the methods and properties that this library defines."""
    found: dict[str, str] = {}
    for parent in cls.__mro__:
        if not parent.__module__.startswith("sketchmeans"):
            continue
        for name, value in vars(parent).items():
            if name.startswith("_") or name in found:
                continue
            if isinstance(value, property):
                found[name] = "property"
                continue
            # Of the class, as methods may be behind descriptors of scikit-learn.
            value = getattr(parent, name)
            is_method = inspect.isfunction(value) or inspect.ismethod(value)
            if is_method and not name.endswith("_request"):
                found[name] = "method"
    for name in sorted(found):
        yield found[name], name
