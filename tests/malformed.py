"""Malformed inputs and what is said: (name, content of the file, how the message goes on after the path)."""

from __future__ import annotations

import bz2
import gzip
import lzma

import zstandard

GOOD = b"1 1:0.5 3:2\n-1 2:1e-3\n"
MANY = b"".join(b"%d 1:%d 2:0.%d\n" % (i % 2, i + 1, i * 7919 + 1) for i in range(3000))

MALFORMED: list[tuple[str, bytes, str]] = [
    # labels
    (
        "label_word",
        GOOD + b"cat 1:1\n",
        ":3:1: expected a number as label, found 'cat'; give each class a number",
    ),
    (
        "label_utf8",
        "Größe 1:1\n".encode(),
        ":1:1: expected a number as label, found 'Gr\\xc3\\xb6\\xc3\\x9fe'",
    ),
    ("label_nan", b"nan 1:1\n", ":1:1: the label 'nan' is not a finite number; mend it or remove the row"),
    ("label_inf", GOOD + b"  -Inf 1:1\n", ":3:3: the label '-Inf' is not a finite number"),
    ("label_nancy", b"nancy 1:1\n", ":1:1: expected a number as label, found 'nancy'"),
    (
        "label_huge",
        b"1e400 1:1\n",
        ":1:1: the label '1e400' is beyond the largest float64; rescale the labels",
    ),
    (
        "label_inexact",
        b"9007199254740992 1:1\n-9007199254740993 1:1\n",
        ":2:1: the label '-9007199254740993' is a whole number that float64 does not hold; give the classes smaller",
    ),
    ("label_inexact_long", b"18446744073709551615 1:1\n", ":1:1: the label '18446744073709551615' is a whole number"),
    ("label_inexact_with_zeros", b"012345678901234567880 1:1\n", ":1:1: the label '012345678901234567880' is a whole"),
    (
        "label_absent",
        GOOD + b"1:0.5 3:2\n",
        ":3:1: expected a label, found '1:0.5'; begin every line with one",
    ),
    (
        "label_list",
        b"1,3 1:1\n",
        ":1:1: expected one label and a blank, found '1,3'; rows with several labels",
    ),
    ("csv", b"0.5,1.25,3\n", ":1:1: expected one label and a blank, found '0.5,1.25,3'"),
    ("csv_header", b"label,x1,x2\n1,2,3\n", ":1:1: expected a number as label, found 'label,x1,x2'"),
    ("label_hexadecimal", b"0x1 1:1\n", ":1:1: expected a number as label, found '0x1'"),
    ("label_sign_only", b"+ 1:1\n", ":1:1: expected a number as label, found '+'"),
    ("label_underscore", b"1_0 1:1\n", ":1:1: expected a number as label, found '1_0'"),
    ("query_word", b"1 qid:a 1:1\n", ":1:3: expected qid:INTEGER, found 'qid:a'; mend it or remove it"),
    ("query_empty", b"1 qid: 1:1\n", ":1:3: expected qid:INTEGER, found 'qid:'"),
    ("query_late", b"1 1:1 qid:3\n", ":1:7: expected INDEX:VALUE, found 'qid:3'"),
    # indices
    (
        "index_zero",
        b"1 0:1 1:2\n",
        ":1:3: index 0, but indices start at 1; if the file counts from 0, give --zero-based",
    ),
    ("index_zero_late", GOOD * 500 + b"1 0:1\n", ":1001:3: index 0, but"),
    (
        "index_negative",
        b"1 -1:2\n",
        ":1:3: the index in '-1:2' is negative; indices are whole numbers from 1",
    ),
    ("index_repeated", b"1 2:1 2:3\n", ":1:7: the index in '2:3' occurs twice in this line; keep one"),
    ("index_descending", b"1 5:1 3:2\n", ":1:7: the index in '3:2' is smaller than the one before it; sort"),
    (
        "index_beyond_31_bits",
        b"1 2147483648:1\n",
        ":1:3: the index in '2147483648:1' is beyond 2147483647 (2^31 - 1)",
    ),
    (
        "index_beyond_64_bits",
        b"1 18446744073709551617:1\n",
        ":1:3: the index in '18446744073709551617:1' is beyond",
    ),
    ("index_100_digits", b"1 " + b"9" * 100 + b":1\n", ":1:3: the index in '" + "9" * 24 + "...' is"),
    ("index_word", b"1 abc:1\n", ":1:3: expected INDEX:VALUE, found 'abc:1'; separate entries by blanks"),
    ("index_fraction", b"1 1.5:1\n", ":1:3: expected INDEX:VALUE, found '1.5:1'"),
    ("index_plus", b"1 +1:1\n", ":1:3: expected INDEX:VALUE, found '+1:1'"),
    ("index_empty", b"1 :1\n", ":1:3: expected INDEX:VALUE, found ':1'"),
    ("comma_separated", b"1 1:1,2:2\n", ":1:5: expected a number as value, found '1,2:2'"),
    ("colon_missing", b"1 1:1 5 6:1\n", ":1:7: expected INDEX:VALUE, found '5' without a colon"),
    ("blank_separated", b"1 0.5 0.25\n", ":1:3: expected INDEX:VALUE, found '0.5'"),
    ("blank_before_colon", b"1 1 :1\n", ":1:3: expected INDEX:VALUE, found '1' without a colon"),
    ("semicolon", b"1 1:1;\n", ":1:5: expected a number as value, found '1;'"),
    # values
    (
        "value_missing_at_end",
        b"1 1:1 2:\n",
        ":1:9: expected a value right after the colon; write one without a blank",
    ),
    ("value_missing_at_eof", b"1 1:1 2:", ":1:9: expected a value right after the colon"),
    ("value_missing_comment", b"1 2:# two\n", ":1:5: expected a value right after the colon"),
    ("value_after_blank", b"1 2: 3\n", ":1:5: expected a value right after the colon"),
    (
        "value_word",
        b"1 1:x\n",
        ":1:5: expected a number as value, found 'x'; write values like 1, -0.5 or 2.5e-3",
    ),
    ("value_tail", b"1 1:2.5abc\n", ":1:5: expected a number as value, found '2.5abc'"),
    ("value_two_points", b"1 1:1.2.3\n", ":1:5: expected a number as value, found '1.2.3'"),
    ("value_half_exponent", b"1 1:1e\n", ":1:5: expected a number as value, found '1e'"),
    ("value_signed_exponent", b"1 1:1e+ 2:1\n", ":1:5: expected a number as value, found '1e+'"),
    ("value_two_colons", b"1 1:2:3\n", ":1:5: expected a number as value, found '2:3'"),
    ("value_decimal_comma", b"1 1:0,5\n", ":1:5: expected a number as value, found '0,5'"),
    ("value_point", b"1 1:.\n", ":1:5: expected a number as value, found '.'"),
    ("value_hexadecimal", b"1 1:0x1p3\n", ":1:5: expected a number as value, found '0x1p3'"),
    ("value_two_signs", b"1 1:--1\n", ":1:5: expected a number as value, found '--1'"),
    ("value_nan", b"1 1:NaN\n", ":1:5: the value 'NaN' is not a finite number; leave the entry out"),
    ("value_minus_nan", b"1 1:-nan\n", ":1:5: the value '-nan' is not a finite number"),
    ("value_inf", b"1 1:inf\n", ":1:5: the value 'inf' is not a finite number"),
    ("value_infinity", b"1 1:1 2:+Infinity # x\n", ":1:9: the value '+Infinity' is not a finite number"),
    ("value_huge", b"1 1:1e39\n", ":1:5: the value '1e39' is beyond the largest float32, 3.4e38; rescale"),
    ("value_just_too_large", b"1 1:-3.402823568e38\n", ":1:5: the value '-3.402823568e38' is beyond"),
    (
        "value_beyond_double",
        b"1 1:1e999999999999999999\n",
        ":1:5: the value '1e999999999999999999' is beyond",
    ),
    # lines
    ("old_mac", b"1 1:2\r-1 1:3\r", ":1:5: a carriage return within the line; end lines with LF or CR LF"),
    ("lone_return", b"1 1:2 \r 2:3\n", ":1:7: a carriage return within the line"),
    ("after_crlf", b"1 1:1\r\n\r\n# c\r\n1 1:1 1:2\r\n", ":4:7: the index in '1:2' occurs twice"),
    ("after_tabs", b"1\t1:1\t\t3:x\n", ":1:10: expected a number as value, found 'x'"),
    ("byte_order_mark", b"\xef\xbb\xbf1 1:x\n", ":1:5: expected a number as value, found 'x'"),
    # not LIBSVM text at all
    (
        "nul_in_label",
        b"\x00\x01\x02\n",
        ":1:1: not text, but binary data: found '\\x00\\x01\\x02'; give LIBSVM text",
    ),
    ("nul_in_value", b"1 1:\x00\n", ":1:5: not text, but binary data"),
    ("elf", b"\x7fELF\x02\x01\x01\x00" + bytes(8), ":1:1: not text, but binary data"),
    ("utf16", "1 1:1\n".encode("utf-16"), ": this is UTF-16 text; convert it to ASCII or UTF-8"),
    ("hdf5", b"\x89HDF\r\n\x1a\n" + bytes(100), ": this is an HDF5 file, perhaps a model"),
    ("zip", b"PK\x03\x04" + bytes(100), ": this is a zip archive; unpack it first"),
    ("numpy", b"\x93NUMPY\x01\x00" + bytes(100), ": this is a NumPy array"),
    # whole files
    ("empty", b"", ": the file is empty; give a file with one example a line"),
    ("blank_lines", b"\n  \n\t\r\n", ": no examples, only blank lines and comments"),
    ("comments", b"# label index:value\n#\n", ": no examples, only blank lines and comments"),
    ("byte_order_mark_only", b"\xef\xbb\xbf", ": no examples, only blank lines and comments"),
    # compressed
    ("gzip_truncated", gzip.compress(MANY)[:-20], ": the gzip data end too early; copy the file again"),
    ("gzip_header_only", gzip.compress(MANY)[:10], ": the gzip data end too early"),
    ("bzip2_truncated", bz2.compress(MANY)[:-20], ": the bzip2 data end too early"),
    ("xz_truncated", lzma.compress(MANY)[:-20], ": the xz data end too early"),
    ("zstd_truncated", zstandard.compress(MANY)[:-20], ": the zstd data end too early"),
    ("gzip_damaged", gzip.compress(MANY)[:-8] + bytes(8), ": the gzip data are damaged"),
    ("bzip2_damaged", bz2.compress(MANY)[:4] + bytes(40), ": the bzip2 data are damaged"),
    ("xz_damaged", lzma.compress(MANY)[:40] + bytes(400), ": the xz data are damaged"),
    ("zstd_damaged", zstandard.compress(MANY)[:4] + b"\xff" * 40, ": the zstd data are damaged"),
    ("gzip_of_nothing", gzip.compress(b""), ": the file is empty"),
    ("gzip_of_comments", gzip.compress(b"# nothing\n"), ": no examples, only blank lines and comments"),
    ("xz_bad_line", lzma.compress(MANY + b"1 1:1 x\n"), ":3001:7: expected INDEX:VALUE, found 'x'"),
]
