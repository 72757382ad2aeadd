"""Parquet files as LIBSVM text: the lines that Spark's own writer would make of them, on whatever machine reads them.

A file has a column `label`. Its other columns are numbers, which are the features in their order; or one of them is
called `features`, a vector of pyspark.ml (dense or sparse) or an array of numbers.
"""

from __future__ import annotations

import json
from typing import Any

from localsvm.errors import RunError

LABEL, FEATURES = "label", "features"
SUFFIX = ".parquet"
VECTOR = "org.apache.spark.ml.linalg.VectorUDT"
AS_STORED = "struct<type:tinyint,size:int,indices:array<int>,values:array<double>>"  # what Spark writes for a vector
NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
NULL = "'null'"  # no number, so that the line is reported


def lines(context: Any, name: str, files: list[str]) -> Any:
    """The lines of files, one after another, as an RDD of bytes. RunError for columns of another kind.

    name : of the input, for messages.
    """
    from pyspark.sql import SparkSession

    session = SparkSession(context)
    texts: list[Any] = []
    alike: dict[str, Any] = {}
    for file in files:
        frame = session.read.parquet(file)
        fields = json.loads(frame._jdf.schema().json())["fields"]
        columns = {field["name"]: field["type"] for field in fields}
        text = f"concat_ws(' ', {_number(LABEL)}, {_features(name, columns)})"
        alike = alike or columns
        check_alike(file, list(columns), files[0], list(alike))
        if _is_vector(columns.get(FEATURES)):  # SQL does not see into it
            label = frame.select(LABEL)._jdf.schema().toDDL()
            frame = session.read.schema(f"{label}, {FEATURES} {AS_STORED}").parquet(file)
        texts.append(frame.selectExpr(text).rdd.map(_encoded))
    return context.union(texts)


def check_alike(file: str, columns: list[str], first_file: str, expected: list[str]) -> None:
    """Raise RunError where the columns of a file have other names or another order: features go by their place."""
    if columns != expected:
        difference = f"{', '.join(columns)} and not {', '.join(expected)}"
        raise RunError(f"{file}: its columns are others than those of {first_file}, or in another order: {difference}")


def _features(name: str, columns: dict[str, Any]) -> str:
    """SQL for the INDEX:VALUE pairs of a row, as an array of text."""
    if LABEL not in columns:
        raise RunError(f"{name}: these Parquet files have no column called {LABEL}; rename the one with the labels")
    if FEATURES in columns:
        if len(columns) > 2:
            raise RunError(f"{name}: beside the columns {LABEL} and {FEATURES} there are others; leave them out")
        if _is_vector(columns[FEATURES]):
            both = f"arrays_zip({FEATURES}.indices, {FEATURES}.values)"
            sparse = f"transform({both}, e -> {_pair('e.indices', 'e.values')})"
            dense = f"transform({FEATURES}.values, (v, i) -> {_pair('i', 'v')})"
            pairs = f"if({FEATURES}.type = 0, {sparse}, {dense})"
        elif _is_array(columns[FEATURES]):
            pairs = f"transform({FEATURES}, (v, i) -> {_pair('i', 'v')})"
        else:
            raise RunError(f"{name}: the column {FEATURES} is no vector of pyspark.ml and no array of numbers")
        return f"coalesce({pairs}, array({NULL}))"
    wrong = [column for column, kind in columns.items() if not _is_number(kind)]
    if wrong:
        raise RunError(f"{name}: the column {wrong[0]} has no numbers; leave it out, or make numbers of it")
    others = [f"`{column.replace('`', '``')}`" for column in columns if column != LABEL]
    return f"array({', '.join(_pair(str(i), column) for i, column in enumerate(others))})"


def _pair(index: str, value: str) -> str:
    return f"concat(string({index} + 1), ':', {_number(value)})"


def _number(value: str) -> str:
    return f"coalesce(string({value}), {NULL})"


def _is_vector(kind: Any) -> bool:
    return isinstance(kind, dict) and kind.get("class") == VECTOR


def _is_array(kind: Any) -> bool:
    return isinstance(kind, dict) and kind.get("type") == "array" and _is_number(kind["elementType"])


def _is_number(kind: Any) -> bool:
    return isinstance(kind, str) and kind.partition("(")[0] in NUMBERS


def _encoded(row: Any) -> bytes:
    return str(row[0]).encode()
