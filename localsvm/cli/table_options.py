"""Options that say what a table holds, and how they become those of its reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from localsvm.cli.options import note_undivided, option, together
from localsvm.cli.reporting import label_text
from localsvm.cli.value_types import Blocks, FileName, Group, Names

if TYPE_CHECKING:
    from localsvm.data.readers.delimited import TableForm
    from localsvm.runs.config import TrainingConfig
    from localsvm.runs.prediction.table_rows import TableRows
    from localsvm.runs.preparation.tables import TableOptions

FORMATS = ("csv", "parquet", "arrow", "npy", "libsvm")
ENCODINGS = ("auto", "one-hot", "target", "ordinal")
FIELDS = (  # of the options below
    "label", "weight_column", "group_column", "drop_unlabelled", "ignore", "ids", "categorical", "missing", "encode",
    "dates", "columns", "header", "delimiter",
)  # fmt: skip
FLAGS = {"ids": "--id-column"}  # where an option is not called as its field
EVERY, NONE = "auto", "none"  # values of --categorical and --dates
TABS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}


def _added_up(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Names of all times that an option is given, as if it were given once; None where it is not."""
    return ",".join(values) if values else None


of_table = together(
    option(
        "--format",
        type=Names(FORMATS),
        show_default="by the ending of the name, then by the first line",
        help="Format of TRAIN_FILE. csv: a table as delimited text; parquet, arrow (Feather): by pyarrow; npy: arrays "
        "of numpy, also .npz; libsvm: LIBSVM text.",
        group=Group.TABLE,
    ),
    option(
        "--label",
        metavar="NAME|N",
        show_default="label, target, class or y; without a header the first column",
        help="Column of the labels, by its name or its number from 1. Labels may be text.",
        group=Group.TABLE,
    ),
    option(
        "--weight-column",
        metavar="NAME",
        help="Column of weights: factors on C and on the held-out error of the rows, as --weights FILE has them.",
        group=Group.TABLE,
    ),
    option(
        "--group-column",
        metavar="NAME",
        help="Column of groups, as of patients: no feature, and the rows of a group are held out together, so that the "
        "error is that of new groups.",
        group=Group.TABLE,
    ),
    option("--drop-unlabelled", is_flag=True, help="Leave out rows without a label.", group=Group.TABLE),
    option(
        "--ignore",
        metavar="NAMES",
        multiple=True,
        callback=_added_up,
        help="Columns that are not read, as in a,b. It can be repeated, and so can --id-column, "
        "--categorical and --missing.",
        group=Group.TABLE,
    ),
    option(
        "--id-column",
        "ids",
        metavar="NAMES",
        multiple=True,
        callback=_added_up,
        help="Columns that name rows: no features, and copied to the output of lsvm-predict.",
        group=Group.TABLE,
    ),
    option(
        "--categorical",
        metavar="auto|none|NAMES",
        multiple=True,
        callback=_added_up,
        show_default="auto",
        help="Columns whose numbers are levels. Columns of text always have levels; none: they are left out.",
        group=Group.TABLE,
    ),
    option(
        "--missing",
        metavar="WORDS",
        multiple=True,
        callback=_added_up,
        show_default="NA,N/A,NaN,nan,?,null,NULL",
        help="Words that stand for no value, beside the empty field.",
        group=Group.TABLE,
    ),
    option(
        "--encode",
        type=Names(ENCODINGS),
        show_default="auto",
        help="How levels become features. one-hot: a feature a level; target: the share of each class among the rows "
        "of the level; ordinal: the number of the level; auto: one-hot up to nine levels, target beyond.",
        group=Group.TABLE,
    ),
    option(
        "--dates",
        type=Names((EVERY, NONE)),
        show_default="auto",
        help="Columns of dates (YYYY-MM-DD, with or without a time). auto: year, month, weekday and hour are features; "
        "none: they are text.",
        group=Group.TABLE,
    ),
    option(
        "--columns",
        metavar="FILE",
        type=FileName(),
        help="Column description as CatBoost has it: lines of a number from 0, a tab, and Label, Num, Categ, Weight, "
        "GroupId, SampleId or Auxiliary.",
        group=Group.TABLE,
    ),
    option(
        "--header/--no-header",
        default=None,
        show_default="a header, if no field of the first row is a number, and all differ",
        help="The first row has the names of the columns, or is a row like others.",
        group=Group.TABLE,
    ),
    option(
        "--delimiter",
        metavar="CHARACTER",
        show_default="found in the first rows",
        help="What stands between fields: a character, or tab.",
        group=Group.TABLE,
    ),
)


def table_of(options: dict[str, Any], train_file: str, elsewhere: Sequence[str] = ()) -> TableOptions | None:
    """What the user says of a table, taken out of the options; None for LIBSVM text.

    elsewhere : fields of options of the command that tables do not go with. UsageError where one is given, for other
        options of LIBSVM text with a table, and for those of tables with LIBSVM text.
    """
    from localsvm.runs.preparation.tables import TableOptions

    given = {name: options.pop(name) for name in FIELDS}
    pairs, alarm = tuple(options.get("class_weights") or ()), options.get("alarm")
    kind = options.pop("format") or _format(train_file, is_asked(given))
    if kind == "libsvm":
        _refuse_of_table(given, (*(("-w", label) for label, _ in pairs), ("--alarm", alarm)), train_file)
        return None
    _check_together(given, options, elsewhere)
    if given["columns"]:
        _described(given, train_file, kind)
    if pairs:
        options["class_weights"] = ()  # they are names of labels, which are known when the table is read
    options.pop("alarm", None)  # likewise
    return TableOptions(
        _form(given, train_file, kind),
        label=given["label"] or None,
        ids=tuple(_names(given["ids"])),
        weight=given["weight_column"] or None,
        group=given["group_column"] or None,
        drops=given["drop_unlabelled"],
        encode=given["encode"] or EVERY,
        dates=given["dates"] != NONE,
        class_weights=tuple((_text(label), weight) for label, weight in pairs),
        alarm=None if alarm is None else _text(alarm),
    )


def _format(file: str, asked: bool) -> str:
    """Format of a file; asked : whether an option says that it is a table."""
    from localsvm.data.readers.tables import BINARY, format_of

    if file == "-":
        return "csv" if asked else "libsvm"
    kind = format_of(file)
    on_cluster = click.get_current_context().params.get("backend") == "spark"
    return "libsvm" if on_cluster and kind in BINARY and not asked else kind  # Spark's own Parquet has vectors


def _check_together(given: dict[str, Any], options: dict[str, Any], elsewhere: Sequence[str]) -> None:
    """Raise UsageError for options of tables that do not go with others; see `table_of`."""
    if given["weight_column"] and options.get("weights") not in (None, "balanced"):
        raise click.UsageError(
            "--weight-column and --weights FILE both give the rows weights; leave one of the two out."
        )
    if given["group_column"] and options.get("group_file"):
        raise click.UsageError("--group-column and --group-file both give the rows groups; leave one of the two out.")
    if given["group_column"] and isinstance(options.get("folds"), Blocks):
        raise click.UsageError("--group-column and --folds blocks both say what is held out together; leave one out.")
    if options.get("zero_based"):
        raise click.UsageError("--zero-based is for LIBSVM text; columns of a table have names.")
    if given["label"] == "":
        raise click.UsageError("--label: the name is empty; give the name of a column, or its number.")
    for name in (name for name in elsewhere if click.get_current_context().params[name]):
        flag = _flag(name)
        raise click.UsageError(
            f"{flag} reads LIBSVM text, no tables; rewrite the table by lsvm convert first, or leave {flag} out."
        )


def _refuse_of_table(given: dict[str, Any], labels: Sequence[tuple[str, Any]], file: str) -> None:
    """Raise UsageError for an option of tables, or a label that is text. labels : of options, with their names."""
    for name, value in given.items():
        if value or (name == "header" and value is not None):
            flag = "--no-header" if name == "header" and not value else _flag(name)
            raise click.UsageError(f"{flag} is for tables; if {file} is one, give --format csv.")
    for flag, label in labels:
        if isinstance(label, str):
            raise click.UsageError(f"{flag} {label}: in LIBSVM text, labels are numbers.")


def _flag(field: str) -> str:
    """Option of a field."""
    return FLAGS.get(field, f"--{field.replace('_', '-')}")


def is_asked(given: dict[str, Any]) -> bool:
    """True where an option says that a file is a table."""
    return any(value for name, value in given.items() if name != "header") or given["header"] is not None


def _described(given: dict[str, Any], file: str, kind: str) -> None:
    """Put what --columns says in the place of the options that say it, too."""
    from localsvm.data.readers.columns_file import read_columns

    names = _header_of(given, file, kind)
    described = read_columns(given["columns"], names)
    for name, value in described.items():
        if value and given.get(name):
            raise click.UsageError(f"{_flag(name)} and --columns both say what a column is; leave one of the two out.")
        given[name] = given.get(name) or value


def _header_of(given: dict[str, Any], file: str, kind: str) -> tuple[str, ...]:
    """Names of the columns of a table."""
    from localsvm.data.readers.tables import open_table

    if file == "-":
        raise click.UsageError("--columns needs a file that can be read twice; write stdin to a file first.")
    with open_table(file, _form({**given, "ignore": None, "categorical": None}, file, kind)) as source:
        return source.layout.names


def _form(given: dict[str, Any], file: str, kind: str) -> TableForm:
    from localsvm.data.readers.delimited import MISSING, TableForm
    from localsvm.data.readers.tables import is_tab

    delimiter = TABS.get(given["delimiter"], given["delimiter"]) or ("\t" if is_tab(file) else None)
    if delimiter is not None and (len(delimiter.encode()) != 1 or delimiter in '"\r\n\0'):
        raise click.UsageError(f"--delimiter {given['delimiter']}: one character, or tab; not a quote or a line end.")
    return TableForm(
        delimiter=delimiter,
        header=given["header"],
        missing=MISSING if given["missing"] is None else tuple(given["missing"].split(",")),
        categorical=frozenset() if given["categorical"] in (EVERY, NONE) else frozenset(_names(given["categorical"])),
        numbers=frozenset(_names(given.get("numbers"))),
        ignored=frozenset(_names(given["ignore"])),
        texts=given["categorical"] != NONE,
        kind=kind,
    )


def is_delimited(output: str | None) -> bool:
    """True for the name of an output that is to be a table."""
    from localsvm.data.readers.tables import FORMATS

    return output is not None and output.lower().endswith(FORMATS["csv"])


def check_table(table: TableRows | None, zero_based: bool | None) -> None:
    """Raise UsageError for --zero-based or --one-based with a table that is predicted."""
    if table is not None and zero_based is not None:
        flag = "--zero-based" if zero_based else "--one-based"
        raise click.UsageError(f"{flag} is for LIBSVM text, and this model was trained on a table; leave it out.")


def settled(
    config: TrainingConfig,
    table: TableOptions | None,
    engine: Any,
    options: dict[str, Any],
    tell: Callable[[str], None],
) -> TrainingConfig:
    """The options of a run whose rows are read: with what is said of a table's labels, which are known now.

    tell : gets a note on a -c that has no effect on these rows.
    """
    from localsvm.runs.preparation.tables import labels_of

    if table is not None and table.names_labels:
        source = getattr(engine, "data", None) or engine.source
        config = table.settle(config, source.name, labels_of(source), source.classes)
    note_undivided(options, config, engine, tell)
    return config


def _text(label: float | str) -> str:
    return label if isinstance(label, str) else label_text(label)


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",")]
