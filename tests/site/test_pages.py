"""Pages of the documentation: reachable, without dead links, with code that runs."""

import ast
import doctest
import inspect
import re
import tomllib
from pathlib import Path

import pytest

from docs.api_pages import (
    described_with,
    listed_members,
    make_pages,
    public_names,
    related_names,
    states_cost,
)

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Written by Sphinx.
GENERATED = {"api", "gallery", "build"}
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if path.relative_to(DOCS).parts[0] not in GENERATED
)
#: Markdown that people read elsewhere.
OTHERS = [path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"]
EXAMPLES = sorted((ROOT / "examples").glob("*/[0-9]*.py"))


def _name(path):
    return path.relative_to(ROOT).as_posix()


# --- toctrees and links ---------------------------------------------------------------


def _toctree(page):
    """Return the pages that a page has in its toctrees."""
    text = page.read_text(encoding="utf-8")
    for body in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.M | re.S):
        for line in body.splitlines():
            if line and not line.startswith(":"):
                yield re.sub(r".*<(.*)>$", r"\1", line)


def _reachable(page):
    yield page
    for entry in _toctree(page):
        below = (page.parent / f"{entry}.md").resolve()
        if below.exists():
            yield from _reachable(below)


def test_every_page_is_in_the_contents():
    missing = set(PAGES) - set(_reachable(DOCS / "index.md"))
    assert not missing, "name these in a toctree, say that of docs/guide.md"


def test_contents_have_their_pages():
    for page in PAGES:
        for entry in _toctree(page):
            if entry not in ("api/index", "gallery/index"):
                assert (page.parent / f"{entry}.md").exists(), _name(page)


def _links(page):
    """Yield the targets of links and pictures, without code."""
    text = re.sub(
        r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.S
    )
    yield from re.findall(r"\]\(([^)\s]+)\)", text)


def _anchors(page):
    """Return the names of the headings, as GitHub and MyST make them."""
    text = page.read_text(encoding="utf-8")
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_links_between_pages_resolve():
    for page in PAGES + OTHERS:
        dead = [link for link in _links(page) if not _resolves(page, link)]
        assert not dead, _name(page)


def _resolves(page, link):
    """Say whether a link of a page leads to a file, and to a heading in it."""
    if re.match(r"https?:|mailto:", link):
        return True
    path, _, anchor = link.partition("#")
    if re.search(r"(gallery|api)/index\.\w+$", path):
        return True
    target = (page.parent / path).resolve() if path else page
    drawn = re.sub(r"images/sphx_glr_(\w+)_\d{3}\.png$", r"\1.rst", path)
    example = re.search(r"gallery/(\w+/\w+)\.(?:rst|md)$", drawn)
    if example:
        target = ROOT / "examples" / f"{example[1]}.py"
    return target.exists() and (not anchor or anchor in _anchors(target))


# --- code -----------------------------------------------------------------------------


def _code(page):
    """Return the Python of a page, its fenced and its indented blocks, as one doctest.

    A block after the comment ``not run`` is left out; the comment says why.
    """
    text = page.read_text(encoding="utf-8")
    block = re.compile(
        r"(?P<skip><!-- not run[^>]*-->\n+)?^(?P<fence>```+)(?P<kind>[^\n]*)\n"
        r"(?P<code>.*?)^(?P=fence)$",
        re.M | re.S,
    )
    for found in block.finditer(text):
        if found["kind"] == "python" and not found["skip"]:
            yield found["code"]
    outside = block.sub("", text)
    yield from re.findall(r"^(?: {4}>>> .*\n(?: {4}.*\n)*)", outside, re.M)


def _has_code(page):
    return any(True for _ in _code(page))


@pytest.mark.parametrize("page", [*filter(_has_code, PAGES)], ids=_name)
def test_examples_of_pages_run(page, tmp_path, monkeypatch):
    blocks = list(_code(page))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    names = {"__name__": page.stem}
    for number, code in enumerate(blocks):
        name = f"{_name(page)}, block {number + 1}"
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, name, str(page), 0)
            failures, _ = runner.run(test, clear_globs=False)
            names = test.globs
            assert failures == 0, name
        else:
            exec(compile(code, name, "exec"), names)


def test_code_of_the_readme_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    small = {"200_000": "2_000", "10_000_000": "20_000", "250_000": "10_000"}
    names = {"__name__": "readme"}
    for number, code in enumerate(_code(ROOT / "README.md")):
        for large, fewer in small.items():
            code = code.replace(large, fewer)
        exec(compile(code, f"README.md, block {number + 1}", "exec"), names)


def test_examples_compile_and_have_a_title():
    for path in EXAMPLES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        title, line, *_ = ast.get_docstring(tree).splitlines()
        assert re.fullmatch("=+", line), f"{path}: the docstring starts with a title"
        assert len(line) >= len(title), path


def test_the_gallery_has_numbered_examples_with_names_of_their_own():
    names = [path.name for path in EXAMPLES]
    assert len(names) >= 15
    assert all(re.fullmatch(r"\d\d_\w+\.py", name) for name in names)
    assert len(set(names)) == len(names)


# --- API reference --------------------------------------------------------------------


def test_every_public_name_has_one_page_and_a_docstring():
    pages = [name for names in public_names().values() for name in names]
    assert len(set(pages)) == len(pages)
    for module in public_names():
        for name, value in listed_members(module).items():
            assert not callable(value) or value.__doc__, f"{module}.{name}"


def test_no_two_pages_of_the_reference_differ_only_in_case():
    # macOS and Windows keep one file for both, and show the one that comes last.
    pages = [page.lower() for page in make_pages()]
    assert [page for page in pages if pages.count(page) > 1] == []
    names = [name for names in public_names().values() for name in names]
    assert len(pages) == len(public_names()) + len(names) + 1


def test_contents_of_the_reference_have_their_pages():
    pages = make_pages()
    for page, text in pages.items():
        _, _, contents = text.partition(".. toctree::")
        entries = re.findall(r"^   (?:.*<(.*)>|(sketchmeans\S*))$", contents, re.M)
        missing = {one or other for one, other in entries} - {p[:-4] for p in pages}
        assert not missing, page


def test_pages_of_the_reference_lead_to_others():
    ends = {
        name
        for module, names in public_names().items()
        for name in names
        if callable(value := listed_members(module)[name])
        and "See Also" not in value.__doc__
        and not related_names(module, name)
    }
    assert ends == set()


#: Names that compute no numbers, and why, beside those that draw, write or test.
WITHOUT_FORMULA = {
    "Checkpoint": "a file and how often it is written",
    "Dialect": "how a text table is written",
    "ModelFileError": "an exception",
    "load": "reads what a fit has computed",
    "make_customers": "makes up a table",
    "model_card": "a text about a fitted model",
    "onnx_inputs": "turns a table into arrays",
    "open_rows": "opens a file",
    "rename_segments": "sets texts",
    "save": "writes what a fit has computed",
    "segment_names": "returns texts",
    "write_customers": "makes up a table",
}


def _formulas(text):
    """Return the formulas of a docstring: in double backticks, or on lines apart."""
    text = re.sub(r"\nExamples\n-.*", "", text, flags=re.S)
    apart = r"\n\n {4}[^\n]*[=≤≥]"
    signs = r"(?: = |[≤≥√Σ∝·²⁺−↦]|\b/|\)/)"  # k="rbf" is none, nor is s3://
    return re.findall(rf"``[^`\"]*{signs}[^`\"]*``|{apart}|O\([^)]*\)", text)


def test_every_name_has_formula_cost_and_a_short_example():
    values = {
        name: (module, listed_members(module)[name])
        for module, names in public_names().items()
        for name in names
    }
    missing = []
    for name, (module, value) in values.items():
        if not callable(value):
            continue
        own = inspect.getdoc(value)
        lines = len(re.findall(r"^(?:>>>|\.\.\.)", own, re.M))
        if not 0 < lines <= 6:
            missing.append(f"{module}.{name}: an example of at most 6 lines")
        texts = own, *(inspect.getdoc(values[n][1]) for n in described_with(name))
        if not any(map(states_cost, texts)):
            missing.append(f"{module}.{name}: its cost")
        exempt = module in ("sketchmeans.report", "sketchmeans.testing")
        exempt |= name in WITHOUT_FORMULA
        if not exempt and not any(map(_formulas, texts)):
            missing.append(f"{module}.{name}: its formula")
        if name in WITHOUT_FORMULA and _formulas(own):
            missing.append(f"{module}.{name}: has a formula, and needs no exemption")
    assert WITHOUT_FORMULA.keys() <= values.keys()
    assert not missing, "\n".join(missing)


def test_the_picture_of_the_choice_is_that_of_the_code():
    from docs.draw_choice import PATH, STEPS, draw

    assert PATH.read_text(encoding="utf-8") == draw()
    for _, (name, _) in STEPS:
        assert name in listed_members("sketchmeans")


# --- apparatus ------------------------------------------------------------------------


def test_the_recipe_has_the_dependencies_and_the_version_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    recipe = (ROOT / "recipe" / "meta.yaml").read_text("utf-8")
    for dependency in project["dependencies"]:
        bound = dependency.partition(";")[0].replace(">=", " >=")
        assert f"- {bound}\n" in recipe
    assert f'{{% set version = "{project["version"]}" %}}' in recipe
    assert f"version: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(
        "utf-8"
    )


def test_news_fragments_are_of_a_kind_that_the_changelog_has():
    kinds = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    known = "|".join(kind["directory"] for kind in kinds["towncrier"]["type"])
    for path in (ROOT / "changelog.d").iterdir():
        name = rf"(\d+|\+[\w-]+)\.({known})\.md|README\.md"
        assert re.fullmatch(name, path.name), path.name
        assert path.read_text("utf-8").strip(), path.name


def test_the_changelog_starts_with_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (\S+)", changes, re.M)[0] == project["version"]


def test_methods_that_depend_on_the_parameters_are_on_the_pages():
    # They are not functions of the class, but descriptors of one.
    from docs.api_pages import _name_page

    assert "NystromKMeans.partial_fit" in _name_page("sketchmeans", "NystromKMeans")
    page = _name_page("sketchmeans", "TableClusterer")
    for name in ("predict", "partial_fit", "cost", "score", "transform"):
        assert f"TableClusterer.{name}" in page
