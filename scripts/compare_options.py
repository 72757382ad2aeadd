"""Compares values of one training option on hold-outs of training files; test files are never touched.

    python scripts/compare_options.py DATA select=vote,refit [--fix multiclass=ava] [--sets magic,ijcnn1]

DATA is a folder with NAME.train.libsvm.xz. For each set and seed a random quarter of the rows is held out, each value
trains on the rest, and a Markdown table of hold-out errors in per cent (mean over the seeds) goes to stdout.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from harness.datasets import examples
from harness.library import Dataset, LocalModel, TrainingConfig, as_examples, train
from harness.machine import cores

SETS = "svmguide1,higgs11k,magic,susy30k,cod-rna,ijcnn1,skin_nonskin,covtype"


def main() -> None:
    """Print the table, a row a set, as the runs end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("option", help="a field of TrainingConfig and its values: select=vote,refit")
    parser.add_argument("--fix", default=[], action="append", help="another field, and its one value")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=130_000, help="at most so many rows of a set, drawn at random")
    options = parser.parse_args()
    field, _, values = options.option.partition("=")
    fixed = TrainingConfig()
    for text in options.fix:
        fixed = changed(fixed, *text.split("="))
    configs = [changed(fixed, field, value) for value in values.split(",")]
    print(f"| set | rows | {' | '.join(f'{field} {v}' for v in values.split(','))} |\n|---|---|{'---|' * len(configs)}")
    for name in options.sets.split(","):
        print(row(name, configs, options), flush=True)


def changed(config: TrainingConfig, field: str, value: str) -> TrainingConfig:
    """The configuration with another value, given as text."""
    kind = int if isinstance(getattr(config, field), int) else str
    return dataclasses.replace(config, **{field: kind(value)})


def row(name: str, configs: list[TrainingConfig], options: Any) -> str:
    """The mean hold-out errors of one set."""
    data = examples(options.data, name, "train")
    y, errors = data.y, []
    for seed in range(options.seeds):
        order = np.random.default_rng(1000 + seed).permutation(len(y))[: options.rows]
        held, rest = order[: len(order) // 4], order[len(order) // 4 :]
        errors.append([error(data.X, y, rest, held, dataclasses.replace(c, seed=seed)) for c in configs])
        print(f"{name} seed {seed}: {errors[-1]}", file=sys.stderr)
    cells = " | ".join(f"{mean:.3f}" for mean in np.mean(errors, axis=0))
    return f"| {name} | {len(rest)} | {cells} |"


def error(X: Any, y: Any, rest: Any, held: Any, config: TrainingConfig) -> float:
    """Error in per cent on the rows held out of a model trained on the rest."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.h5"
        train(Dataset(as_examples(X[rest]), y[rest]), config, model, jobs=cores())
        with LocalModel(model) as local:
            return 100 * float((local.predict(as_examples(X[held])) != y[held]).mean())


if __name__ == "__main__":
    main()
