"""The model and partition files: what goes in comes out, equal content is equal bytes, damage is refused."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from localsvm import __version__
from localsvm.errors import ModelError
from localsvm.store.container import FORMAT_VERSION
from localsvm.store.model import ModelContent, PartitionFile, load_model, load_partition, write_model, write_partition

DTYPES = [np.dtype(code) for code in ("<f4", "<f8", "<i4", "<i8", "u1", "i1", "<u2")]
CELL = {"support": ("<f4", (3,)), "coef": ("<f8", ()), "coef_index": ("<i4", ()), "converged": ("u1", ())}
CONFIG = {"method": "svm", "cell_size": 2000, "grid": [0.1, 1.0]}
LABELS = np.array([-1.0, 1.0])
SCALING = ("std", {"factor": np.arange(3, dtype=np.float32)})
PARTITION = (
    "voronoi",
    {"centres": np.ones((2, 3), np.float32), "depth": np.array(4), "no": np.empty((0, 2))},
)


def make_cells(*lengths: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [
        {name: (rng.random((n, *shape)) * 100).astype(dtype) for name, (dtype, shape) in CELL.items()} for n in lengths
    ]


def write(path: Path, cells: Any = None, n_cells: int | None = None, **changes: Any) -> None:
    cells = make_cells(4, 0, 7) if cells is None else cells
    state: dict[str, Any] = {
        "config": CONFIG,
        "labels": LABELS,
        "scaling": SCALING,
        "partition": PARTITION,
    } | changes
    force = state.pop("force", False)
    write_model(path, ModelContent(**state), cells, len(cells) if n_cells is None else n_cells, force)


def assert_same(actual: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        assert (actual[name].dtype, actual[name].shape) == (array.dtype, array.shape), name
        assert actual[name].tobytes() == array.tobytes(), name


def read_all(path: Path) -> list[Any]:
    with load_model(path) as model:
        cells = [model.cell(i) for i in range(model.n_cells)]
        return [model.config, model.labels, model.scaling, model.partition, cells]


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    write(tmp_path / "model.h5")
    return tmp_path / "model.h5"


# --- what goes in comes out

FINITE: dict[str, Any] = {"allow_nan": False, "allow_infinity": False}  # no model has other numbers


@st.composite
def lists_of_cells(draw: st.DrawFn) -> list[dict[str, np.ndarray]]:
    names = draw(st.lists(st.sampled_from(["a", "b", "a_ptr", "ptr", "coef"]), unique=True))
    shapes = st.sampled_from([(), (1,), (3,), (2, 2), (0,)])
    kinds = {name: (draw(st.sampled_from(DTYPES)), draw(shapes)) for name in names}
    return [
        {
            name: draw(hnp.arrays(dtype, (draw(st.integers(0, 5)), *shape), elements=hnp.from_dtype(dtype, **FINITE)))
            for name, (dtype, shape) in kinds.items()
        }
        for _ in range(draw(st.integers(0, 4)))
    ]


STATES = st.dictionaries(
    st.sampled_from("xyz"), hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0), elements=FINITE)
)
CONFIGS = st.dictionaries(
    st.text(max_size=5), st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=lists_of_cells(), labels=hnp.arrays("<f8", st.integers(0, 4)), state=STATES, config=CONFIGS)
def test_round_trip(tmp_path: Path, cells: Any, labels: Any, state: Any, config: Any) -> None:
    path = tmp_path / "model.h5"
    write(path, cells, labels=labels, config=config, scaling=("m", state), partition=("p", state), force=True)
    with load_model(path) as model:
        assert model.config == config
        assert model.labels.tobytes() == labels.tobytes()
        assert (model.scaling[0], model.partition[0], model.n_cells) == ("m", "p", len(cells))
        assert_same(model.scaling[1], state)
        assert_same(model.partition[1], state)
        for i, cell in enumerate(cells):
            assert_same(model.cell(i), cell)
        for name in cells[0] if cells else ():
            assert model.column(name).tobytes() == b"".join(cell[name].tobytes() for cell in cells)


def test_columns_longer_than_a_block_come_back_whole(tmp_path: Path) -> None:
    cells = make_cells(70_000, 1, 250_000, 0, 90_001)
    write(tmp_path / "model.h5", cells)
    with load_model(tmp_path / "model.h5") as model:
        for i, cell in enumerate(cells):
            assert_same(model.cell(i), cell)


def test_rows_wider_than_a_chunk(tmp_path: Path) -> None:
    wide = [{"support": np.full((2, 80_000), i, np.float32)} for i in range(12)]
    write(tmp_path / "model.h5", wide)
    with load_model(tmp_path / "model.h5") as model:
        assert_same(model.cell(11), wide[11])


def test_a_config_beyond_64_kib(tmp_path: Path) -> None:
    config = {"labels": list(range(50_000))}
    write(tmp_path / "model.h5", config=config)
    with load_model(tmp_path / "model.h5") as model:
        assert model.config == config


def test_big_endian_arrays_become_little_endian(tmp_path: Path) -> None:
    state = {"factor": np.array([1.0, 2.0], ">f8"), "scalar": np.array(3, ">i4")}
    write(tmp_path / "model.h5", scaling=("std", state))
    with load_model(tmp_path / "model.h5") as model:
        assert model.scaling[1]["factor"].tolist() == [1.0, 2.0]
        assert model.scaling[1]["scalar"] == 3


def test_cells_are_not_held_in_memory(tmp_path: Path) -> None:
    def cells() -> Any:
        for i in range(60):
            yield {"support": np.full((1 << 15, 8), i, np.float32)}  # 1 MiB each

    tracemalloc.start()
    write(tmp_path / "model.h5", cells(), 60)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    with load_model(tmp_path / "model.h5", verify=False) as model:
        assert model.cell(41)["support"].shape == (1 << 15, 8)
        assert np.all(model.cell(41)["support"] == 41)


# --- the specification


def test_layout_as_specified(tmp_path: Path) -> None:
    write(tmp_path / "model.h5", make_cells(90_000, 5))
    with h5py.File(tmp_path / "model.h5") as file:
        assert file.attrs["format"] == b"localsvm-model"
        assert file.attrs["format_version"] == FORMAT_VERSION
        assert file.attrs["generator"].decode() == f"localsvm {__version__}"
        assert "created" not in file.attrs
        assert file.attrs["config"].decode() == json.dumps(CONFIG, sort_keys=True)
        assert set(file) == {"labels", "scaling", "partition", "cells"}
        assert set(file["cells"]) == {*CELL, "row_ptr"}
        assert file["cells/row_ptr/coef"][...].tolist() == [0, 90_000, 90_005]


def test_the_header_says_what_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    write(tmp_path / "model.h5")
    with load_model(tmp_path / "model.h5") as model:
        assert model.header == {
            "format": "localsvm-model",
            "format_version": FORMAT_VERSION,
            "generator": f"localsvm {__version__}",
            "created": "1970-01-01T00:00:00+00:00",
        }


def test_filters_as_specified(tmp_path: Path) -> None:
    write(tmp_path / "model.h5", make_cells(90_000, 5))
    items: list[Any] = []
    with h5py.File(tmp_path / "model.h5") as file:
        file.visititems(lambda _, item: items.append(item))
        for data in (item for item in items if isinstance(item, h5py.Dataset)):
            assert data.fletcher32 == (data.chunks is not None) == (data.size > 0 and data.ndim > 0)
            packed = data.chunks is not None and data.dtype.kind in "iu"
            assert (data.compression, data.shuffle) == (("gzip", True) if packed else (None, False))
            assert data.chunks is None or np.prod(data.chunks) * data.dtype.itemsize <= 1 << 18


def test_no_text_lies_in_the_heap_that_has_no_checksums(model_file: Path) -> None:
    assert b"GCOL" not in model_file.read_bytes()


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_specification_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[1] / "docs" / "model-format.md"
    example = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[number]
    cell = {
        "support": np.array([[1, 0], [0, 2]], np.float32),
        "coef_ptr": np.array([0, 2]),
        "coef_index": np.array([1, 0], np.int32),
        "coef": np.array([-3.0, 0.5]),
        "model_gamma": np.array([0.25]),
        "model_bias": np.array([0.125]),
    }
    write(tmp_path / "model.h5", [cell])
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    if number == 0:
        printed = float(capsys.readouterr().out.split()[-1])
        assert printed == pytest.approx(-3 * np.exp(-1) + 0.5 * np.exp(-0.25) + 0.125, rel=1e-12)


# --- equal content, equal bytes


def test_two_writes_differ_in_created_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    cells = make_cells(100_000, 3, 80_000)
    write(tmp_path / "one.h5", cells)
    write(tmp_path / "two.h5", (cell for cell in cells), 3)
    one = (tmp_path / "one.h5").read_bytes()
    assert one == (tmp_path / "two.h5").read_bytes()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "172800")
    write(tmp_path / "two.h5", cells, force=True)
    two = (tmp_path / "two.h5").read_bytes()
    different = sum(a != b for a, b in zip(one, two, strict=True))
    assert 1 <= different <= 1 + 4  # the day, and the checksum of the header that holds it
    with h5py.File(tmp_path / "one.h5") as first, h5py.File(tmp_path / "two.h5") as second:
        assert first.attrs["manifest"] == second.attrs["manifest"]


# --- damage


@pytest.mark.whole
def test_every_flipped_byte_is_refused(model_file: Path) -> None:
    sound = model_file.read_bytes()
    for position in range(0, len(sound), 23):
        damaged = bytearray(sound)
        damaged[position] ^= 0x40
        model_file.write_bytes(damaged)
        with pytest.raises(ModelError, match=r"changed since it was written|not a localsvm model|truncated"):
            read_all(model_file)


def test_every_truncation_is_called_one(model_file: Path) -> None:
    sound = model_file.read_bytes()
    for length in [*range(1, 120), *range(120, len(sound), 31), len(sound) - 1]:
        model_file.write_bytes(sound[:length])
        with pytest.raises(ModelError, match="truncated"):
            load_model(model_file)


def test_a_flipped_float_is_refused_without_verification(tmp_path: Path) -> None:
    cells = make_cells(40)
    write(tmp_path / "model.h5", cells)
    content = bytearray((tmp_path / "model.h5").read_bytes())
    content[content.index(cells[0]["coef"].tobytes())] ^= 1
    (tmp_path / "model.h5").write_bytes(content)
    with load_model(tmp_path / "model.h5", verify=False) as model, pytest.raises(ModelError, match="changed"):
        model.cell(0)


def set_value(file: h5py.File) -> None:
    file["cells/coef"][3] += 1


def set_attribute(file: h5py.File) -> None:
    file["scaling"].attrs["mode"] = np.bytes_("row")


def set_config(file: h5py.File) -> None:
    file.attrs["config"] = np.bytes_(file.attrs["config"].replace(b"2000", b"3000"))


def set_count(file: h5py.File) -> None:
    file["cells"].attrs["n_cells"] = 2


def add_dataset(file: h5py.File) -> None:
    file["cells/more"] = np.zeros(3)


def add_attribute(file: h5py.File) -> None:
    file["labels"].attrs["unit"] = 1


def change_dtype(file: h5py.File) -> None:
    values = file["labels"][...].view(np.int64)
    del file["labels"]
    file["labels"] = values


def spoil_manifest(file: h5py.File) -> None:
    file.attrs["manifest"] = np.bytes_("[1]")


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (set_value, "/cells/coef"),
        (set_attribute, "/scaling@mode"),
        (set_config, "/@config"),
        (set_count, "/cells@n_cells"),
        (add_dataset, "/cells/more"),
        (add_attribute, "/labels@unit"),
        (change_dtype, "/labels"),
    ],
)
def test_content_changed_by_a_program_is_refused(model_file: Path, edit: Any, place: str) -> None:
    with h5py.File(model_file, "r+") as file:
        edit(file)
    with pytest.raises(ModelError, match="content has changed") as caught:
        load_model(model_file)
    assert place in str(caught.value)


def test_a_manifest_that_is_none_is_refused(model_file: Path) -> None:
    with h5py.File(model_file, "r+") as file:
        spoil_manifest(file)
    with pytest.raises(ModelError, match="/@manifest is not a JSON object"):
        load_model(model_file)


def test_the_creation_time_may_change(model_file: Path) -> None:
    before = read_all(model_file)
    with h5py.File(model_file, "r+") as file:
        file.attrs["created"] = np.bytes_("2001-01-01T00:00:00+00:00")
    assert repr(read_all(model_file)) == repr(before)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    "piece", ["labels", "scaling", "partition", "cells", "cells/coef", "cells/row_ptr", "cells/row_ptr/coef"]
)
def test_a_missing_piece_is_named(model_file: Path, piece: str, verify: bool) -> None:
    with h5py.File(model_file, "r+") as file:
        del file[piece]
    with pytest.raises(ModelError, match="a piece is missing from the file: ") as caught:
        load_model(model_file, verify)
    assert piece.split("/")[-1] in str(caught.value)


@pytest.mark.parametrize("name", ["format_version", "manifest", "config"])
def test_a_missing_attribute_is_named(model_file: Path, name: str) -> None:
    with h5py.File(model_file, "r+") as file:
        del file.attrs[name]
    with pytest.raises(ModelError, match=f"a piece is missing from the file: .*{name}"):
        load_model(model_file)


def test_row_pointers_that_do_not_fit_are_refused(model_file: Path) -> None:
    with h5py.File(model_file, "r+") as file:
        file["cells/row_ptr/coef"][-1] = 12
    with pytest.raises(ModelError, match="row_ptr/coef does not fit"):
        load_model(model_file, verify=False)


def test_a_newer_format_is_refused(model_file: Path) -> None:
    with h5py.File(model_file, "r+") as file:
        file.attrs["format_version"] = FORMAT_VERSION + 1
    with pytest.raises(ModelError, match=rf"format version {FORMAT_VERSION + 1} is newer .*upgrade localsvm"):
        load_model(model_file)


def test_files_that_are_not_models(tmp_path: Path) -> None:
    (tmp_path / "train.libsvm").write_text("1 1:0.5\n" * 100)
    (tmp_path / "empty").touch()
    for name in ("train.libsvm", "empty"):
        with pytest.raises(ModelError, match=r"not a localsvm model \(not an HDF5 file"):
            load_model(tmp_path / name)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(3)
        file.attrs["format"] = "keras"
    with pytest.raises(ModelError, match="an HDF5 file, but not a localsvm model"):
        load_model(tmp_path / "other.h5")
    with pytest.raises(ModelError, match="cannot read the model: No such file"):
        load_model(tmp_path / "absent.h5")
    with pytest.raises(ModelError, match="cannot read the model: Is a directory"):
        load_model(tmp_path)


# --- the partition file


def make_partition(path: Path, **changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "config": {"cell_size": 3, "fingerprint": "ab" * 32},
        "scaling": SCALING,
        "partition": PARTITION,
        "assignment": np.array([0, 1, 1, 0, 1], np.int32),
        "weight": np.array([1.0, 1.0, 2.0, 1.0, 0.0]),
        "sizes": np.array([2, 3]),
        "centres": np.ones((2, 3), np.float32),
    } | changes
    write_partition(PartitionFile(path, **content))
    return content


@pytest.mark.parametrize("centres", [None, np.ones((2, 3), np.float32)])
def test_partition_round_trip(tmp_path: Path, centres: Any) -> None:
    content = make_partition(tmp_path / "cells.h5", centres=centres)
    loaded = load_partition(tmp_path / "cells.h5")
    assert loaded.config == {"cell_size": 3, "fingerprint": "ab" * 32}
    assert (loaded.scaling[0], loaded.partition[0]) == ("std", "voronoi")
    assert_same(loaded.scaling[1], SCALING[1])
    assert_same(loaded.partition[1], PARTITION[1])
    assert_same({"": loaded.assignment}, {"": content["assignment"]})
    assert_same({"": loaded.weight}, {"": content["weight"]})
    assert_same({"": loaded.sizes}, {"": content["sizes"]})
    assert (loaded.centres is None) == (centres is None)
    assert loaded.centres is None or loaded.centres.tolist() == centres.tolist()


def test_a_partition_is_no_model_and_a_model_no_partition(tmp_path: Path, model_file: Path) -> None:
    make_partition(tmp_path / "cells.h5")
    with pytest.raises(ModelError, match="a localsvm partition, where a model is expected"):
        load_model(tmp_path / "cells.h5")
    with pytest.raises(ModelError, match="a localsvm model, where a partition is expected"):
        load_partition(model_file)
