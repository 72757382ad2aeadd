"""Writing a model: in the way, interrupted, out of space, or given what does not fit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsvm.errors import RunError
from localsvm.store.model import ModelContent, load_model, write_model


def make_cells(*lengths: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [{"coef": rng.random(n), "coef_index": rng.integers(0, n, n, np.int32)} for n in lengths]


def write(path: Path, cells: Any, n_cells: int, force: bool = False) -> None:
    content = ModelContent({}, np.zeros(2), ("none", {}), ("none", {}))
    write_model(path, content, cells, n_cells, force)


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    write(tmp_path / "model.h5", make_cells(4, 7), 2)
    return tmp_path / "model.h5"


def test_nothing_is_overwritten_without_force(model_file: Path) -> None:
    before = model_file.read_bytes()
    with pytest.raises(RunError, match="--force"):
        write(model_file, make_cells(1), 1)
    assert model_file.read_bytes() == before
    write(model_file, make_cells(1), 1, force=True)
    with load_model(model_file) as model:
        assert model.n_cells == 1


def test_an_open_model_outlives_its_replacement(model_file: Path) -> None:
    with load_model(model_file) as model:
        write(model_file, make_cells(1), 1, force=True)
        assert np.array_equal(model.cell(1)["coef"], make_cells(4, 7)[1]["coef"])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_broken_write_leaves_no_trace(model_file: Path, error: type[BaseException]) -> None:
    def cells() -> Any:
        yield from make_cells(300_000)
        raise error

    before = model_file.read_bytes()
    with pytest.raises(error):
        write(model_file, cells(), 2, force=True)
    assert os.listdir(model_file.parent) == ["model.h5"]
    assert model_file.read_bytes() == before


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"a": np.zeros(2)}, "has the arrays"),
        ({"a": np.zeros(2), "b": np.zeros((2, 3), np.float32)}, "float32"),
        ({"a": np.zeros(2), "b": np.zeros((2, 4))}, r"\(4,\)"),
        ({"a": np.array(2.0), "b": np.zeros((2, 3))}, "is stored"),
    ],
)
def test_cells_that_do_not_fit_together(tmp_path: Path, second: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "model.h5", [{"a": np.zeros(1), "b": np.zeros((1, 3))}, second], 2)
    assert not os.listdir(tmp_path)


def test_a_wrong_number_of_cells_and_a_wrong_kind_of_array(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 cells were given, 3 were announced"):
        write(tmp_path / "model.h5", make_cells(1, 2), 3)
    for array in (np.array(["a"]), np.array([True]), np.array([None]), np.zeros(2, complex)):
        with pytest.raises(TypeError, match="cannot be stored"):
            write(tmp_path / "model.h5", [{"a": array}], 1)


def run_python(code: str, *arguments: object) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of code in its own process, which HDF5 crashes at its end after a failed write."""
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": f"{here.parent}:{here}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


LIMITED = """
import resource, sys
from pathlib import Path
from localsvm.errors import RunError
from test_container_writing import make_cells, write
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    write(Path(sys.argv[1]), make_cells(400_000, 200_000), 2, force=True)
except RunError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [0, 10, 3_000, 1_000_000, 5_000_000])
def test_a_full_disk_is_named_and_loses_nothing(model_file: Path, limit: int) -> None:
    before = model_file.read_bytes()
    code, output, errors = run_python(LIMITED, model_file, limit)
    assert (code, errors) == (0, "")
    assert "no space left to write it (File too large); nothing was overwritten" in output
    assert os.listdir(model_file.parent) == ["model.h5"]
    assert model_file.read_bytes() == before


INTERRUPTED = """
import signal, sys
from pathlib import Path
from localsvm.store import container_writing
from test_container_writing import make_cells, write

class Sink(container_writing._Sink):
    def write(self, data):
        global left
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGINT)
        return super().write(data)

left = int(sys.argv[2])
container_writing._Sink = Sink
try:
    write(Path(sys.argv[1]), make_cells(400_000, 200_000), 2, force=True)
except KeyboardInterrupt:
    print("interrupted", left <= 0)
"""


@pytest.mark.parametrize("at", [1, 2, 15])
def test_an_interrupt_inside_hdf5_waits_until_it_is_safe(model_file: Path, at: int) -> None:
    before = model_file.read_bytes()
    assert run_python(INTERRUPTED, model_file, at) == (0, "interrupted True\n", "")
    assert os.listdir(model_file.parent) == ["model.h5"]
    assert model_file.read_bytes() == before
