"""The message for every mistake that a data file can hold: `PATH:LINE:COLUMN: what is wrong; remedy`."""

from __future__ import annotations

from typing import Any

from localsvm.data._text import TextFault
from localsvm.errors import DataError
from localsvm.naming import opt

LONGEST_LINE = 256 << 20  # bytes: 15 million entries; text without line ends would be held whole
SHOWN = 24  # bytes of a bad token that a message quotes
COMPRESSIONS = "gzip, bzip2, xz and zstd are decompressed by themselves"

# {found}: the bad token, quoted; {last}: the largest valid index
MESSAGES = {
    "label_not_number": "expected a number as label, found {found}; give each class a number",
    "label_missing": "expected a label, found {found}; begin every line with one, 0 where it is unknown",
    "label_list": "expected one label and a blank, found {found}; "
    "rows with several labels cannot be learned; for a table, give " + str(opt.format("csv")),
    "label_not_finite": "the label {found} is not a finite number; mend it or remove the row",
    "label_too_large": "the label {found} is beyond the largest float64; rescale the labels",
    "label_inexact": "the label {found} is a whole number that float64 does not hold; give the classes smaller numbers",
    "query_not_number": "expected qid:INTEGER, found {found}; mend it or remove it, query ids are not used",
    "index_not_number": "expected INDEX:VALUE, found {found}; separate entries by blanks and begin comments with #",
    "index_zero": f"index 0, but indices start at 1; if the file counts from 0, give {opt.zero_based} (in training, "
    "and the "
    "model keeps it)",
    "index_negative": f"the index in {{found}} is negative; indices are whole numbers from 1, or from 0 with "
    f"{opt.zero_based}",
    "index_too_large": "the index in {found} is beyond {last}; renumber the features",
    "index_repeated": "the index in {found} occurs twice in this line; keep one of the two entries",
    "index_descending": "the index in {found} is smaller than the one before it; "
    "sort the entries of each line by index",
    "colon_missing": "expected INDEX:VALUE, found {found} without a colon; write the value after a colon",
    "value_missing": "expected a value right after the colon; write one without a blank, or leave the entry out",
    "value_not_number": "expected a number as value, found {found}; write values like 1, -0.5 or 2.5e-3",
    "value_not_finite": "the value {found} is not a finite number; leave the entry out or replace it",
    "value_too_large": "the value {found} is beyond the largest float32, 3.4e38; rescale this feature",
    "lone_return": "a carriage return within the line; end lines with LF or CR LF",
    "binary": "not text, but binary data: found {found}; give LIBSVM text (" + COMPRESSIONS + ")",
}
CHANGED = "{path}: the file changed while it was read; run again when nothing writes to it"
EMPTY = "{path}: the file is empty; give a file with one example a line"
NO_ROWS = "{path}: no examples, only blank lines and comments; give a file with one example a line"

# formats that are often given by mistake, by their first bytes
FOREIGN = {
    b"\xff\xfe": "UTF-16 text; convert it to ASCII or UTF-8",
    b"\xfe\xff": "UTF-16 text; convert it to ASCII or UTF-8",
    b"\x89HDF": "an HDF5 file, perhaps a model; give the LIBSVM text file here",
    b"PK\x03\x04": f"a zip archive; unpack it first ({COMPRESSIONS})",
    b"7z\xbc\xaf": f"a 7z archive; unpack it first ({COMPRESSIONS})",
    b"\x1f\x9d": f"compressed by compress; uncompress it first ({COMPRESSIONS})",
    b"\x04\x22\x4d\x18": f"compressed by lz4; decompress it first ({COMPRESSIONS})",
    b"\x93NUMPY": "a NumPy array; write it as LIBSVM text",
}


def long_line(path: str, line: int, longest: int) -> DataError:
    """The error for a line that is too long to be a row, or where longest < LONGEST_LINE for the memory."""
    more = f" (for so little {opt.memory})" if longest < LONGEST_LINE else ""
    return DataError(
        f"{path}:{line}: the line is longer than {longest / 2**20:,.3g} MiB{more}; "
        "end each row with a line end, or leave out entries"
    )


def refuse_foreign(path: str, head: bytes) -> None:
    """Raise DataError if `head`, the first bytes of a file, belong to a known format other than LIBSVM text."""
    for magic, what in FOREIGN.items():
        if head.startswith(magic):
            raise DataError(f"{path}: this is {what}")


def data_error(path: str, fault: TextFault, first_line: int, text: Any, zero_based: bool) -> DataError:
    """The error for a mistake that the parser found in `text`, whose first line is line `first_line` of the file."""
    if fault.name == "changed":
        return DataError(CHANGED.format(path=path))
    token = _token(bytes(text[fault.offset : fault.offset + SHOWN + 1]))
    name = "binary" if any(byte < 32 and byte != 13 for byte in token) else fault.name
    last = "2147483646 (2^31 - 2)" if zero_based else "2147483647 (2^31 - 1)"
    message = MESSAGES[name].format(found=_quoted(token), last=last)
    return DataError(f"{path}:{first_line + fault.line - 1}:{fault.column}: {message}")


def _token(text: bytes) -> bytes:
    for end, byte in enumerate(text):
        if byte in b" \t\n":
            return text[:end]
    return text


def _quoted(token: bytes) -> str:
    shown = token[:SHOWN].decode("ascii", "backslashreplace").rstrip("\r")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)
    return f"'{shown}...'" if len(token) > SHOWN else f"'{shown}'"
