"""lsvm partition: the file, the table of sizes, the picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import error, invoke
from malformed import MALFORMED
from value_cells import noisy

from localsvm.data.writers.libsvm import write
from localsvm.store.model import load_partition


@pytest.mark.parametrize("name", ["voronoi", "chunks", "kmeans"])
def test_the_file_and_the_table_agree(name: str, train_file: Path, tmp_path: Path) -> None:
    result = invoke("partition", "-P", name, "-c", 60, train_file, tmp_path / "cells.h5")
    assert result.stderr.startswith("geometry    ") and result.stderr.count("\n") == 1
    shown = {key: float(value) for key, value in (line.split() for line in result.stdout.splitlines())}
    stored = load_partition(tmp_path / "cells.h5")
    assert stored.config["partition"] == name and stored.config["cell_size"] == 60
    np.testing.assert_array_equal(stored.sizes, np.bincount(stored.assignment[stored.assignment >= 0]))
    assert stored.weight.sum() == 300
    assert list(shown) == ["rows", "cells", "smallest", "median", "mean", "largest", "balance"]
    assert (shown["rows"], shown["cells"]) == (stored.sizes.sum(), len(stored.sizes))
    assert (shown["smallest"], shown["largest"]) == (stored.sizes.min(), stored.sizes.max()) and shown["largest"] <= 60


def test_small_data_are_one_cell(train_file: Path, tmp_path: Path) -> None:
    result = invoke("partition", train_file, tmp_path / "cells.h5")
    assert load_partition(tmp_path / "cells.h5").config["partition"] == "none"
    assert "cells     1\n" in result.stdout


def test_the_seed_and_the_scaling_count(train_file: Path, tmp_path: Path) -> None:
    for name, options in (("a", ["--seed", 1]), ("b", ["--seed", 1]), ("c", ["--seed", 2])):
        invoke("partition", "-P", "chunks", "-c", 60, "--scale", "row", *options, train_file, tmp_path / name)
    a, b, c = (load_partition(tmp_path / name) for name in "abc")
    np.testing.assert_array_equal(a.assignment, b.assignment)
    assert (a.assignment != c.assignment).any()
    assert a.scaling[0] == "row"


def test_the_report(train_file: Path, tmp_path: Path) -> None:
    result = invoke("partition", "--json", "-P", "voronoi", "-c", 60, train_file, tmp_path / "cells.h5")
    report = json.loads(result.stdout)
    assert (report["schema_version"], report["command"]) == (1, "partition")
    assert report["sizes"] == load_partition(tmp_path / "cells.h5").sizes.tolist()
    assert report["spread"]["cells"] == len(report["sizes"]) and report["spread"]["largest"] == max(report["sizes"])


@pytest.mark.parametrize(("options", "noted"), [((), True), (("--loss", "absolute"), False)])
def test_labels_that_are_values_are_noted(options: tuple[str, ...], noted: bool, tmp_path: Path) -> None:
    """The metric of classes is another one, and so are the cells."""
    write(tmp_path / "train", *noisy(100, 0))
    done = invoke("partition", "--metric", "none", *options, tmp_path / "train", tmp_path / "cells.h5")
    assert ("are taken for classes; if they are values, give --loss here, too\n" in done.stderr) == noted


def test_the_picture(train_file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "sizes.png"
    invoke("partition", "-c", 60, "--plot", picture, train_file, tmp_path / "cells.h5")
    assert picture.read_bytes().startswith(b"\x89PNG")
    message = error("partition", "-c", 60, "--plot", picture, train_file, tmp_path / "other.h5")
    assert "sizes.png: exists already" in message and not (tmp_path / "other.h5").exists()


def test_outputs_in_the_way_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "cells.h5").write_text("precious")
    assert "exists already" in error("partition", tmp_path / "absent", tmp_path / "cells.h5")
    same = error("partition", "--plot", tmp_path / "x.png", tmp_path / "absent", tmp_path / "x.png")
    assert "would replace" in same


def test_malformed_data(tmp_path: Path) -> None:
    name, text, message = MALFORMED[0]
    (tmp_path / name).write_bytes(text)
    assert error("partition", tmp_path / name, tmp_path / "cells.h5").startswith(f"{tmp_path / name}{message}")
