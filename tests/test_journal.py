"""The journal: what was appended survives, whatever ended the run; what is not whole is not used."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from localsvm.errors import ModelError, RunError
from localsvm.store import journal
from localsvm.store import journal as journals
from localsvm.store.journal import Journal, journal_path, open_journal

KEY = "0123456789abcdef" * 4
OTHER = "f" * 64


def payload(i: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(i)
    return {"support": rng.random((i + 1, 3), np.float32), "ptr": np.arange(i), "scalar": np.array(i / 7)}


def fill(path: Path, count: int = 3) -> list[int]:
    """A closed journal of so many tasks; the file's length after each."""
    ends = []
    with open_journal(path, KEY) as journal:
        for i in range(count):
            journal.append(f"cell {i}", payload(i))
            ends.append(path.stat().st_size)
    return ends


def assert_holds(journal: Journal, count: int) -> None:
    assert list(journal) == [f"cell {i}" for i in range(count)]
    for i in range(count):
        record = journal[f"cell {i}"]
        assert list(record) == list(payload(i))
        for name, array in payload(i).items():
            assert (record[name].dtype, record[name].shape) == (array.dtype, array.shape)
            assert record[name].tobytes() == array.tobytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return journal_path(tmp_path / "model.h5")


def test_path_lies_beside_the_model(path: Path) -> None:
    assert path.name == "model.h5.journal"


RECORDS = st.lists(
    st.tuples(
        st.text(max_size=4),
        st.dictionaries(
            st.text(max_size=3),
            hnp.arrays(st.sampled_from(["<f4", ">f8", "i8", "u1", "?"]), hnp.array_shapes(min_dims=0, min_side=0)),
        ),
    ),
    max_size=5,
)


@pytest.mark.whole
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=RECORDS, after=RECORDS)
def test_round_trip(path: Path, before: Any, after: Any) -> None:
    path.unlink(missing_ok=True)
    with open_journal(path, KEY) as journal:
        for task, arrays in before:
            journal.append(task, arrays)
    with open_journal(path, KEY, resume=True) as journal:
        assert set(journal) == {task for task, _ in before}
        for task, arrays in after:
            journal.append(task, arrays)
        expected = dict(before) | dict(after)  # the later record of a task counts
        assert journal.keys() == expected.keys()
        for task, arrays in expected.items():
            assert journal[task].keys() == arrays.keys()
            for name, array in arrays.items():
                assert journal[task][name].dtype == array.dtype
                assert journal[task][name].shape == array.shape
                assert journal[task][name].tobytes() == array.tobytes()


def test_records_reach_the_disk_now_and_then(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_journal(path, KEY) as journal:
        synced: list[int] = []
        monkeypatch.setattr(os, "fdatasync", synced.append)
        monkeypatch.setattr(os, "fsync", synced.append)
        journal.append("cell", payload(0))
        journal.settle()
        assert not synced
        later = time.monotonic() + 2 * journals.SYNC_SECONDS
        monkeypatch.setattr(time, "monotonic", lambda: later)
        journal.settle()
        assert len(synced) == 1
        journal.settle()
        assert len(synced) == 1


def test_a_tail_torn_anywhere_is_cut_off(path: Path) -> None:
    ends = fill(path)
    whole = path.read_bytes()
    for length in range(ends[1], ends[2]):
        path.write_bytes(whole[:length])
        with open_journal(path, KEY, resume=True) as journal:
            assert len(journal) == 2
            assert path.stat().st_size == ends[1]
            journal.append("cell 2", payload(2))
            assert_holds(journal, 3)
        assert path.read_bytes() == whole


def test_zeros_in_place_of_a_tail_are_cut_off(path: Path) -> None:
    ends = fill(path)
    path.write_bytes(path.read_bytes()[: ends[1]] + bytes(1000))  # what a power cut can leave
    with open_journal(path, KEY, resume=True) as journal:
        assert_holds(journal, 2)
    assert path.stat().st_size == ends[1]


def test_a_header_torn_anywhere_begins_afresh(path: Path) -> None:
    with open_journal(path, KEY):
        header = path.read_bytes()
    for length in range(len(header) + 1):
        path.write_bytes(header[:length])
        with open_journal(path, OTHER) as journal:  # nothing was finished, so nothing is in the way
            assert len(journal) == 0


def test_a_damaged_record_is_passed_over(path: Path) -> None:
    ends = fill(path)
    content = bytearray(path.read_bytes())
    content[ends[1] - 5] ^= 1
    path.write_bytes(content)
    with open_journal(path, KEY, resume=True) as journal:
        assert list(journal) == ["cell 0", "cell 2"]
        assert journal["cell 2"]["ptr"].tolist() == [0, 1]


def test_any_flipped_byte_costs_at_most_the_records_from_there(path: Path) -> None:
    ends = fill(path)
    sound = path.read_bytes()
    for position in range(86, len(sound), 7):  # from the end of the header on
        damaged = bytearray(sound)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        before = sum(end <= position for end in ends)
        with open_journal(path, KEY, resume=True) as journal:
            assert list(journal)[:before] == [f"cell {i}" for i in range(before)]
            assert f"cell {before}" not in journal
            for task in journal:
                assert journal[task]["ptr"].tolist() == list(range(int(task.split()[1])))


def test_damage_after_opening_is_noticed(path: Path) -> None:
    ends = fill(path)
    with open_journal(path, KEY, resume=True) as journal:
        content = path.read_bytes()
        with open(os.dup(journal._descriptor), "r+b", buffering=0) as file:  # of its own the lock would go
            file.seek(ends[0] - 1)
            file.write(bytes([content[ends[0] - 1] ^ 1]))
            with pytest.raises(ModelError, match="the record of cell 0 has changed"):
                journal["cell 0"]


def test_another_key_is_refused(path: Path) -> None:
    fill(path)
    before = path.read_bytes()
    with pytest.raises(ModelError, match=r"the data or the options differ .*--force to start afresh"):
        open_journal(path, OTHER, resume=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ({"--folds": "5"}, {"--folds": "10"}, "--folds was 5, is 10; give the same, or"),
        ({"the SIMD level": "avx2"}, {"the SIMD level": "baseline"}, "the SIMD level was avx2, is baseline;"),
        ({"the data": KEY}, {"the data": OTHER}, "the data differs; give"),
        ({"a": "1"}, {"b": "2"}, "b was not given, is 2, a was 1, is not given;"),
        ({str(i): "1" for i in range(5)}, {str(i): "2" for i in range(5)}, "2 was 1, is 2 and 2 more;"),
    ],
)
def test_a_refused_resume_says_what_differs(path: Path, before: Any, now: Any, message: str) -> None:
    with open_journal(path, KEY, before) as journal:
        journal.append("cell 0", payload(0))
    with pytest.raises(ModelError) as refused:
        open_journal(path, OTHER, now, resume=True)
    assert message in str(refused.value)
    with open_journal(path, KEY, before, resume=True) as journal:
        assert_holds(journal, 1)


def test_a_link_to_a_model_and_the_model_have_one_journal(tmp_path: Path) -> None:
    (tmp_path / "link.h5").symlink_to("model.h5")
    assert journal_path(tmp_path / "link.h5") == journal_path(tmp_path / "model.h5")


def test_resume_and_force(path: Path) -> None:
    fill(path)
    with pytest.raises(RunError, match="--resume to continue it, or --force"):
        open_journal(path, KEY)
    with open_journal(path, KEY, resume=True, force=True) as journal:
        assert_holds(journal, 3)
    with open_journal(path, OTHER, resume=True, force=True) as journal:
        assert len(journal) == 0
        journal.append("a", {})
    with open_journal(path, OTHER, resume=True) as journal:
        assert list(journal) == ["a"]
    with open_journal(path, KEY, force=True) as journal:
        assert len(journal) == 0


def test_what_finished_nothing_leaves_nothing(path: Path) -> None:
    with open_journal(path, KEY):
        assert path.exists()
    assert not path.exists()
    path.write_bytes(b"")  # of a run that was killed
    with open_journal(path, KEY, resume=True):
        pass
    assert not path.exists()


@pytest.mark.parametrize("where", ["_locked", "_sealed", "_write_at"])
def test_a_signal_while_it_is_begun_leaves_nothing(path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = getattr(journal, where)

    def interrupted(*given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return work(*given)

    monkeypatch.setattr(journal, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_journal(path, KEY)
    assert not path.exists()


def test_what_another_run_finished_is_replaced_by_a_first_record_only(path: Path) -> None:
    fill(path)
    before = path.read_bytes()
    with open_journal(path, OTHER, force=True) as journal:
        assert len(journal) == 0
    assert path.read_bytes() == before
    with open_journal(path, OTHER, force=True) as journal:
        journal.append("a", {})
    with open_journal(path, OTHER, resume=True) as journal:
        assert list(journal) == ["a"]


def test_resuming_nothing_begins(path: Path) -> None:
    with open_journal(path, KEY, resume=True) as journal:
        journal.append("cell 0", payload(0))
        assert_holds(journal, 1)


def test_a_newer_version_and_a_damaged_header(path: Path) -> None:
    fill(path)
    sound = path.read_bytes()
    path.write_bytes(sound[:8] + b"\x05" + sound[9:])
    with pytest.raises(ModelError, match="its version 5 is newer"):
        open_journal(path, KEY, resume=True)
    path.write_bytes(sound[:8] + b"\x03" + sound[9:])
    with pytest.raises(ModelError, match="its version 3 is older"):
        open_journal(path, KEY, resume=True)
    path.write_bytes(sound[:40] + b"\x02" + sound[41:])
    with pytest.raises(ModelError, match="its header is damaged"):
        open_journal(path, KEY, resume=True)


@pytest.mark.parametrize("content", [b"notes\n", b"x" * 1000])
def test_a_file_that_is_no_journal_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for options in ({}, {"resume": True}, {"force": True}):
        with pytest.raises(ModelError, match="not a journal of localsvm"):
            open_journal(path, KEY, **options)
    assert path.read_bytes() == content


def test_places_that_cannot_be_written(path: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written: No such file"):
        open_journal(tmp_path / "absent" / "model.h5.journal", KEY)
    path.mkdir()
    with pytest.raises(RunError, match="cannot be written: Is a directory"):
        open_journal(path, KEY)


def test_objects_are_refused(path: Path) -> None:
    with open_journal(path, KEY) as journal:
        with pytest.raises(ValueError, match="x: only numbers"):
            journal.append("a", {"x": np.array([None])})
        assert len(journal) == 0


def test_delete_and_close(path: Path) -> None:
    with open_journal(path, KEY) as journal:
        journal.append("a", payload(1))
        journal.delete()
        journal.close()
    assert not path.exists()


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": f"{here.parent}:{here}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


APPENDING = """
import sys
from test_journal import KEY, open_journal, payload
journal = open_journal(sys.argv[1], KEY)
i = 0
while True:
    journal.append(f"cell {i}", payload(i))
    print(i, flush=True)
    i += 1
"""


def test_a_killed_run_loses_nothing_that_was_appended(path: Path) -> None:
    with start(APPENDING, path) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 40:
                break
        process.send_signal(signal.SIGKILL)
        appended = max([int(line), *map(int, process.stdout.read().split())]) + 1
    with open_journal(path, KEY, resume=True) as journal:
        assert len(journal) in (appended, appended + 1)  # killed between the append and its announcement
        assert_holds(journal, len(journal))
        journal.append(f"cell {len(journal)}", payload(len(journal)))
        assert_holds(journal, len(journal))


HOLDING = """
import sys
from test_journal import KEY, open_journal
journal = open_journal(sys.argv[1], KEY)
print("open", flush=True)
sys.stdin.read()
"""


def test_a_journal_in_use_is_refused_until_its_process_ends(path: Path) -> None:
    with start(HOLDING, path) as process:
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        for options in ({}, {"resume": True}, {"force": True}):
            with pytest.raises(RunError, match="a running process is training this model"):
                open_journal(path, KEY, **options)
        process.kill()
    with open_journal(path, KEY, resume=True) as journal:
        assert len(journal) == 0


LIMITED = """
import resource, sys
import numpy as np
from test_journal import KEY, RunError, open_journal, payload
with open_journal(sys.argv[1], KEY) as journal:
    journal.append("cell 0", payload(0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000,) * 2)
    try:
        journal.append("large", {"x": np.zeros(50_000)})
    except RunError as error:
        print(error)
    journal.append("cell 1", payload(1))
"""


def test_a_full_disk_keeps_what_was_finished(path: Path) -> None:
    with start(LIMITED, path) as process:
        output = process.communicate()[0]
    assert process.returncode == 0
    assert "no space left to write it" in output and "run again with --resume" in output
    with open_journal(path, KEY, resume=True) as journal:
        assert_holds(journal, 2)


@pytest.mark.parametrize(
    "body",
    [
        b"no line",
        b"{}\n",
        b"[" * 100_000 + b"\n",
        b'["0", [["a", "O", [1]]]]\n' + bytes(64),
        b'["0", [["a", "<f8", [1000000000000]]]]\n' + bytes(64),
        b'["0", [["a", "<f8", [-1]]]]\n' + bytes(64),
    ],
    ids=range(6),
)
def test_a_record_of_nonsense_with_a_checksum_is_refused(body: bytes, tmp_path: Path) -> None:
    fill(tmp_path / "j", 1)
    head = journal._sealed(journal._RECORD, journal._MARK, len(body), hashlib.sha256(body).digest())
    with open(tmp_path / "j", "ab") as file:
        file.write(head + body)
    with (
        pytest.raises(ModelError, match="is not as localsvm writes it"),
        open_journal(tmp_path / "j", KEY, resume=True) as reopened,
    ):
        reopened["0"]


@pytest.mark.parametrize("dtype", ["2,f", ",", "O", "f8,f8", "<f16", 8])
def test_a_record_of_anything_but_numbers_is_refused(dtype: object) -> None:
    """Types with a comma are refused: numpy reads them as Python source."""
    body = journal._pack("1", {"x": np.zeros(3)})
    forged = body.replace(b'"<f8"', json.dumps(dtype).encode())
    assert journal._unpack(body)["x"].tobytes() == bytes(24)
    with pytest.raises(ValueError, match="only numbers"):
        journal._unpack(forged)
