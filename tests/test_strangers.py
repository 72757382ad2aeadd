"""Model and partition files from strangers: whatever they hold, they are refused in one line, or used as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import error, invoke
from dividing import divide
from strangers import ANOTHER, CHUNKS, HARMLESS, Damage, attributes, damaged, foreign, replace, special

from develop.make_golden import DENSE, FOLDER, PARTITION, SPARSE, golden
from localsvm.data.readers.libsvm import read
from localsvm.errors import DataError, ModelError
from localsvm.methods.linear.linear import LinearSVM
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel

FRESH = {  # what the golden models of the first version have not
    "report": (DENSE, "-m svm -g 1 -C 1,10 -v 3 -P kmeans -c 20"),
    "repeats": (DENSE, "-m linear -C 1 -P chunks -c 30 --repeats 2"),
    "columns": (SPARSE, "-m svm -g 0.1 -C 1"),
    "ranks": (DENSE, "-m svm -g 1 -C 1 --views ranks --metric diag"),
}
# what HDF5's own checks find as well, and what an accident could do
BY_CHANCE = CHUNKS | {
    "a list",
    "text of any length",
    "unreadable",
    "an empty object",
}
# every so-many-th damage, from the first or a later one: some, and half of all in parts that run side by side
WHOLE_PARTS = [pytest.param(slice(2 * part, None, 8), marks=pytest.mark.whole, id=f"part_{part}") for part in range(4)]
LINE = 400  # characters of a message at most, without the path


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, Path]]:
    """Files of all methods and partitions by name: the name of their rows, and the path."""
    folder = tmp_path_factory.mktemp("bases")
    files = {name: (rows, FOLDER / f"{name}.h5") for name, (rows, _) in golden().items()}
    for name, (rows, options) in FRESH.items():
        invoke("train", "-q", "-j", 1, *options.split(), FOLDER / rows, folder / f"{name}.h5")
        files[name] = rows, folder / f"{name}.h5"
    return files


def use(path: Path, rows: str, verify: bool = True) -> bytes:
    """Bytes of the decision values of a model, or of the rows of the cells of a partition."""
    if path.stem == PARTITION:
        cells = divide(read(FOLDER / rows), TrainingConfig(LinearSVM()), path)
        return b"".join(cell.edges.tobytes() + cell.y.array.tobytes() for cell in cells.coarse)
    with LocalModel(path, verify=verify) as model:
        return b"".join(block.decisions.tobytes() for block in model.predict_blocks(model.read(FOLDER / rows)))


def verdict(path: Path, rows: str, sound: bytes, damage: Damage) -> str:
    """Fault in how a damaged file was taken; empty where it is refused in a line or harmless."""
    harmless = (damage.place, damage.kind) in HARMLESS
    try:
        output = use(path, rows)
    except ModelError as error:
        message = str(error)
        if "has changed since" in message and damage.kind not in BY_CHANCE:
            return f"refused as damaged by accident: {message!r}"
        if damage.kind in CHUNKS and "chunk" not in message:
            return f"not refused for its chunk: {message!r}"
        one_line = message.startswith(str(path)) and message.isprintable() and len(message) < len(str(path)) + LINE
        return "" if one_line else f"not one line: {message!r}"
    except DataError as error:
        return "" if damage.kind == "all largest" else f"{error}"  # no row has a value that is finite
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    if damage.kind in ("all 0", "all largest"):  # a model of other numbers, and of no use
        return ""
    if (damage.place, damage.kind) in ANOTHER or (harmless and output == sound):
        return ""
    return "used, and not listed as harmless" if output == sound else "used, with other values"


def all_damages(bases: dict[str, tuple[str, Path]], tmp_path: Path) -> Iterator[tuple[str, Damage]]:
    seen: set[tuple[str, ...]] = set()
    for name in [PARTITION, *FRESH, *(key for key in bases if key not in FRESH and key != PARTITION)]:
        for damage in damaged(bases[name][1], seen):
            yield name, damage
    for name in ("svm-voronoi", "svm-sparse-ava", "columns", "report"):
        for damage in special(bases[name][1]):
            yield name, damage
    with h5py.File(tmp_path / "elsewhere.h5", "w") as file:
        file["x"] = np.ones(3)
    for place in ("/labels", "/cells/support", "/cells/coef_index", "/cells/row_ptr/coef", "/scaling/factor"):
        for damage in foreign(place, tmp_path / "elsewhere.h5"):
            yield "svm", damage
    for damage in attributes(bases["report"][1]):
        yield "report", damage


@pytest.mark.parametrize("part", [pytest.param(slice(None, None, 15), id="some"), *WHOLE_PARTS])
def test_strangers(part: slice, bases: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    sound = {name: use(path, rows) for name, (rows, path) in bases.items()}
    wrong, count = [], 0
    for name, damage in list(all_damages(bases, tmp_path))[part]:
        rows, base = bases[name]
        path = tmp_path / f"{name}.h5"
        damage.make(base, path)
        count += 1
        fault = verdict(path, rows, sound[name], damage)
        if fault:
            wrong.append(f"{name} {damage.place} {damage.kind}: {fault}")
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong)
    assert count >= 300 // part.step


def test_a_sound_file_with_a_new_manifest_is_used(bases: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    """Files written again without a change give the same values, so that refusals are due to changes."""
    for name, (rows, base) in bases.items():
        path = tmp_path / f"{name}.h5"
        Damage("/labels", "none", lambda file: None).make(base, path)
        assert use(path, rows) == use(base, rows)


def test_cells_are_checked_without_verification(bases: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    rows, base = bases["svm"]
    for place, value in (("/cells/coef_index", -7), ("/cells/coef_index", 1 << 20), ("/cells/model_problem", 1)):
        with h5py.File(base) as file:
            values = file[place][...]
        values[-1] = value
        Damage(place, "", lambda file, p=place, v=values: replace(file, p, v)).make(base, tmp_path / "svm.h5")  # type: ignore[misc]
        with pytest.raises(ModelError, match=place):
            use(tmp_path / "svm.h5", rows, verify=False)


def test_commands_tell_it_in_one_line(bases: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    def spoil(file: h5py.File) -> None:
        replace(file, "/labels", np.asarray([1.0, 1.0]))

    Damage("/labels", "twice", spoil).make(bases["svm"][1], tmp_path / "m.h5")
    message = f"{tmp_path}/m.h5: not as localsvm writes it: /labels do not ascend"
    assert error("predict", FOLDER / DENSE, tmp_path / "m.h5").startswith(message)
    assert error("inspect", tmp_path / "m.h5").startswith(message)

    def count(file: h5py.File) -> None:
        replace(file, "/sizes", np.asarray([1, 2, 3, 4, 50]))

    Damage("/sizes", "", count).make(bases[PARTITION][1], tmp_path / "p.h5")
    command = "train", "-m", "linear", "-C", "1", "-j", "1", "--partition-file", tmp_path / "p.h5"
    message = f"{tmp_path}/p.h5: not as localsvm writes it: /sizes are not those of /assignment"
    assert error(*command, FOLDER / DENSE, tmp_path / "n.h5").startswith(message)


ROW = "r{0},{1},{2},2024-0{3}-11,{4},c{5}\n"
TABLE = "id,label,n,when,few,many\n" + "".join(
    ROW.format(i, "ab"[i % 2], "" if i % 9 == 0 else i % 7, 1 + i % 9, "xyz"[i % 3], i % 12) for i in range(90)
)
STRANGE = (None, "nonsense", "", -1, 10**30, 0.5, True, {"a": 1}, [], ["a"], [[[1]]], ["a", "a"], "\n", '"', "\udcff")


@pytest.mark.parametrize("part", [pytest.param(slice(None, None, 70), id="some"), *WHOLE_PARTS])
def test_a_description_of_a_table_is_refused_or_used(part: slice, tmp_path: Path) -> None:
    """Every value of it, replaced by each strange one or left out, gives a message of one line or a prediction."""
    (tmp_path / "t.csv").write_text(TABLE)
    options = ["-g", "1", "-C", "1", "--metric", "none", "--id-column", "id"]
    used = refused = 0
    for encode in ("auto", "ordinal"):
        base, path = tmp_path / f"{encode}.h5", tmp_path / "m.h5"
        invoke("train", "-q", *options, "--encode", encode, tmp_path / "t.csv", base)
        with LocalModel(base) as model:
            config = model.file.config
        for changed in list(_changes(config["table"]))[part]:
            text = json.dumps(config | {"table": changed}).encode()
            Damage("/@config", "table", lambda file, text=text: set_config(file, text)).make(base, path)  # type: ignore[misc]
            try:
                with LocalModel(path) as model:
                    list(model.predict_blocks(model.read(tmp_path / "t.csv")))
                used += 1
            except (ModelError, DataError) as error:
                message = str(error)
                refused += 1
                assert message.isprintable() and len(message) < len(str(path)) + LINE, (message, changed)
    assert used and refused


def _changes(value: Any) -> Iterator[Any]:
    """The value with one of its parts replaced, or left out."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: each for name, each in value.items() if name != key}
            for new in [*STRANGE, *_changes(part)]:
                yield value | {key: new}
    elif isinstance(value, list) and value:
        yield value[1:]
        for new in [*STRANGE, *_changes(value[0])]:
            yield [new, *value[1:]]


def set_config(file: h5py.File, text: bytes) -> None:
    """Put another text in the place of the config."""
    del file.attrs["config"]
    file.attrs["config"] = np.bytes_(text)
