"""Column descriptions as CatBoost has them: a line for each column that is no number, with its kind."""

from __future__ import annotations

from collections.abc import Sequence

from localsvm.data.readers.compression import open_source
from localsvm.errors import DataError

KINDS = {  # in small letters, and the option that says the same; none does of numbers
    "label": "label", "target": "label", "num": "numbers", "categ": "categorical", "weight": "weight_column",
    "groupid": "group_column", "sampleid": "ids", "docid": "ids", "auxiliary": "ignore",
}  # fmt: skip
ELSEWHERE = ("text", "numvector", "baseline", "timestamp", "subgroupid", "groupweight", "position", "querykey")


def read_columns(path: str, names: Sequence[str]) -> dict[str, str]:
    """What a description says, as the options of the command line say it: names with commas between them.

    "numbers" are the columns that are described as such.

    Parameters
    ----------
    names : of the columns of the table.

    Raises
    ------
    DataError : a line that is no description, with its number; a column that the table does not have.
    """
    found: dict[str, list[str]] = {}
    with open_source(path) as source:
        text = source.read(1 << 24).decode(errors="replace")
    for line, row in enumerate(text.splitlines(), 1):
        if not row.strip():
            continue
        if "\t" not in row:
            raise DataError(
                f"{path}:{line}: there is no tab between the number and the kind; write NUMBER, a tab, KIND"
            )
        number, kind, *_ = row.split("\t")
        option = KINDS.get(kind.strip().lower(), "")
        if not number.strip().isdecimal() or int(number) >= len(names):
            raise DataError(f"{path}:{line}: {number!r} is no number of a column, from 0 to {len(names) - 1}")
        if option == "":
            also = "is not known here" if kind.strip().lower() in ELSEWHERE else "is no kind of a column"
            raise DataError(
                f"{path}:{line}: {kind!r} {also}; write Label, Num, Categ, Weight, GroupId, SampleId or Auxiliary"
            )
        found.setdefault(option, []).append(names[int(number)])
    for option in ("label", "weight_column", "group_column"):
        if len(found.get(option, [])) > 1:
            raise DataError(f"{path}: two columns are of one kind: {', '.join(found[option])}; describe one as such")
    return {option: ",".join(columns) for option, columns in found.items()}
