"""Files that appear whole or not at all, and the check that they can."""

import os
import signal
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

from sketchmeans import NystromKMeans
from sketchmeans.numerics.atomic_file import check_can_write, open_atomic

HOLDER = """
import sys, time
from sketchmeans.numerics.atomic_file import open_atomic
with open_atomic(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Return a process that is in the middle of a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "m.skm"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def write(path, content=b"whole"):
    with open_atomic(path) as file:
        file.write(content)


@pytest.mark.process
def test_parts_of_killed_processes_are_removed_and_others_are_not(holder, tmp_path):
    others = [".m.skm.x.01234567.part", ".m.skm.0123456.part", "m.skm.01234567.part"]
    for name in others:
        (tmp_path / name).write_bytes(b"of another file")
    (part,) = (f for f in os.listdir(tmp_path) if f not in others)
    write(tmp_path / "m.skm")
    assert part in os.listdir(tmp_path)  # somebody is writing it
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert part in os.listdir(tmp_path)
    write(tmp_path / "m.skm")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "m.skm"])


def test_the_check_removes_stale_parts_too(tmp_path):
    (tmp_path / ".m.skm.01234567.part").write_bytes(b"half")
    check_can_write(tmp_path / "m.skm")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("letter", ["x", "ä"])
def test_the_longest_names(letter, tmp_path):
    longest = letter * (255 // len(letter.encode()))
    check_can_write(tmp_path / longest)
    write(tmp_path / longest)
    # Stale parts are found under the shortened name, too.
    with open_atomic(tmp_path / longest):
        (part,) = (name for name in os.listdir(tmp_path) if name != longest)
    (tmp_path / part).write_bytes(b"half")
    write(tmp_path / longest)
    assert os.listdir(tmp_path) == [longest]
    with pytest.raises(OSError, match="File name too long"):
        check_can_write(tmp_path / f"{longest}xx")


def test_what_cannot_be_written_is_told_before(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    for name, kind, reason in (
        ("", IsADirectoryError, "folder"),
        ("nowhere/m.skm", FileNotFoundError, "No such file"),
        ("file/m.skm", NotADirectoryError, "Not a directory"),
        ("loop", OSError, "symbolic links"),
        ("pipe", OSError, "not a regular file"),
    ):
        with pytest.raises(kind, match=reason) as caught:
            check_can_write(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    assert len(os.listdir(tmp_path)) == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        check_can_write(tmp_path / "m.skm")


def test_a_full_disk_is_told_before_the_work(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    disk = usage(10**9, 10**9 - 2 * 10**6, 2 * 10**6)
    monkeypatch.setattr("shutil.disk_usage", lambda _: disk)
    check_can_write(tmp_path / "m.skm")
    with pytest.raises(OSError, match="2,000,000 bytes are free, and 5,048,576 are"):
        check_can_write(tmp_path / "m.skm", 4_000_000)
    X = np.zeros((500_000, 1))
    path = tmp_path / "labels.npy"
    with pytest.raises(ValueError, match=r"labels_out=.*labels\.npy.*: 2,000,000 byt"):
        NystromKMeans(1).fit(X, labels_out=path)
    nothing = usage(0, 0, 0)  # a file system that does not say
    monkeypatch.setattr("shutil.disk_usage", lambda _: nothing)
    check_can_write(tmp_path / "m.skm", 4_000_000)


def test_errors_name_the_file(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sketchmeans.numerics.atomic_file.os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*m\.skm'$"):
        write(tmp_path / "m.skm")
    with pytest.raises(FileNotFoundError, match=r"'.*nowhere/m\.skm'$"):
        write(tmp_path / "nowhere" / "m.skm")
    assert os.listdir(tmp_path) == []


def test_a_report_checks_its_path_first(tmp_path):
    pytest.importorskip("matplotlib")
    from sketchmeans.report import write_report

    X = np.random.default_rng(0).normal(size=(60, 2))
    model = NystromKMeans(2, n_landmarks=9, random_state=0).fit(X)
    for name, reason in (("x" * 300, "too long"), ("no/r.html", "No such file")):
        with pytest.raises(ValueError, match=rf"path=.*written to: .*{reason}"):
            write_report(model, X, tmp_path / name, on_stage=pytest.fail)
