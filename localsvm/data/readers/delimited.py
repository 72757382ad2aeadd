"""Tables as delimited text (CSV, TSV, ...), plain or compressed, whole or block by block.

The first rows decide what the columns are: numbers, or text. What later rows hold against that is a mistake with a
place, never a guess. The result depends neither on the number of threads nor on where blocks are cut.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import numpy as np

from localsvm.data import _csv
from localsvm.data.blocks.table import Levels, Stretch, Table
from localsvm.data.readers.compression import Source, open_source
from localsvm.data.readers.faults import CHANGED, EMPTY, LONGEST_LINE, long_line
from localsvm.data.readers.pieces import BOM, ordered
from localsvm.errors import DataError
from localsvm.naming import opt

MISSING = ("", "NA", "N/A", "NaN", "nan", "?", "null", "NULL")
DELIMITERS = ",\t;|"
BLOCK_BYTES = 8 << 20  # that are parsed at once
HEAD_BYTES = 1 << 20  # that decide what columns are
SNIFFED = 50  # rows that decide the delimiter
RARE, FEW = 0.1, 3  # of a column of numbers: at most this share of rows, and so many different texts, are stray
NUMBER = re.compile(r"[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?")  # no backtracking, it is quadratic
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]++,[0-9]++")
BLANKS = b" \t\r\n\v\f"
BLANK_LINES = re.compile(rb"(?: *\r?\n)+")
QUOTE_OPEN = "a quoted field has no end within {size:,} bytes; add the quote that ends it, or double the quote"
SHOWN = 24  # characters of a field that a message quotes


@dataclass(frozen=True)
class TableForm:
    """What a user says of a delimited text.

    Attributes
    ----------
    delimiter : None to find it.
    header : whether the first row has the names of the columns; None to find it.
    missing : words that stand for no value; the empty field always does.
    categorical : names of columns whose numbers are levels.
    numbers : names of columns in which text is a mistake, however much of it there is.
    ignored : names of columns that are not read; "" for all that have no name.
    kind : format of the file; None to find it.
    texts : whether columns of text are read; else only those that are asked for.
    """

    delimiter: str | None = None
    header: bool | None = None
    missing: tuple[str, ...] = MISSING
    categorical: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    kind: str | None = None
    texts: bool = True


@dataclass(frozen=True)
class TableLayout:
    """Columns of a delimited text.

    Attributes
    ----------
    delimiter, header : as in the text.
    names : of all columns; "1", "2", ... without a header.
    fixed : whether training decided the kinds; else the first rows.
    kinds : of each, _csv.SKIP, NUMBER or LEVEL.
    missing : words that stand for no value.
    guessed : columns that are taken for numbers as the first rows have no value of them, and a pipe is read once.
    """

    delimiter: str
    header: bool
    names: tuple[str, ...]
    kinds: tuple[int, ...]
    missing: tuple[str, ...]
    fixed: bool = False
    guessed: frozenset[str] = frozenset()

    @property
    def wanted(self) -> list[str]:
        """Names of the columns that are read."""
        return [name for name, kind in zip(self.names, self.kinds, strict=True) if kind != _csv.SKIP]


Texts = Callable[[tuple[str, ...], bool], Collection[str]]


def no_texts(names: tuple[str, ...], header: bool) -> Collection[str]:
    """No column."""
    return ()


@dataclass
class TableReader:
    """An open table, whose layout is known.

    Attributes
    ----------
    layout : of the columns.
    """

    layout: TableLayout
    _source: Source
    _begun: bytes = field(repr=False)  # what was read already, of the rows
    _first: Stretch  # all rows

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        return self._source.name

    def blocks(self, jobs: int = 1, block_bytes: int = BLOCK_BYTES) -> Iterator[Table]:
        """All rows, block by block. DataError for a mistake, with its place, after the blocks before it."""
        line = self._first.line
        for parsed in ordered(self._parsed, self._pieces(block_bytes), jobs):
            if isinstance(parsed, _Mistake):
                raise parsed.error(line)
            table, lines = parsed
            line += lines
            if table.rows:
                yield table

    def stretches(self, size: int) -> list[Stretch]:
        """Stretches of the rows, of about `size` bytes each; one, where the file cannot be read from any byte on."""
        if not self._source.regular():
            return [self._first]
        at, line, found = self._first.begin, self._first.line, list[Stretch]()
        with open_stretch(self.name, self.layout, self._first) as again:
            for piece in again._pieces(size):
                if piece.end == _csv.BEFORE:
                    raise long_line(self.name, line, LONGEST_LINE)
                found.append(Stretch(at, at + piece.end - _csv.BEFORE, line))
                at, line = at + piece.end - _csv.BEFORE, line + piece.buffer.count(b"\n", _csv.BEFORE, piece.end)
        return found

    def _pieces(self, block_bytes: int) -> Iterator[_Piece]:
        """Whole rows, each piece in a buffer with room around it."""
        rest, first = self._begun, True
        while True:
            more = b"" if first and len(rest) >= block_bytes else self._source.read(block_bytes)
            ended, first = not more and not (first and rest), False
            piece = _piece(rest, more, ended, self.layout.delimiter)
            size = len(rest) + len(more)
            # before the piece is parsed, which puts a line end behind it
            rest = bytes(memoryview(piece.buffer)[piece.end : _csv.BEFORE + size])
            if piece.end > _csv.BEFORE or size > LONGEST_LINE:
                yield piece
            if ended:
                return

    def _parsed(self, piece: _Piece) -> tuple[Table, int] | _Mistake:
        return _parse(self.name, piece, self.layout)


@dataclass(frozen=True)
class _Mistake:
    """A mistake in a piece. error : makes the error, given the number of the first line of the piece."""

    error: Callable[[int], DataError]


def _parse(name: str, piece: _Piece, layout: TableLayout) -> tuple[Table, int] | _Mistake:
    """The rows of a piece, and how many line ends it has. name : of the file, for messages."""
    if piece.end == _csv.BEFORE:
        return _Mistake(lambda line: long_line(name, line, LONGEST_LINE))
    try:
        numbers, codes, levels, lines = piece.read(layout)
    except _csv.CSVFault as fault:
        found = fault
        return _Mistake(lambda line: _error(name, found, line, piece, layout))
    columns: dict[str, Levels] = {}
    pairs = list(zip(layout.names, layout.kinds, strict=True))
    of_numbers = [column for column, kind in pairs if kind == _csv.NUMBER]
    for i, column in enumerate(column for column, kind in pairs if kind == _csv.LEVEL):
        try:
            columns[column] = Levels(codes[i], tuple(text.decode() for text in levels[i]))
        except UnicodeDecodeError as error:
            bad = error.object
            return _Mistake(lambda line, bad=bad, column=column: _not_text(name, column, bad, line, piece))  # type: ignore[misc]
    rows = numbers.shape[1]
    return Table(layout.names, rows, {column: numbers[i] for i, column in enumerate(of_numbers)}, columns), lines


@dataclass(frozen=True)
class _Piece:
    """Whole rows in a buffer, from BEFORE to `end`."""

    buffer: bytearray
    end: int

    def read(self, layout: TableLayout) -> tuple[np.ndarray, np.ndarray, list[list[bytes]], int]:
        words = tuple(word.encode() for word in layout.missing if word)
        kinds = np.asarray(layout.kinds, np.uint8)
        return _csv.read(self.buffer, _csv.BEFORE, self.end, ord(layout.delimiter), kinds, words)


@contextmanager
def open_delimited(
    path: str, form: TableForm, text: Texts = no_texts, known: Mapping[str, int] | None = None
) -> Iterator[TableReader]:
    """Open a delimited text, look at its first rows, and close it at the end; a context manager.

    Parameters
    ----------
    path : a file, plain or compressed, or "-" for stdin.
    form : what the user says of it.
    text : gives the columns that are read as text whatever they hold, as labels are, by all names and the header.
    known : kinds of columns by their names, where these are known; others are not read.

    Raises
    ------
    DataError
        The file cannot be read, has no rows, has two columns of one name, or a column that is neither numbers nor
        text.
    """
    with open_source(path) as source:
        begun, whole = _begun(source, HEAD_BYTES)
        if not begun.removeprefix(BOM).strip():
            raise DataError(EMPTY.format(path=source.name))
        yield _opened(source, begun, whole, form, text, known)


@contextmanager
def open_stretch(path: str, layout: TableLayout, stretch: Stretch) -> Iterator[TableReader]:
    """Open some rows of a delimited text, whose layout is known; a context manager. DataError as of `open_source`."""
    with open_source(path) as source:
        yield TableReader(layout, source.between(stretch.begin, stretch.end), b"", stretch)


def _begun(source: Source, size: int) -> tuple[bytes, bool]:
    """The first bytes of a source, or more where they do not hold two lines; and whether that is all of it."""
    parts: list[bytes] = []
    held = lines = 0
    while held < size or (lines < 2 and held <= LONGEST_LINE):
        more = source.read(size)
        if not more:
            return b"".join(parts), True
        parts.append(more)
        held, lines = held + len(more), lines + more.count(b"\n")
    return b"".join(parts), False


def _opened(
    source: Source, begun: bytes, whole: bool, form: TableForm, text: Texts, known: Mapping[str, int] | None
) -> TableReader:  # fmt: skip
    name, line = source.name, 1
    at = len(BOM) if begun.startswith(BOM) else 0
    if blank := BLANK_LINES.match(begun, at):
        line, at = line + begun.count(b"\n", 0, blank.end()), blank.end()
    begun = begun[at:]
    rows = _first_rows(begun, whole, name)
    if re.search(r"\r(?!\n|\Z)", rows):
        raise DataError(f"{name}: a carriage return that no line feed follows; end lines with LF or CR LF")
    delimiter = form.delimiter or _delimiter(rows)
    fields, *others = _stripped(rows, delimiter)
    header = _is_header(fields, others, form.missing) if form.header is None else form.header
    names = _names(fields, name) if header else tuple(str(i + 1) for i in range(len(fields)))
    unnamed = {names[i] for i, each in enumerate(fields) if not each} if header and "" in form.ignored else set()
    form = replace(form, ignored=(form.ignored | unnamed) - {""})
    check_named(sorted(form.categorical | form.ignored), names, name)
    if header:
        first = _csv.cut(*_first_row(begun, delimiter), ord(delimiter)) - _csv.BEFORE
        line, at = line + begun.count(b"\n", 0, first), at + first
        begun = begun[first:]
    head = TableLayout(delimiter, header, names, (_csv.LEVEL,) * len(names), form.missing)
    table, begun, whole = _first_table(source, begun, whole, head, line)
    if not table.rows:
        raise DataError(f"{name}: there are no rows, only the names of {len(names):,} columns; give a file with rows")
    if known is not None:
        if not header and names_above_numbers(fields, others, form.missing):
            raise DataError(f"{name}:1: the first row has names, and the training table had none; remove it")
        kinds = tuple(known.get(column, _csv.SKIP) for column in names)
        layout = TableLayout(delimiter, header, names, kinds, form.missing, True)
        return TableReader(layout, source, begun, Stretch(at, None, line))
    texts = text(names, header)
    empty = [each for each in names if not (table.levels[each].codes >= 0).any()]
    later = {} if whole or not empty else _first_values(source, head, empty)
    kinds = tuple(_kind(each, later.get(each, table.levels[each]), form, texts, name) for each in names)
    guessed = frozenset() if whole else frozenset(empty) - later.keys()
    layout = TableLayout(delimiter, header, names, kinds, form.missing, guessed=guessed)
    return TableReader(layout, source, begun, Stretch(at, None, line))


def _first_table(
    source: Source, begun: bytes, whole: bool, head: TableLayout, line: int
) -> tuple[Table, bytes, bool]:  # fmt: skip
    """The first rows, whose columns are all text; the bytes that were read for them, and whether these are all.

    line : the number of the first line.
    """
    piece = _piece(begun, b"", whole, head.delimiter)
    while piece.end == _csv.BEFORE and not whole and len(begun) <= LONGEST_LINE:  # in a long field
        more = source.read(max(HEAD_BYTES, len(begun)))
        begun, whole = begun + more, not more
        piece = _piece(begun, b"", whole, head.delimiter)
    if not begun.strip(BLANKS.replace(head.delimiter.encode(), b"")):  # a row of no values may be delimiters alone
        return Table(head.names, 0), begun, whole
    if piece.end == _csv.BEFORE:
        raise DataError(f"{source.name}:{line}: {QUOTE_OPEN.format(size=len(begun))}")
    parsed = _parse(source.name, piece, head)
    if isinstance(parsed, _Mistake):
        raise parsed.error(line)
    return parsed[0], begun, whole


def _first_values(source: Source, head: TableLayout, empty: Collection[str]) -> dict[str, Levels]:
    """Levels of columns without a value in the first rows, of the first block in which each has one.

    The file is read once more; a pipe cannot be, and such a column counts as one of numbers.
    """
    if not os.path.isfile(source.name):
        return {}
    found: dict[str, Levels] = {}
    kinds = tuple(_csv.LEVEL if name in empty else _csv.SKIP for name in head.names)
    with open_source(source.name) as again:
        reader = TableReader(replace(head, kinds=kinds), again, b"", Stretch(0))
        for number, block in enumerate(reader.blocks()):
            skip = int(head.header and not number)
            for name in empty:
                codes = block.levels[name].codes[skip:]
                if name not in found and (codes >= 0).any():
                    found[name] = Levels(codes, block.levels[name].names)
            if len(found) == len(empty):
                break
    return found


def _first_rows(begun: bytes, whole: bool, name: str) -> str:
    """The first lines as text, without one whose end was not read."""
    lines = begun.split(b"\n", SNIFFED)
    lines = lines[: SNIFFED if whole or len(lines) > SNIFFED else -1]
    try:
        return b"\n".join(lines).decode()
    except UnicodeDecodeError as error:
        line = 1 + error.object.count(b"\n", 0, error.start)
        begin = error.object.rfind(b"\n", 0, error.start) + 1
        bad = error.object[max(begin, error.start - 8) : error.start + 8].split(b"\n")[0]
        raise DataError(
            f"{name}:{line}: {bad!r} is not UTF-8 text; convert the file (iconv -f latin1 -t utf8)"
        ) from None


def _delimiter(rows: str) -> str:
    """The delimiter by which most of the first rows have the same number of fields, two or more."""
    best, most = ",", (0, 1)
    for delimiter in DELIMITERS:
        widths = [len(row) for row in _split(rows, delimiter) if row]
        width, count = Counter(widths[: max(1, len(widths) - 1)]).most_common(1)[0]
        if width > 1 and (count, width) > most:
            best, most = delimiter, (count, width)
    return best


def _split(rows: str, delimiter: str) -> list[list[str]]:
    """Fields of the first rows, however long they are."""
    before = csv.field_size_limit(LONGEST_LINE)
    try:
        return list(csv.reader(io.StringIO(rows, newline=""), delimiter=delimiter))
    finally:
        csv.field_size_limit(before)


def _stripped(rows: str, delimiter: str) -> list[list[str]]:
    """Fields of the first rows, without blanks around them."""
    return [[each.strip() for each in row] for row in _split(rows, delimiter) if row]


def _is_header(fields: list[str], others: list[list[str]], missing: Collection[str]) -> bool:
    """True where a field is text above numbers alone; or no field is a number or missing, and all are different.

    The first field may be empty, as a column of row names often is.
    """
    if names_above_numbers(fields, others, missing):
        return True
    named = fields[1:] if fields and not fields[0] else fields
    if not named or any(NUMBER.fullmatch(each) or each in missing for each in named):
        return False
    return len(set(fields)) == len(fields)


def names_above_numbers(fields: list[str], others: list[list[str]], missing: Collection[str]) -> bool:
    """True where the first row has a text, and the rows after it have a number there, all that have a value."""
    for i, name in enumerate(fields):
        below = [row[i] for row in others[:-1] or others if i < len(row) and row[i] not in missing]
        if name not in missing and not NUMBER.fullmatch(name) and below and all(map(NUMBER.fullmatch, below)):
            return True
    return False


def _names(fields: list[str], name: str) -> tuple[str, ...]:
    names = tuple(each or f"column {i + 1}" for i, each in enumerate(fields))
    repeated = [each for each, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{name}:1: two columns are called {repeated[0]!r}; give each a name of its own")
    return names


def check_named(wanted: Iterable[str], names: tuple[str, ...], name: str) -> None:
    """Raise DataError for the first of the wanted columns that a table does not have; name: of its file."""
    known = set(names)
    for each in wanted:
        if each not in known:
            raise DataError(f"{name}: no column is called {each!r}{nearest(each, names)}")


def nearest(name: str, names: Collection[str]) -> str:
    """End of a message: the name that is meant, or all names."""
    close = get_close_matches(name, list(names), 1)
    if close:
        return f"; perhaps {close[0]!r} is meant"
    shown = ", ".join(list(names)[:20]) + (", ..." if len(names) > 20 else "")
    return f"; there are {shown}"


def _first_row(begun: bytes, delimiter: str) -> tuple[bytearray, int, int]:
    """Buffer, begin and end of as many lines as make a whole first row."""
    end = 0
    while True:
        end = begun.find(b"\n", end) + 1 or len(begun)
        buffer = bytearray(_csv.BEFORE) + begun[:end] + (b"" if begun[:end].endswith(b"\n") else b"\n")
        if end == len(begun) or _csv.cut(buffer, _csv.BEFORE, len(buffer), ord(delimiter)) == len(buffer):
            return buffer, _csv.BEFORE, len(buffer)


def _piece(rest: bytes, more: bytes, whole: bool, delimiter: str) -> _Piece:
    """The whole rows of a text in two parts, in a buffer with room around it; of a `whole` text all."""
    buffer = bytearray(_csv.BEFORE)
    buffer += rest
    buffer += more
    end = len(buffer)
    buffer += bytes(_csv.AFTER)
    cut = end if whole or end == _csv.BEFORE else _csv.cut(buffer, _csv.BEFORE, end, ord(delimiter))
    return _Piece(buffer, cut)


def _kind(column: str, levels: Levels, form: TableForm, text: Collection[str], name: str) -> int:
    """Kind of a column by its first rows; DataError where a few texts stand among numbers."""
    if column in form.ignored and column not in text:
        return int(_csv.SKIP)
    if column in text or column in form.categorical:
        return int(_csv.LEVEL)
    strange = [i for i, level in enumerate(levels.names) if not NUMBER.fullmatch(level)]
    if not strange:
        return int(_csv.NUMBER)
    commas = [levels.names[i] for i in strange if DECIMAL_COMMA.fullmatch(levels.names[i])]
    if len(commas) > len(strange) * (1 - RARE):
        what = f"column {column!r} has numbers with commas, as {commas[0]}"
        remedy = (
            f"write decimal points and no marks of thousands, or if they are levels, give {opt.categorical(column)}"
        )
        raise DataError(f"{name}: {what}; {remedy}")
    known = levels.codes >= 0
    rows = np.isin(levels.codes, strange)
    if column in form.numbers or (len(strange) <= FEW and rows.sum() <= RARE * known.sum()):
        first = int(np.flatnonzero(rows)[0])
        stray = levels.names[levels.codes[first]]
        raise DataError(
            f"{name}: row {first + 1:,}: column {column!r} has numbers, and here {quoted(stray)}; "
            f"if it stands for no value, give {opt.missing(stray)}, and if the column has levels, "
            f"{opt.categorical(column)}"
        )
    return int(_csv.LEVEL if form.texts else _csv.SKIP)


def _not_text(name: str, column: str, bad: bytes, line: int, piece: _Piece) -> DataError:
    """The error for bytes that are no text."""
    place = max(_csv.BEFORE, piece.buffer.find(bad))
    line += piece.buffer.count(b"\n", _csv.BEFORE, place)
    what = f"column {column!r} has {bad[:SHOWN]!r}, which is not UTF-8 text"
    return DataError(f"{name}:{line}: {what}; convert the file (iconv -f latin1 -t utf8)")


def _error(name: str, fault: _csv.CSVFault, line: int, piece: _Piece, layout: TableLayout) -> DataError:
    """The error for a mistake that the parser found. line : the number of the first line of the piece."""
    line, columns = line + fault.line, len(layout.names)
    column = layout.names[fault.column] if fault.column < columns else ""
    begin = _csv.BEFORE + fault.offset
    text = re.split(rb"[\n" + re.escape(layout.delimiter.encode()) + rb"]", bytes(piece.buffer[begin : begin + 99]))[0]
    shown = quoted(text.decode(errors="replace").strip())
    messages = {
        "changed": CHANGED.format(path=name),
        "ragged": f"the row has {fault.fields:,} fields, and there are {columns:,} columns; a field that contains "
        f"{layout.delimiter!r} needs quotes around it",
        "open_quote": f"column {column!r}: the quote that begins this field has no end; add it, or double the quote",
        "after_quote": f"column {column!r}: text behind the quote that ends a field; double each quote inside a field",
        "not_number": f"column {column!r} {_numbers(column, layout)}, and here {shown}; "
        f"{_remedy(column, layout.fixed)}",
        "nul": f"column {column!r}: a NUL byte; the file is damaged, or no text",
    }
    return DataError(f"{name}:{line}: {messages[fault.name]}")


def _numbers(column: str, layout: TableLayout) -> str:
    """Why a column is one of numbers."""
    if column in layout.guessed:
        return "has no value in the first rows, so that a pipe's is taken for numbers"
    return "has numbers"


def _remedy(column: str, fixed: bool) -> str:
    """Remedy for a text among numbers. fixed : whether training decided what the column is."""
    if fixed:
        return f"replace it, or train with {opt.missing('WORD')} or {opt.categorical(column)}"
    also = f"and if the column has levels, {opt.categorical(column)}"
    return f"if it stands for no value, give {opt.missing('WORD')}, {also}"


def quoted(text: str) -> str:
    """A text as messages show it."""
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")
