"""Command `lsvm describe`."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import click

from localsvm.cli import options as opt
from localsvm.cli.paths import check_outputs, text_output
from localsvm.cli.program import Program, examples
from localsvm.cli.reporting import print_json, table_text
from localsvm.cli.table_options import of_table, table_of
from localsvm.cli.value_types import FileName, Group
from localsvm.naming import on_command_line

if TYPE_CHECKING:
    from localsvm.runs.describe import ColumnReport, TableReport

BARS = " ▁▂▃▄▅▆▇█"
LONGEST = 24  # characters of a name or a text
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font:15px sans-serif;margin:2em}}td,th{{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}}
.bars{{display:flex;align-items:flex-end;height:1.6em}}.bars i{{width:.7em;margin-right:1px;background:#48c}}</style>
<h1>{title}</h1><p>{summary}</p>{problems}<table><tr>{head}</tr>
{rows}</table></html>
"""
HEAD = ("column", "role", "kind", "missing", "values", "distribution")


@click.command(
    cls=Program,
    epilog=examples(
        "lsvm describe customers.csv",
        "lsvm describe --label churn customers.parquet",
        "lsvm describe --html customers.html customers.csv",
        "lsvm describe --json customers.csv | jq .problems",
    ),
)
@opt.file_argument("file", metavar="FILE")
@opt.option(
    "--html",
    "page",
    metavar="FILE",
    type=FileName(),
    help="Write the description as a page for a browser, too.",
    group=Group.OUTPUT,
)
@of_table
@opt.zero_based
@opt.jobs
@opt.force
@opt.as_json
def describe(
    file: str, page: str | None, zero_based: bool, jobs: int | None, force: bool, as_json: bool, **options: Any
) -> None:
    """Print what lsvm-train would read of FILE, a table or LIBSVM text.

    What looks wrong comes first, then a line for each column: its role, its kind, how many values are missing, its
    range or its most frequent texts, and a small histogram.
    """
    check_outputs(force, [file], [page])
    table = table_of(options | {"zero_based": zero_based}, file)
    if table is None:
        if page:
            raise click.UsageError("--html is for tables.")
        _describe_text(file, zero_based, opt.job_count(jobs), as_json)
        return
    from localsvm.runs.describe import as_dict, describe_table

    report = describe_table(file, table, opt.job_count(jobs))
    report.problems = [on_command_line(problem) for problem in report.problems]
    if page:
        with text_output(page, force) as out:
            out.write(page_of(report))
    if as_json:
        print_json("describe", as_dict(report))
    else:
        click.echo(text_of(report))


def text_of(report: TableReport) -> str:
    """The description for a terminal."""
    lines = [summary_of(report), *(f"- {problem}" for problem in report.problems), ""]
    rows = [_cells(column) for column in report.columns]
    widths = [max(len(row[i]) for row in [HEAD, *rows]) for i in range(len(HEAD))]
    for row in [HEAD, *rows]:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return "\n".join(lines)


def summary_of(report: TableReport) -> str:
    """The first line."""
    names = {"\t": "tab"}
    written = f"delimiter {names.get(report.delimiter, report.delimiter)!r}, " if report.format == "csv" else ""
    header = "names in the header" if report.header else "no names: columns are called 1, 2, ..."
    label = f"labels in {report.label!r}" if report.label else "no labels"
    kind = {"csv": "delimited text", "parquet": "Parquet", "arrow": "Arrow", "npy": "arrays"}[report.format]
    size = f"{report.rows:,} rows, {len(report.columns):,} columns"
    return f"{report.file}: {kind}, {written}{size}, {header}, {label}"


def _cells(column: ColumnReport) -> tuple[str, ...]:
    missing = f"{column.missing:.1%}" if column.missing else "-"
    bars = "".join(BARS[_height(share, column.histogram)] for share in column.histogram)
    return _short(column.name), column.role, column.kind, missing, _values(column), bars or _common(column)


def _values(column: ColumnReport) -> str:
    if column.least is not None and column.kind == "number":
        return f"{column.least:g} to {column.most:g}"
    if column.least is not None:
        return f"{column.least} to {column.most}"
    return "" if column.different is None else f"{column.different:,} different"


def _common(column: ColumnReport) -> str:
    return ", ".join(f"{_short(text)} {share:.0%}" for text, share in column.common)


def _height(share: float, shares: list[float]) -> int:
    return 0 if share == 0 else max(1, round(8 * share / max(shares)))


def _short(text: str) -> str:
    plain = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 3] + "..."


def page_of(report: TableReport) -> str:
    """The description as HTML."""
    problems = "".join(f"<li>{html.escape(problem)}</li>" for problem in report.problems)
    rows = []
    for column in report.columns:
        cells = [html.escape(cell) for cell in _cells(column)]
        if column.histogram:
            most = max(column.histogram)
            cells[-1] = "<div class=bars>" + "".join(
                f'<i style="height:{100 * share / most:.0f}%"></i>' for share in column.histogram
            )
            cells[-1] += "</div>"
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return PAGE.format(
        title=html.escape(report.file),
        summary=html.escape(summary_of(report)),
        problems=f"<ul>{problems}</ul>" if problems else "",
        head="".join(f"<th>{name}</th>" for name in HEAD),
        rows="\n".join(rows),
    )


def _describe_text(file: str, zero_based: bool, jobs: int, as_json: bool) -> None:
    """Describe LIBSVM text."""
    import numpy as np

    from localsvm.cli.reporting import labels_text
    from localsvm.data.readers.libsvm import read

    data = read(file, zero_based=zero_based, jobs=jobs)
    X: Any = data.X
    stored = int(np.count_nonzero(X)) if isinstance(X, np.ndarray) else int(X.nnz)
    labels, counts = np.unique(data.y, return_counts=True)
    facts = {"file": file, "format": "libsvm", "rows": len(data.y), "features": X.shape[1], "entries": stored}
    if as_json:
        print_json("describe", facts | {"labels": labels.tolist(), "label_rows": counts.tolist()})
        return
    share = stored / max(1, X.shape[0] * X.shape[1])
    text = labels_text(labels.tolist(), counts.tolist())
    click.echo(
        table_text([
            ("file", f"{file}: LIBSVM text, {len(data.y):,} rows"),
            ("features", f"{X.shape[1]:,}, {share:.1%} of the values are not 0"),
            ("labels", text),
        ])
    )  # fmt: skip
