"""Options of a run that a partition file or a file with a metric fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from localsvm.cli.paths import seekable

if TYPE_CHECKING:
    from localsvm.runs.preparation.given import Given

FIXED_BY_METRIC = {"scale": "--scale", "metric": "--metric", "views": "--views"}
FIXED_BY_PARTITION = {"partition": "-P", "cell_size": "-c", "coarse_size": "--coarse-size", **FIXED_BY_METRIC}
EARLIER = {"metric": "none", "views": "none", "coarse_size": None}  # values of a partition file that does not name them
PARTITION, METRIC = "--partition-file", "--metric-file"


def of_partition(given: dict[str, Any], file: str) -> dict[str, Any]:
    """The values that a partition file fixes; UsageError for an option that would contradict them."""
    from localsvm.runs.preparation.stored import check_kept
    from localsvm.store.container import checked
    from localsvm.store.model import load_partition

    if given.get("repeats", 1) > 1:
        raise click.UsageError("--repeats makes several partitions, --partition-file holds one; give one of the two.")
    _refuse(given, FIXED_BY_PARTITION, PARTITION)
    config = load_partition(seekable(file, "a partition")).config
    with checked(file):
        check_kept(config)
    fixed = {name: (EARLIER | config)[name] for name in FIXED_BY_PARTITION}
    return fixed | _zero_based(given, config, "partition file")


def given_metric(file: str | None, options: dict[str, Any], partition_file: str | None = None) -> Given | None:
    """The metric of --metric-file; UsageError for an option that would contradict it."""
    from localsvm.runs.preparation.given import read_given

    if file is None:
        return None
    if partition_file:
        raise click.UsageError("--metric-file: --partition-file has a metric of its own; give one of the two.")
    given = {name: value for name, value in options.items() if value is not None}
    _refuse(given, FIXED_BY_METRIC, METRIC)
    metric = read_given(seekable(file, "a file with a metric"))
    _zero_based(given, metric.options, "file of the metric")
    return metric


def _refuse(given: dict[str, Any], fixed: dict[str, str], by: str) -> None:
    for name, flag in fixed.items():
        if name in given:
            raise click.UsageError(f"{flag} is fixed by {by}; give one of the two.")


def _zero_based(given: dict[str, Any], config: dict[str, Any], what: str) -> dict[str, Any]:
    zero_based = config.get("zero_based", given.get("zero_based", False))  # older files do not say
    if given.get("zero_based") and not zero_based:
        raise click.UsageError(
            f"--zero-based, but the {what} was made without it; make it with --zero-based, or leave it out here."
        )
    return {"zero_based": zero_based}
