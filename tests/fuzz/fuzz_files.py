#!/usr/bin/env python3
"""Fuzz what reads files from elsewhere: compressed text, journals, models and partitions.

    python tests/fuzz/fuzz_files.py SECONDS SEED FOUND

Each input is a sound file with random changes: bits, parts left out, repeated, cut or added. In half of the journals
and models the checksums are made to agree with the changes, as somebody who means harm would do. Each has to end in
one line of a LocalSVMError, or in what the file is worth:

    compressed text   the bytes that another decoder finds
    journal           records whose bytes are as they were written; with new checksums any numbers
    model, partition  what the sound file gives; with new checksums finite values and known labels

The first input that ends otherwise is left in the folder FOUND, and the exit code is 1. So is the input at hand where
the process itself ends. Inputs follow from SEED alone; how many there are, from the time.
"""

from __future__ import annotations

import bz2
import contextlib
import faulthandler
import gzip
import hashlib
import io
import lzma
import shutil
import signal
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import zstandard

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "scripts")]

from strangers import sign  # noqa: E402

from develop.make_golden import DENSE, FOLDER, SPARSE, golden  # noqa: E402
from localsvm.data.readers.compression import HEAD, open_source  # noqa: E402
from localsvm.data.readers.decoding import compression  # noqa: E402
from localsvm.data.readers.libsvm import read  # noqa: E402
from localsvm.errors import LocalSVMError  # noqa: E402
from localsvm.runs.predict import LocalModel  # noqa: E402
from localsvm.store import journal  # noqa: E402
from localsvm.store.model import load_partition  # noqa: E402

ALARM = 30  # seconds after which an input counts as one that never ends
TEXT = b"".join(b"%d 1:%d 2:0.%d\n" % (i % 2, i + 1, i * 7919 + 1) for i in range(400))
KEY = "0" * 64
LINE = 600  # characters of a message at most

Changed = tuple[bytes, bool]  # the content, and whether it is still sound


class Finding(Exception):
    """An input that is not taken as it should be."""


def changed(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with some random changes."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        at, kind = int(rng.integers(len(data) + 1)), int(rng.integers(6))
        length = int(rng.integers(1, 64))
        if kind == 0 and at < len(data):
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1 and at < len(data):
            data[at] = int(rng.integers(256))
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[max(0, at - length) : at]
        elif kind == 4:
            del data[at:]
        else:
            data[at:at] = rng.integers(0, 256, length, np.uint8).tobytes()
    return bytes(data)


@contextlib.contextmanager
def refusals(path: Path, row: bool = False) -> Iterator[None]:
    """Accept a LocalSVMError of one line that names the file; any other exception in the block is a Finding.

    row : accept one that names a row, too, whose value a forged model's finite weights make too large.
    """
    try:
        yield
    except LocalSVMError as error:
        text = str(error)
        named = str(path) in text or (row and text.startswith("row "))
        if not text.isprintable() or len(text) > LINE + len(str(path)) or not named:
            raise Finding(f"not one line that names the file: {text!r}") from error
    except Finding:
        raise
    except BaseException as error:
        raise Finding(f"{type(error).__name__}: {error}") from error


# --- compressed text


def gzip_of(data: bytes) -> bytes:
    """A gzip member without the time."""
    return gzip.compress(data, mtime=0)


def zstd_of(data: bytes) -> bytes:
    """A zstd frame with a checksum."""
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def unzstd(data: bytes) -> bytes:
    """Content of all zstd frames."""
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as stream:
        return bytes(stream.read())


def unxz(data: bytes) -> bytes:
    """Content of all xz streams. Zeros may follow the last one, which Python's decoder takes for a stream cut off."""
    return lzma.decompress(data.rstrip(b"\0"))


FORMATS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes], bytes]] = {
    "gz": (gzip_of, gzip.decompress, bytes(5)),
    "bz2": (bz2.compress, bz2.decompress, b""),
    "xz": (lzma.compress, unxz, bytes(8)),
    "zst": (zstd_of, unzstd, b""),
}


def decoded(path: Path) -> bytes:
    """Content of a file as localsvm decodes it."""
    with open_source(path) as source:
        parts = []
        while part := source.read(1 << 12):
            parts.append(bytes(part))
    return b"".join(parts)


def compressed(folder: Path, rng: np.random.Generator) -> None:
    """Try one input of the decoders."""
    suffix = list(FORMATS)[int(rng.integers(len(FORMATS)))]
    encode, reference, padding = FORMATS[suffix]
    cuts = sorted(rng.integers(0, len(TEXT), int(rng.integers(0, 3))).tolist())
    parts = [TEXT[a:b] for a, b in zip([0, *cuts], [*cuts, len(TEXT)], strict=True)]
    sound = (padding if rng.integers(2) else b"").join(encode(part) for part in parts)
    path = folder / f"input.{suffix}"
    if rng.integers(8) == 0:
        path.write_bytes(sound)
        with refusals(path):
            if decoded(path) != TEXT:
                raise Finding("a sound file gives something else")
            return
        raise Finding("a sound file is refused")
    content = changed(sound, rng)
    path.write_bytes(content)
    with refusals(path):
        output = decoded(path)
        if compression(content[:HEAD]) == compression(sound):  # else it is plain text now
            try:
                expected = reference(content)
            except Exception as error:
                raise Finding(f"read, and refused by another decoder: {error}") from error
            if output != expected:
                raise Finding("another decoder finds something else")


# --- journals


def records(rng: np.random.Generator) -> dict[str, dict[str, np.ndarray]]:
    """Records such as a run writes, by name, with random numbers."""
    return {
        str(i): {
            "index": np.asarray(i),
            "report": np.frombuffer(b'{"rows": 3}', np.uint8),
            "state/coef": rng.standard_normal(int(rng.integers(0, 9))),
            "state/support": rng.standard_normal((2, 3)).astype(np.float32),
        }
        for i in range(int(rng.integers(1, 4)))
    }


def resealed(content: bytes) -> bytes:
    """The content with checksums that agree, as far as its records can be followed."""
    data = bytearray(content)
    header, record = journal._HEADER, journal._RECORD
    if len(data) < header.size:
        return content
    struct.pack_into("<I", data, header.size - 4, zlib.crc32(data[: header.size - 4]))
    at = header.size + header.unpack_from(data)[3]
    while at + record.size <= len(data):
        size = record.unpack_from(data, at)[1]
        body = bytes(data[at + record.size : at + record.size + size])
        if len(body) != size:
            break
        digest = hashlib.sha256(body).digest()
        head = record.pack(data[at : at + 4], size, digest, 0)[:-4]
        data[at : at + record.size] = head + struct.pack("<I", zlib.crc32(head))
        at += record.size + size
    return bytes(data)


def journals(folder: Path, rng: np.random.Generator) -> None:
    """Try one input of the journal."""
    path, written = folder / "model.h5.journal", records(rng)
    path.unlink(missing_ok=True)
    with journal.open_journal(path, KEY, {"--folds": "5"}) as new:
        for name, arrays in written.items():
            new.append(name, arrays)
    content = changed(path.read_bytes(), rng)
    forged = bool(rng.integers(2))
    path.write_bytes(resealed(content) if forged else content)
    with refusals(path), journal.open_journal(path, KEY, {"--folds": "5"}, resume=True) as again:
        for name in again:
            arrays = again[name]
            if not forged and (
                name not in written or any(arrays[key].tobytes() != v.tobytes() for key, v in written[name].items())
            ):
                raise Finding(f"record {name} is not as it was written")


# --- models and partitions


EXTREMES = (0, 1, -1, 2, 255, 2**31 - 1, -(2**31), 2**62, -(2**63), 1e308, -1e308, np.inf, np.nan, 1e-320)


def rewritten(path: Path, rng: np.random.Generator) -> None:
    """Change some numbers of one dataset, and make the manifest agree."""
    with h5py.File(path, "r+") as file:
        places: list[str] = []
        file.visititems(lambda name, item: places.append(f"/{name}") if isinstance(item, h5py.Dataset) else None)
        for _ in range(int(rng.integers(1, 4))):
            place = places[int(rng.integers(len(places)))]
            values = file[place][...]
            if values.size:
                at = int(rng.integers(values.size))
                extreme = EXTREMES[int(rng.integers(len(EXTREMES)))]
                with np.errstate(all="ignore"):
                    values.reshape(-1)[at] = np.asarray(extreme).astype(values.dtype)
                file[place][...] = values
        sign(file, set(places))


def use(path: Path) -> bytes:
    """Bytes of a model's predictions, or of a partition's cells; Finding where a prediction is not finite."""
    if path.stem == "cells":
        partition = load_partition(path)
        return partition.assignment.tobytes() + partition.weight.tobytes()
    rows, _ = golden()[path.stem]
    with LocalModel(path) as model:
        blocks = list(model.predict_blocks(model.read(FOLDER / rows)))
        for block in blocks:
            if not np.isfinite(block.decisions).all() or not np.isin(block.labels, model.file.labels).all():
                raise Finding("values that are not finite, or labels that the model does not have")
        return b"".join(block.decisions.tobytes() for block in blocks)


SOUND: dict[str, bytes] = {}


def models(folder: Path, rng: np.random.Generator) -> None:
    """Try one input of what reads models and partitions."""
    names = sorted(golden())
    base = FOLDER / f"{names[int(rng.integers(len(names)))]}.h5"
    path = folder / base.name
    if base.name not in SOUND:
        SOUND[base.name] = use(base)
    if rng.integers(2):
        shutil.copyfile(base, path)
        rewritten(path, rng)
        with refusals(path, row=True):
            use(path)
        return
    path.write_bytes(changed(base.read_bytes(), rng))
    with refusals(path):
        if use(path) != SOUND[base.name]:
            raise Finding("a file whose manifest agrees says something else")


TARGETS = {"compressed text": compressed, "journals": journals, "models and partitions": models}


def main(seconds: float, seed: int, folder: Path) -> int:
    """Fuzz each target for its share of the time; returns the exit code."""
    faulthandler.enable()
    for file in (DENSE, SPARSE):
        read(FOLDER / file)
    for number, (name, target) in enumerate(TARGETS.items()):
        rng = np.random.default_rng([seed, number])
        end, tried = time.monotonic() + seconds / len(TARGETS), 0
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        while time.monotonic() < end:
            signal.alarm(ALARM)
            try:
                target(folder, rng)
            except Finding as finding:
                print(f"{name}: input {tried + 1} of seed {seed}: {finding}; it is in {folder}", file=sys.stderr)
                return 1
            tried += 1
        signal.alarm(0)
        shutil.rmtree(folder)
        print(f"{name}: {tried} inputs, nothing found", flush=True)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: fuzz_files.py SECONDS SEED FOUND")
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
