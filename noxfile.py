"""Sessions of tests in environments of their own: ``nox``, or ``nox -s tests-3.13``.

The same sessions run in .github/workflows.  Environments are made by uv where it is
installed (``pip install nox uv``), by venv elsewhere.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "tests", "lowest", "core", "docs", "package"]

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PYPROJECT = nox.project.load_toml("pyproject.toml")
EXTRAS = "cli,files,excel,remote,dask,onnx,report,testing"
#: Tests that need nothing but the core and pytest.
CORE_TESTS = (
    "tests/numerics",
    "tests/kernels",
    "tests/engine",
    "tests/landmarks",
    "tests/reduction",
    "tests/test_extras.py",
)


def _dependencies(group: str) -> list[str]:
    return nox.project.dependency_groups(PYPROJECT, group)


def _run_tests(session: nox.Session, *arguments: str) -> None:
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests, with the newest of every dependency."""
    session.install(".", *_dependencies("dev"))
    _run_tests(session, "-n", "2", *session.posargs)


@nox.session(python=PYTHONS[0], venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """Tests with the lowest version of every direct dependency that is allowed."""
    session.install(
        "--resolution=lowest-direct", f".[{EXTRAS}]", *_dependencies("lowest")
    )
    # Old versions warn of new ones of others: what they say is no error of ours.
    _run_tests(session, "-n", "2", "-o", "filterwarnings=default", *session.posargs)


@nox.session(python=PYTHONS[-2])
def core(session: nox.Session) -> None:
    """Tests without any extra: the core works, and says what an extra would bring."""
    session.install(".", "pytest>=8.3", "hypothesis>=6.100")
    _run_tests(session, "-m", "not dask", *(session.posargs or CORE_TESTS))


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format and types, as ``make lint`` checks them."""
    session.install(".", *_dependencies("dev"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site; a warning is an error."""
    session.install(".", *_dependencies("dev"), *_dependencies("docs"))
    session.run(
        *("python", "-m", "sphinx", "--builder=html", "--fail-on-warning"),
        *("--keep-going", "--quiet", "docs", "build/site"),
    )


@nox.session
def package(session: nox.Session) -> None:
    """Build the source distribution and the wheel, twice, and look at them."""
    session.install("build", "twine", "check-wheel-contents")
    folders = [Path(session.create_tmp()) / name for name in ("one", "two")]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        session.run("python", "-m", "build", "--outdir", str(folder))
    wheels = [next(folder.glob("*.whl")) for folder in folders]
    if wheels[0].read_bytes() != wheels[1].read_bytes():
        session.error("Two builds of the same files differ.")
    session.run("twine", "check", "--strict", *map(str, folders[0].iterdir()))
    session.run("check-wheel-contents", str(wheels[0]))
