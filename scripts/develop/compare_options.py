"""Compares values of one training option on hold-outs of training files; test files are never touched.

    python scripts/develop/compare_options.py DATA select=vote,refit [--fix multiclass=ava] [--sets magic,ijcnn1]
    python scripts/develop/compare_options.py DATA grid=full,adaptive --fix method=csvm --fix common=1,10,100

DATA is a folder with NAME.train.libsvm.xz. For each set and seed a random quarter of the rows is held out, each value
trains on the rest, and a Markdown table of hold-out errors in per cent (mean over the seeds) goes to stdout. Options
are fields of TrainingConfig or, after --fix method=NAME, of that method. Distances are Euclidean, unless --fix
metric=auto or the like says otherwise. --shift adds a number to all values, --lose rounds them to float32 then, as
without origins (localsvm/data/readers/origin.py).
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.datasets import examples
from harness.library import Dataset, LocalModel, TrainingConfig, as_examples, from_array, methods, parse_values, train
from harness.machine import cores
from localsvm.runs.cells.schedule import Resources

SETS = "svmguide1,higgs11k,magic,susy30k,cod-rna,ijcnn1,skin_nonskin,covtype"
PARSERS: dict[type, Any] = {bool: lambda text: bool(int(text)), int: int, float: float, tuple: parse_values}


def main() -> None:
    """Print the table, a row a set, as the runs end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("option", help="an option and its values: select=vote,refit")
    parser.add_argument("--fix", default=[], action="append", help="another option, and its one value")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=130_000, help="at most so many rows of a set, drawn at random")
    parser.add_argument("-j", "--jobs", type=int, default=cores())
    parser.add_argument("--shift", type=float, default=0.0, help="added to all values")
    parser.add_argument("--lose", action="store_true", help="the digits that float32 does not hold after the shift")
    options = parser.parse_args()
    field, _, values = options.option.partition("=")
    fixed = TrainingConfig(metric="none")
    for text in options.fix:
        fixed = changed(fixed, *text.split("="))
    configs = [changed(fixed, field, value) for value in values.split(",")]
    print(f"| set | rows | {' | '.join(f'{field} {v}' for v in values.split(','))} |\n|---|---|{'---|' * len(configs)}")
    for name in options.sets.split(","):
        print(row(name, configs, options), flush=True)


def changed(config: TrainingConfig, field: str, value: str) -> TrainingConfig:
    """The configuration with another value, given as text, of one of its fields or of its method's."""
    if field == "method":
        return dataclasses.replace(config, method=methods()[value]())
    owner: Any = config if hasattr(config, field) else config.method
    new = dataclasses.replace(owner, **{field: PARSERS.get(type(getattr(owner, field)), str)(value)})
    return new if owner is config else dataclasses.replace(config, method=new)


def row(name: str, configs: list[TrainingConfig], options: Any) -> str:
    """The mean hold-out errors of one set."""
    data, errors = shifted(examples(options.data, name, "train"), options), []
    for seed in range(options.seeds):
        rest, held = split(len(data.y), seed, options.rows)
        errors.append([run(data, rest, held, dataclasses.replace(c, seed=seed), options.jobs) for c in configs])
        print(f"{name} seed {seed}: {errors[-1]}", file=sys.stderr)
    cells = " | ".join(f"{mean:.3f}" for mean in np.mean(errors, axis=0))
    return f"| {name} | {len(rest)} | {cells} |"


def shifted(data: Dataset, options: Any) -> Dataset:
    """The rows as --shift and --lose want them: a dense X in float64 where it is shifted."""
    if options.shift:
        data.X = data.X.astype(np.float64) + options.shift
        data.X = data.X.astype(np.float32) if options.lose else data.X
    return data


def rows_of(X: Any, y: Any, config: TrainingConfig) -> Dataset:
    """Rows to train on, from an origin where the method allows it."""
    if not isinstance(X, np.ndarray):
        return Dataset(as_examples(X), y)
    moved, shift = from_array(X, config.shifts)
    return Dataset(moved, y, shift=shift)


def split(n: int, seed: int, most: int) -> tuple[Any, Any]:
    """Rows to train on and rows held out, at most so many together."""
    order = np.random.default_rng(1000 + seed).permutation(n)[:most]
    return order[len(order) // 4 :], order[: len(order) // 4]


def run(data: Dataset, rest: Any, held: Any, config: TrainingConfig, jobs: int) -> float:
    """Error in per cent on the rows held out of a model trained on the rest."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.h5"
        train(rows_of(data.X[rest], data.y[rest], config), config, model, Resources(jobs=jobs))
        with LocalModel(model) as local:
            X = data.X[held] if isinstance(data.X, np.ndarray) else as_examples(data.X[held])
            return 100 * float((local.predict(X) != data.y[held]).mean())


if __name__ == "__main__":
    main()
