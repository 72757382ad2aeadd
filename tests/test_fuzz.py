"""The fuzzers find what they are there for: each is shown a fault that was made on purpose."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent / "fuzz"
CSRC = FOLDER.parent.parent / "csrc"


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    """The module tests/fuzz/fuzz_files.py."""
    spec = importlib.util.spec_from_file_location("fuzz_files", FOLDER / "fuzz_files.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def repeat(fuzz: ModuleType, target: Callable[..., None], folder: Path, times: int = 200) -> None:
    rng = np.random.default_rng(0)
    for _ in range(times):
        target(folder, rng)


def test_a_decoder_that_drops_the_end_is_found(fuzz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = fuzz.decoded
    monkeypatch.setattr(fuzz, "decoded", lambda path: decoded(path)[:-1])
    with pytest.raises(fuzz.Finding, match="something else"):
        repeat(fuzz, fuzz.compressed, tmp_path)


def test_a_decoder_that_breaks_off_is_found(fuzz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(fuzz, "decoded", broken)
    with pytest.raises(fuzz.Finding, match="ZeroDivisionError"):
        repeat(fuzz, fuzz.compressed, tmp_path)


def test_a_journal_without_checksums_is_found(fuzz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz.journal.Journal, "_body", lambda self, start, size: os.pread(
        self._descriptor, size, start + fuzz.journal._RECORD.size))  # fmt: skip
    with pytest.raises(fuzz.Finding):
        repeat(fuzz, fuzz.journals, tmp_path, 2000)


def test_a_model_that_is_not_checked_is_found(fuzz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = fuzz.use

    def unchecked(path: Path) -> bytes:
        return bytes(sound(path)) + path.read_bytes()[:1000]

    monkeypatch.setattr(fuzz, "use", unchecked)
    monkeypatch.setattr(fuzz, "changed", lambda content, rng: content)
    monkeypatch.setattr(fuzz, "SOUND", dict.fromkeys((f"{name}.h5" for name in fuzz.golden()), b""))
    with pytest.raises(fuzz.Finding, match="says something else"):
        repeat(fuzz, fuzz.models, tmp_path)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_text_reader_that_is_wrong_is_found(tmp_path: Path) -> None:
    """The dense reader gives a value that is not in the text."""
    wrong = tmp_path / "wrong.c"
    wrong.write_text(
        '#define lsvm_text_read_dense sound\n#include "libsvm_text.c"\n#undef lsvm_text_read_dense\n'
        "int lsvm_text_read_dense(const char *text, size_t size, struct lsvm_text_sink *sink,"
        " struct lsvm_text_place *place)\n"
        "{\n    int code = sound(text, size, sink, place);\n"
        "    if (code == LSVM_OK && sink->row > 0 && sink->width > 3)\n        sink->values[0] = 7;\n"
        "    return code;\n}\n"
    )
    program = tmp_path / "fuzz_text"
    flags = ["-std=gnu99", "-fsanitize=address", "-fsanitize-coverage=trace-pc", "-I", str(CSRC)]
    objects = [str(tmp_path / f"{name}.o") for name in ("wrong", "count")]
    for source, target in zip((wrong, CSRC / "libsvm_count.c"), objects, strict=True):
        subprocess.run(["cc", *flags, "-c", str(source), "-o", target], check=True)
    link = ["cc", "-std=gnu99", "-fsanitize=address", "-I", str(CSRC), str(FOLDER / "fuzz_text.c")]
    built = subprocess.run([*link, *objects, "-lm", "-o", str(program)], capture_output=True, text=True)
    if built.returncode and "asan" in built.stderr:
        pytest.skip("the compiler has no address sanitizer")
    assert not built.returncode, built.stderr
    failing = tmp_path / "failing"
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [program, "60", "1", failing, FOLDER / "text"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 1 and "values differ" in done.stderr and failing.stat().st_size > 0
