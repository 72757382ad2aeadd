"""Files damaged on purpose: one piece of a sound model or partition is changed, and the manifest made to agree.

The generators yield the ways in which a file can be changed; `Damage.make` writes one. What may be changed without
harm is in HARMLESS, with the reason.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import compress

import h5py
import numpy as np

from localsvm import methods
from localsvm.runs.config import LATER
from localsvm.runs.preparation.stored import OPTIONAL

HUGE = 10**12
CHUNKS = {"short chunk", "long chunk", "bomb", "chunk of nonsense"}  # HDF5 reads beyond its buffer in the first
FILTERS: dict[str, Any] = {"fletcher32": True, "compression": "gzip", "shuffle": True}

# changes that leave a file as ours could be, and what it predicts as it was: (place, what is done)
HARMLESS = {
    ("/cells/model_iterations", "largest"): "a number for people",
    ("/report/support", "largest"): "a number for people",
    ("/report/chosen", "nan"): "a number for people: nan where a parameter has no value",
    ("/cells/model_fall", "nan"): "a number for people: nan where it is not known",
    ("/report", "missing"): "the report may be absent",
    ("/@config seed", "a long number"): "any whole number is a seed",
    ("/report/support", "missing"): "not all methods have it",
    ("/centres", "missing"): "not all partitions have them",
} | {
    ("/metric/fresh", kind): "earlier files have it, and nothing reads it"
    for kind in ("missing", "dtype", "rank", "shorter", "longer", "empty", "largest")
}
# changes that make another model, which could have been trained: only its maker knows that it was not
ANOTHER = {
    ("/cells/support", "a row more"): "a support vector without coefficient moves the origin of distances",
    ("/cells/support_indptr", "a row more"): "a support vector without coefficient and values",
    ("/cells/anchors", "a row more"): "an anchor without a kernel moves the origin of distances",
    ("/cells/centres", "a row more"): "a cluster more, here without support vectors",
    ("/cells/landmarks", "a row less"): "a landmark less, as in a cell of few rows",
}


@dataclass(frozen=True)
class Damage:
    """One change.

    Attributes
    ----------
    place, kind : what is changed, and how.
    change : edits the file.
    also : another object that it changes.
    readable : whether HDF5 may read what is there now, for the manifest.
    """

    place: str
    kind: str
    change: Callable[[h5py.File], None]
    also: str = ""
    readable: bool = True

    def make(self, base: Path, path: Path) -> None:
        """A copy of `base` with the change, and a manifest that agrees."""
        shutil.copyfile(base, path)
        with h5py.File(path, "r+") as file:
            self.change(file)
            if self.place != "/@manifest":
                sign(file, {self.place.partition("@")[0], self.also}, self.readable)


def sign(file: h5py.File, changed: set[str], readable: bool = True) -> None:
    """Make the manifest agree with the file, of which these objects were changed."""
    listed = json.loads(file.attrs["manifest"])
    entries = {}
    for path, item in _objects(file):
        entries[path] = listed[path] if path in listed and not (readable and path in changed) else _entry(item)
        for name in item.attrs:
            if (path, name) not in {("/", "created"), ("/", "run"), ("/", "manifest")}:
                entries[f"{path}@{name}"] = _attribute_entry(item, name)
    _set(file, "manifest", np.bytes_(json.dumps(entries)))


def damaged(base: Path, seen: set[tuple[str, ...]]) -> Iterator[Damage]:
    """Every change of one piece of a file that is not in `seen`, where it is entered."""
    with h5py.File(base) as file:
        config = json.loads(file.attrs["config"])
        owner = str(config.get("method", {}).get("name", "partition"))
        for place, item in _objects(file)[1:]:
            shared = not place.startswith("/cells/") or place.startswith(("/cells/row_ptr", "/cells/model_"))
            if place.startswith("/cells/row_ptr/") and place[15:] not in ("coef", "weights"):
                continue
            variant = () if shared else (owner, str("support_data" in file["cells"]))
            if (place, *variant) not in seen:
                seen.add((place, *variant))
                yield from _of_array(place, item[...]) if isinstance(item, h5py.Dataset) else _of_group(place)
                if place.startswith("/cells/") and place.count("/") == 2 and isinstance(item, h5py.Dataset):
                    yield from _of_column(place, item[...], file["cells/row_ptr"][item.name[7:]][...])
        yield from _of_config(config, owner, seen)


# --- arrays


def _of_array(place: str, array: np.ndarray) -> Iterator[Damage]:
    def put(kind: str, values: np.ndarray) -> Damage:
        return Damage(place, kind, lambda file: replace(file, place, values))

    yield Damage(place, "missing", lambda file: file.__delitem__(place))
    other = {"f4": "f8", "f8": "f4", "i4": "f4", "i8": "f8", "u1": "i8", "u8": "i8"}[array.dtype.str[1:]]
    yield put("dtype", array.astype(other))
    yield put("rank", array[:, None] if array.ndim == 1 else array.ravel())
    if len(array):
        yield put("shorter", array[:-1])
        yield put("longer", np.concatenate([array, array[-1:]]))
    yield put("empty", array[:0])
    if array.ndim > 1:
        yield put("narrower", np.ascontiguousarray(array[:, :-1]))
        yield put("wider", np.concatenate([array, array[:, -1:]], axis=1))
    values = {"nan": np.nan, "inf": np.inf} if array.dtype.kind == "f" else {}
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        values = {"largest": limits.max} | ({"negative": -7} if limits.min else {})
    for kind, value in values.items():
        if array.size:
            changed = array.copy()
            changed.ravel()[-1] = value
            yield put(kind, changed)
    if array.size:
        yield put("all 0", np.zeros_like(array))
        most = np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.finfo(array.dtype).max
        yield put("all largest", np.full_like(array, most))


def _of_column(place: str, array: np.ndarray, pointer: np.ndarray) -> Iterator[Damage]:
    """Rows that are missing from a cell, or too many, with row pointers that agree."""
    column = place.rpartition("/")[2]
    for kind, values in {"a row less": array[:-1], "a row more": np.concatenate([array, array[-1:]])}.items():
        ends = pointer.copy()
        ends[-1] = len(values)

        def change(file: h5py.File, values: np.ndarray = values, ends: np.ndarray = ends) -> None:
            replace(file, place, values)
            replace(file, f"/cells/row_ptr/{column}", ends)

        yield Damage(place, kind, change, f"/cells/row_ptr/{column}")


def replace(file: h5py.File, place: str, values: np.ndarray, **how: Any) -> None:
    """Put an array in the place of another, stored as ours are."""
    del file[place]
    filters = {} if not values.size else {"chunks": values.shape, "fletcher32": True}
    if values.size and values.dtype.kind in "iu":
        filters |= FILTERS
    file.create_dataset(place, data=values, **filters)


def _of_group(place: str) -> Iterator[Damage]:
    yield Damage(place, "missing", lambda file: file.__delitem__(place))

    def into_itself(file: h5py.File) -> None:
        file[f"{place}/again"] = file[place]

    yield Damage(place, "circle", into_itself)
    yield Damage(place, "more", lambda file: replace_new(file, f"{place}/more", np.arange(3.0)))


def replace_new(file: h5py.File, place: str, values: np.ndarray) -> None:
    """Add an array."""
    file.create_dataset(place, data=values, chunks=values.shape, fletcher32=True)


# --- the order and the tree


def special(base: Path) -> Iterator[Damage]:
    """Changes of values that make sense one by one, but not together."""
    for place in ("/labels", "/columns"):
        with h5py.File(base) as file:
            if place.strip("/") not in file:
                continue
            array = file[place][...]
        yield Damage(place, "descending", lambda f, p=place, a=array: replace(f, p, a[::-1].copy()))  # type: ignore[misc]
        yield Damage(place, "twice", lambda f, p=place, a=array: replace(f, p, np.full_like(a, a[0])))  # type: ignore[misc]
    yield from _of_tree(base)
    yield from _of_pointers(base)


def _of_pointers(base: Path) -> Iterator[Damage]:
    with h5py.File(base) as file:
        names = [name for name in file["cells"] if name.endswith(("_ptr", "indptr")) and name != "row_ptr"]
        arrays = {f"/cells/{name}": file["cells"][name][...] for name in names}
        arrays |= {
            f"/cells/row_ptr/{name}": file["cells/row_ptr"][name][...] for name in list(file["cells/row_ptr"])[:3]
        }
        support = file["cells/support_indices"][...] if "support_indices" in file["cells"] else None
    for place, array in arrays.items():
        for kind, change in _POINTERS.items():
            values = change(array.copy())
            if not np.array_equal(values, array):
                yield Damage(place, kind, lambda f, p=place, v=values: replace(f, p, v))  # type: ignore[misc]
    if support is not None:
        yield Damage(
            "/cells/support_indices", "reversed", lambda f: replace(f, "/cells/support_indices", support[::-1].copy())
        )


def _from(pointer: np.ndarray, at: int, value: int) -> np.ndarray:
    pointer[at] = value
    return pointer


_POINTERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "does not begin at 0": lambda p: _from(p, 0, 1),
    "ends too late": lambda p: _from(p, -1, int(p[-1]) + 1),
    "ends too early": lambda p: _from(p, -1, int(p[-1]) - 1),
    "falls": lambda p: _from(p, len(p) // 2, int(p.max()) + 5) if len(p) > 2 else p,
    "negative": lambda p: _from(p, len(p) // 2, -3) if len(p) > 2 else p,
    "overflows": lambda p: np.concatenate([p[:1], [2**63 - 1, -(2**63), -1], p[4:]]) if len(p) > 4 else p,
}


def _of_tree(base: Path) -> Iterator[Damage]:
    with h5py.File(base) as file:
        if "cell" not in file["partition"]:
            return
        tree = {name: file["partition"][name][...] for name in ("first_child", "n_children", "cell")}
    inner, leaves = np.flatnonzero(tree["n_children"]), np.flatnonzero(tree["cell"] >= 0)
    changes: dict[str, tuple[str, Any, int]] = {
        "a circle": ("first_child", inner[-1], 0),
        "a child of itself": ("first_child", inner[0], int(inner[0])),
        "a node twice": ("first_child", inner[-1], int(tree["first_child"][inner[0]])),
        "children outside": ("first_child", inner[-1], len(tree["cell"]) - 1),
        "many children": ("n_children", inner[0], 1 << 30),
        "one child": ("n_children", inner[0], 1),
        "an orphan": ("n_children", inner[-1], int(tree["n_children"][inner[-1]]) - 1),
        "no children": ("n_children", inner[-1], 0),
        "children of a leaf": ("n_children", leaves[0], 2),
        "a cell twice": ("cell", leaves[0], int(tree["cell"][leaves[1]])),
        "a cell too large": ("cell", leaves[0], len(leaves)),
        "a leaf without cell": ("cell", leaves[0], -1),
        "an inner node with a cell": ("cell", inner[0], 0),
    }
    for kind, (name, at, value) in changes.items():
        values, place = _from(tree[name].copy(), at, value), f"/partition/{name}"
        yield Damage(place, kind, lambda f, p=place, v=values: replace(f, p, v))  # type: ignore[misc]


# --- the metric


def of_metric(base: Path) -> Iterator[Damage]:
    """Changes of the metric, and of what the config says of it."""
    with h5py.File(base) as file:
        arrays = {f"/metric/{name}": file["metric"][name][...] for name in file["metric"]}
        config, kind = json.loads(file.attrs["config"]), file["metric"].attrs["kind"]
    for place, array in arrays.items():
        yield from _of_array(place, array)
        if array.ndim == 2:
            wide = np.ones((len(array), len(array) + 1), np.float32)
            yield Damage(place, "more columns than features", lambda f, p=place, w=wide: replace(f, p, w))  # type: ignore[misc]
            square = np.ones((len(array), len(array)), np.float32)
            yield Damage(place, "another rank", lambda f, p=place, s=square: replace(f, p, s))  # type: ignore[misc]
    yield from _of_group("/metric")
    for other in {b"weights", b"matrix", b"nonsense"} - {kind}:
        yield Damage("/metric@kind", str(other), lambda f, o=other: _set(f["metric"], "kind", np.bytes_(o)))  # type: ignore[misc]
    for what, new in _learned(config["metric"], config["learned"]):
        source = json.dumps(config | new)
        yield Damage(f"/@config {what}", "", lambda f, s=source: _set(f, "config", np.bytes_(s.encode())))  # type: ignore[misc]


def _learned(asked: str, learned: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ("none", "auto", "full", "rank:9", "rank:0", "nonsense", 3):
        if name != asked:
            yield f"metric {name}", {"metric": name}
        yield f"name {name}", {"learned": learned | {"name": name}}
        yield f"metric and name {name}", {"metric": name, "learned": learned | {"name": name}}
    for key in learned:
        yield f"without {key}", {"learned": {k: v for k, v in learned.items() if k != key}}
    yield "more", {"learned": learned | {"more": 1}}
    yield "no object", {"learned": [learned]}
    choice = {"best": "full", "loss": [1, 2], "error": [1, 2], "z": [1, 2], "bound": [1, 2]}
    yield "no choice", {"learned": learned | choice}
    for key, value in (
        ("best", "\x1b"),
        ("z", [1]),
        ("bound", [1, "\x1b"]),
        ("loss", 3),
        ("more", 1),
        ("why", "one class"),
    ):
        yield f"choice {key}", {"metric": "auto", "learned": learned | {"name": "full"} | choice | {key: value}}
    untried = {key: "none" if key == "best" else [] for key in choice}
    yield "untried", {"metric": "auto", "learned": untried | {"name": "none", "why": "\x1b[2J"}}
    yield "neither", {"metric": "none", "learned": {"name": "none"}}


# --- the way a dataset is stored, attributes, options


Make = Callable[[h5py.File, str, np.ndarray], Any]  # puts something at a path where an array was


def foreign(place: str, elsewhere: Path) -> Iterator[Damage]:
    """Replacements of a dataset by other things of HDF5; elsewhere: another HDF5 file, which must not be opened."""
    makes = _links(elsewhere) | _stored(elsewhere) | _types()
    for kind, make in makes.items():

        def change(file: h5py.File, make: Make = make) -> None:
            values = file[place][...]
            del file[place]
            make(file, place, values)

        yield Damage(place, kind, change, readable=kind not in CHUNKS)


def _links(elsewhere: Path) -> dict[str, Make]:
    def other(link: Callable[[h5py.File], Any]) -> Make:
        return lambda file, at, values: file.__setitem__(at, link(file))

    return {
        "soft link": other(lambda file: h5py.SoftLink("/cells")),
        "dangling link": other(lambda file: h5py.SoftLink("/nowhere")),
        "external link": other(lambda file: h5py.ExternalLink(str(elsewhere), "/x")),
        "second name": other(lambda file: file["cells/row_ptr/" + next(iter(file["cells/row_ptr"]))]),
        "named type": other(lambda file: np.dtype("<f8")),
        "group": lambda file, at, values: file.create_group(at),
    }


def _stored(elsewhere: Path) -> dict[str, Make]:
    def virtual(file: h5py.File, at: str, values: np.ndarray) -> None:
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[...] = h5py.VirtualSource(elsewhere, "x", values.shape)
        file.create_virtual_dataset(at, layout)

    def raw(file: h5py.File, at: str, values: np.ndarray) -> None:
        other = elsewhere.with_suffix(".raw")
        other.write_bytes(values.tobytes())
        file.create_dataset(at, values.shape, values.dtype, external=[(str(other), 0, values.nbytes)])

    def packed(content: Callable[[np.ndarray], bytes]) -> Make:
        def make(file: h5py.File, at: str, values: np.ndarray) -> None:
            dataset = file.create_dataset(at, values.shape, values.dtype, chunks=values.shape, compression="gzip")
            dataset.id.write_direct_chunk((0,) * values.ndim, content(values))

        return make

    def huge(**how: Any) -> Make:
        return lambda file, at, values: file.create_dataset(at, (HUGE, *values.shape[1:]), values.dtype, **how)

    return {
        "virtual dataset": virtual,
        "raw data elsewhere": raw,
        "huge, chunked": huge(chunks=True),
        "huge, compressed": huge(chunks=True, compression="gzip"),
        "huge, contiguous": huge(),
        "short chunk": packed(lambda values: compress(values.tobytes()[: values.nbytes // 2])),
        "long chunk": packed(lambda values: compress(values.tobytes() + bytes(1 << 20))),
        "bomb": packed(lambda values: compress(bytes(1 << 26))),
        "chunk of nonsense": packed(lambda values: b"nonsense"),
    }


def _types() -> dict[str, Make]:
    def typed(dtype: Any, **how: Any) -> Make:
        return lambda file, at, values: file.create_dataset(at, values.shape, dtype, **how)

    return {
        "unknown filter": typed("f8", compression="lzf"),
        "scale filter": typed("i8", scaleoffset=0),
        "text": typed("S8"),
        "text of any length": typed(h5py.string_dtype()),
        "compound": typed([("a", "f8"), ("b", "i4")]),
        "flags": typed("bool"),
        "references": typed(h5py.ref_dtype),
        "big-endian": typed(">f8"),
        "half precision": typed("f2"),
        "no shape": lambda file, at, values: file.create_dataset(at, data=h5py.Empty("f8")),
        "scalar": lambda file, at, values: file.create_dataset(at, data=1.0),
    }


def attributes(base: Path) -> Iterator[Damage]:
    """Changes of the attributes."""
    with h5py.File(base) as file:
        places = [(place, key, value) for place, item in _objects(file) for key, value in item.attrs.items()]
    for place, name, value in places:
        values: dict[str, Any] = {
            "missing": None,
            "a list": np.arange(3),
            "a number with a point": 1.5,
            "text of any length": "text",
            "unreadable": np.bytes_(b"\xff\xfe"),
            "nothing": np.bytes_(b""),
            "a line break": np.bytes_(b"none\n\x1b[2J"),
            "unknown": np.bytes_(b"nonsense"),
        }
        if isinstance(value, np.integer):
            values |= {"negative": np.int64(-1), "zero": np.int64(0), "huge": np.int64(2**62), "more": value + 1}
        else:
            values |= {"a number": np.int64(1)}
        for kind, new in values.items():
            if (name, kind) not in _FREE:
                yield Damage(f"{place}@{name}", kind, lambda f, p=place, n=name, v=new: _set(f[p], n, v))  # type: ignore[misc]
    for name in ("manifest", "config"):
        for kind, source in _JSON.items():
            yield Damage(f"/@{name}", kind, lambda f, n=name, s=source: _set(f, n, np.bytes_(s)))  # type: ignore[misc]


_FREE = {(name, kind) for name in ("created", "generator", "run") for kind in ("unknown", "nothing")} | {  # any line
    ("run", "missing"),
}
_JSON = {
    "a JSON list": b"[1]",
    "no JSON": b"{",
    "deep JSON": b"[" * 200_000,
    "deep objects": b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "a long number": b'{"features": ' + b"9" * 5000 + b"}",
    "an empty object": b"{}",
}


def _of_config(config: dict[str, Any], owner: str, seen: set[tuple[str, ...]]) -> Iterator[Damage]:
    if owner == "partition":
        return
    first = ("/@config",) not in seen
    seen.add(("/@config",))

    def with_(kind: str, key: str, new: dict[str, Any] | str) -> Damage:
        source = new if isinstance(new, str) else json.dumps(new)
        return Damage(f"/@config {key}", kind, lambda file: _set(file, "config", np.bytes_(source.encode())))

    options = methods.options_of(methods.methods()[config["method"]["name"]])
    later = {option.name for option in options if "later" in option.metadata}
    where = [(config, key, lambda new: new) for key in config]
    where += [(config["method"], key, lambda new: config | {"method": new}) for key in config["method"]]  # type: ignore[misc]
    for owner_, key, whole in where:
        if ("/@config", key) in seen:
            continue
        seen.add(("/@config", key))
        rest = {name: value for name, value in owner_.items() if name != key}
        if key not in LATER | OPTIONAL | later:
            yield with_("missing", key, whole(rest))
        for kind, value in _VALUES.items():
            if value != owner_[key] and (key, kind) not in _ALLOWED:
                yield with_(kind, key, whole(rest | {key: value}))
        if not first:
            continue
        yield with_("nan", key, json.dumps(whole(rest | {key: "@"})).replace('"@"', "NaN"))
        yield with_("infinite", key, json.dumps(whole(rest | {key: "@"})).replace('"@"', "1e999"))
    if not first:
        return
    yield with_("unknown", "new", config | {"new": 1})
    yield with_("unknown", "new", config | {"method": config["method"] | {"new": 1}})
    yield with_("twice", "seed", json.dumps(config)[:-1] + ', "seed": 1}')


_VALUES: dict[str, Any] = {
    "nothing": None,
    "text": "nonsense",
    "negative": -1,
    "a long number": 10**30,
    "object": {"a": 1},
    "list of text": ["a"],
    "nested list": [[[1]]],
}
_ALLOWED = {  # values that these options may have
    ("partition", "nothing"),
    ("select", "nothing"),
    ("coef0", "negative"),
    ("classes", "object"),
}


def _objects(file: h5py.File) -> list[tuple[str, Any]]:
    """All groups and datasets by path, "/" first."""
    objects: list[tuple[str, Any]] = [("/", file)]
    file.visititems(lambda name, item: objects.append((f"/{name}", item)))
    return objects


def _entry(item: Any) -> str:
    if not isinstance(item, h5py.Dataset):
        return "group"
    try:
        small = item.shape is not None and item.size < 1 << 24
        digest = hashlib.sha256(np.asarray(item[...]).tobytes() if small else b"").hexdigest()
    except (OSError, TypeError):
        digest = "0" * 64
    return f"{item.dtype.str} {json.dumps(item.shape)} {digest}"


def _attribute_entry(item: Any, name: str) -> str:
    try:
        value = item.attrs[name]
        text = value.decode() if isinstance(value, bytes) else value
    except (OSError, UnicodeDecodeError):
        return "text"
    return f"text {hashlib.sha256(text.encode()).hexdigest()}" if isinstance(text, str) else f"integer {value}"


def _set(item: Any, name: str, value: Any) -> None:
    if name in item.attrs:
        del item.attrs[name]
    if value is not None:
        item.attrs[name] = value
