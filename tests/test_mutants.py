"""The lines that `tests.mutants` changes are still there; running it takes longer."""

from tests.mutants import MUTANTS, ROOT, count_matches


def test_there_are_mutants_of_every_kind() -> None:
    assert len(MUTANTS) == len(set(MUTANTS)) >= 40
    folders = {mutant.file.partition("/")[0] for mutant in MUTANTS}
    assert folders >= {"engine", "landmarks", "theory", "diagnostics", "persistence"}


def test_every_mutant_can_be_made() -> None:
    for mutant in MUTANTS:
        assert count_matches(mutant) == 1, f"update tests/mutants.py: {mutant.before}"
        assert mutant.before != mutant.after
        files = mutant.tests.partition(" -k ")[0].split()
        assert all((ROOT / file).exists() for file in files)
