"""The file formats of an embedding, one writer and one reader each.

A writer gets an embedding and an open binary file; a reader gets a path and returns the keyword arguments of
`Embedding`. Everything is written through Python's own files, because other writers (safetensors) make and
rename files themselves, and report a full disk in ways of their own. No reader believes a declared size
before it has compared it with the size of the file, and none of them unpickles.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import safetensors
from numpy.typing import NDArray
from pyarrow import types

from kernelne.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from kernelne.embedding import Embedding

Fields = dict[str, Any]

# What the libraries below raise on a damaged file, next to OSError.
DAMAGE = (
    ValueError,  # and with it UnicodeError, json.JSONDecodeError, pyarrow.ArrowInvalid, InputError
    KeyError,
    OverflowError,
    EOFError,
    RuntimeError,  # an encrypted archive, JSON nested too deeply, a compression that is not there
    zipfile.BadZipFile,
    pa.ArrowException,
    safetensors.SafetensorError,
)

_VERSION = 1
_KEY = "kernelne_embedding"  # under which the JSON is found in every format that can hold it

# name: dtype, dimensions, in safetensors and npz
_ARRAYS = {
    "vectors": ("float32", 2),
    "center": ("float32", 2),
    "context": ("float32", 2),
    "coefficients": ("float64", 1),
    "nodes": ("int64", 1),
    "nodes_utf8": ("uint8", 1),  # strings, one after the other; string i is [offsets[i], offsets[i+1])
    "nodes_offsets": ("int64", 1),
}
_SAFETENSORS_DTYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8"}


def check_ids(embedding: Embedding, path: str | os.PathLike[str]) -> None:
    """Raise InputError if the format of `path` cannot give the ids back."""
    if embedding.nodes.dtype != object:
        return
    nodes = embedding.nodes.tolist()
    others = [node for node in nodes if type(node) is not str]
    if others:
        raise InputError(
            f"only ids that are strings or 64-bit integers can be saved, found {others[0]!r}: "
            "make an Embedding with nodes=[str(node) for node in nodes]"
        )
    suffix = Path(path).suffix.lower()
    if suffix in (".emb", ".txt"):
        bad = next((node for node in nodes if not node or re.search(r"\s", node)), None)
    elif suffix == ".npy":
        bad = next((node for node in nodes if re.search(r"[\r\n]|^\ufeff", node)), None)
    else:
        bad = None
    if bad is not None:
        raise InputError(
            f"{suffix} cannot hold the id {bad!r} (white space, or empty): use .safetensors, .parquet or .csv"
        )
    surrogate = next((node for node in nodes if re.search("[\ud800-\udfff]", node)), None)
    if surrogate is not None:
        raise InputError(f"the id {surrogate!r} has no UTF-8 form: replace its surrogates")


# Arrays and one JSON text: safetensors and npz


def _to_arrays(embedding: Embedding) -> tuple[dict[str, NDArray[Any]], str]:
    arrays: dict[str, NDArray[Any]] = {"vectors": embedding.vectors}
    if embedding.nodes.dtype == object:
        _, offsets, text = pa.array(embedding.nodes, pa.large_string()).buffers()
        arrays["nodes_offsets"] = np.frombuffer(offsets, np.int64, len(embedding) + 1)
        arrays["nodes_utf8"] = np.frombuffer(text or b"", np.uint8, int(arrays["nodes_offsets"][-1]))
    else:
        arrays["nodes"] = embedding.nodes
    for name in ("center", "context", "coefficients"):
        array = getattr(embedding, name)
        if array is not None and array is not embedding.vectors:
            arrays[name] = array
    little = {n: np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<")) for n, a in arrays.items()}
    document = {
        "version": _VERSION,
        "provenance": embedding.provenance,
        "kernels": embedding.kernels,
        "shared": [n for n in ("center", "context") if getattr(embedding, n) is embedding.vectors],
    }
    return little, json.dumps(document)


def _check_array(path: Path, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    if name not in _ARRAYS:
        raise FileFormatError(path, f"not an embedding of this package: holds an array {name!r}")
    wanted, ndim = _ARRAYS[name]
    if dtype != wanted or len(shape) != ndim:
        raise FileFormatError(
            path, f"array {name!r} should have {ndim} dimensions of {wanted}, has shape {shape} of {dtype}"
        )


def _from_arrays(path: Path, arrays: dict[str, NDArray[Any]], text: str) -> Fields:
    document = _document(path, text)
    if "vectors" not in arrays:
        raise FileFormatError(path, "array 'vectors' is missing")
    nodes = arrays.pop("nodes", None)
    utf8, offsets = arrays.pop("nodes_utf8", None), arrays.pop("nodes_offsets", None)
    if nodes is None:
        if utf8 is None or offsets is None:
            raise FileFormatError(path, "the node ids are missing")
        nodes = _strings(path, utf8, offsets)
    elif utf8 is not None or offsets is not None:
        raise FileFormatError(path, "the node ids are there twice, as integers and as strings")
    fields: Fields = {**arrays, "nodes": nodes}
    shared = document.get("shared", [])
    for name in shared if isinstance(shared, list) else [shared]:
        if name not in ("center", "context") or name in arrays:
            raise FileFormatError(path, f"cannot share the vectors as {name!r}")
        fields[name] = arrays["vectors"]
    return {**fields, "provenance": document.get("provenance", {}), "kernels": document.get("kernels")}


def _strings(path: Path, utf8: NDArray[Any], offsets: NDArray[Any]) -> NDArray[Any]:
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(utf8) or (np.diff(offsets) < 0).any():
        raise FileFormatError(path, "the offsets of the node ids do not fit their text")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(utf8)]
    strings = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)
    strings.validate(full=True)  # raises on invalid UTF-8
    return _objects(strings)


def _objects(strings: Any) -> NDArray[Any]:
    # Through a list, because to_numpy gives equal strings one object or many as it likes, and null as None.
    return np.fromiter(strings.to_pylist(), object, len(strings))


def _document(path: Path, text: str) -> Fields:
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        version = document.get("version") if isinstance(document, dict) else None
        raise FileFormatError(path, f"version {version!r} of the format is not known here, only {_VERSION}")
    return document


def _write_safetensors(embedding: Embedding, stream: BinaryIO) -> None:
    arrays, text = _to_arrays(embedding)
    header: Fields = {"__metadata__": {_KEY: text}}
    # Widest items first, so that every array is aligned for those who map the file into memory.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        dtype = _SAFETENSORS_DTYPES[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    stream.write(len(encoded).to_bytes(8, "little") + encoded)
    for _, array in ordered:
        stream.write(array.data)


def _read_safetensors(path: Path) -> Fields:
    names = {short: name for name, short in _SAFETENSORS_DTYPES.items()}
    with safetensors.safe_open(path, framework="np") as file:
        text = (file.metadata() or {}).get(_KEY)
        if text is None:
            raise FileFormatError(path, f"not an embedding of this package: no {_KEY!r} in its metadata")
        for name in file.keys():  # noqa: SIM118  (not a mapping)
            part = file.get_slice(name)
            _check_array(path, name, names.get(part.get_dtype(), part.get_dtype()), tuple(part.get_shape()))
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return _from_arrays(path, arrays, text)


def _write_npz(embedding: Embedding, stream: BinaryIO) -> None:
    arrays, text = _to_arrays(embedding)
    arrays[_KEY] = np.frombuffer(text.encode(), np.uint8)
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_array(array, member)


def _read_npz(path: Path) -> Fields:
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        if f"{_KEY}.npy" not in archive.namelist():
            raise FileFormatError(path, f"not an embedding of this package: no {_KEY!r} in it")
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > path.stat().st_size:
                raise FileFormatError(path, f"{name!r} is compressed or larger than the file")
            if name in arrays:
                raise FileFormatError(path, f"{name!r} is there twice")
            with archive.open(info) as member:
                dtype, shape = _read_array_header(path, member, info.file_size)
            if name != _KEY:
                _check_array(path, name, dtype.name, shape)
            with archive.open(info) as member:
                arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
    return _from_arrays(path, arrays, arrays.pop(_KEY).tobytes().decode())


# npy: the vectors, and the ids in a text file beside them


def nodes_file(path: Path) -> Path:
    """Where the ids of the vectors in the .npy file `path` are."""
    return path.with_name(path.name + ".nodes.txt")


def _write_array(array: NDArray[Any], stream: IO[bytes]) -> None:
    # Not numpy.save: on a full disk it says "1024 requested and 512 written" and no more.
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    stream.write(array.data)


def _read_array_header(path: Path, stream: IO[bytes], size: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype and shape a .npy header declares, if they fit the `size` bytes of the stream exactly."""
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read[version](stream)
    except Exception as error:  # a crafted header raises anything, from TokenError to TypeError
        raise FileFormatError(path, f"not an array of numpy: {type(error).__name__}") from error
    if dtype.hasobject:
        raise FileFormatError(path, "holds Python objects (pickle), which are never loaded")
    if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise FileFormatError(path, f"the header asks for {shape} of {dtype}, the file has another size")
    return dtype, shape


def _write_npy(embedding: Embedding, stream: BinaryIO) -> None:
    _write_array(embedding.vectors, stream)


def write_node_lines(embedding: Embedding, stream: BinaryIO) -> None:
    """Write the ids, one a line."""
    stream.write("".join(f"{node}\n" for node in embedding.nodes.tolist()).encode())


def _read_npy(path: Path) -> Fields:
    with open(path, "rb") as stream:
        _read_array_header(path, stream, path.stat().st_size)
        stream.seek(0)
        vectors = np.lib.format.read_array(stream, allow_pickle=False)
    if vectors.ndim != 2:
        raise FileFormatError(path, f"an array of 2 dimensions is needed, this one has shape {vectors.shape}")
    beside = nodes_file(path)
    if not beside.exists():
        warnings.warn(f"{path}: no node ids in {beside.name}, rows are numbered from 0", stacklevel=3)
        return {"vectors": vectors, "nodes": np.arange(len(vectors))}
    try:
        text = beside.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise FileFormatError(beside, f"the node ids are not UTF-8: {error.reason}") from error
    nodes = text.split("\n")
    if nodes.pop() != "" or len(nodes) != len(vectors):
        raise FileFormatError(beside, f"one whole line for each of the {len(vectors)} vectors is needed")
    return {"vectors": vectors, "nodes": _integers_or_strings(pa.array(nodes, pa.large_string()))}


def _integers_or_strings(ids: Any) -> NDArray[Any]:
    if pc.all(pc.match_substring_regex(ids, r"^(0|-?[1-9][0-9]*)$")).as_py():
        try:
            integers: NDArray[Any] = ids.cast(pa.int64()).to_numpy()
            return integers
        except pa.ArrowInvalid:
            pass  # too long for 64 bits
    return _objects(ids)


# Parquet


def _write_parquet(embedding: Embedding, stream: BinaryIO) -> None:
    ids = pa.array(embedding.nodes, pa.large_string() if embedding.nodes.dtype == object else pa.int64())
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(embedding.vectors.reshape(-1)), embedding.dim)
    document = json.dumps({"version": _VERSION, "provenance": embedding.provenance})
    table = pa.table({"id": ids, "vector": vectors}).replace_schema_metadata({_KEY: document})
    # Neither dictionaries nor compression: values that are all different gain nothing and take time.
    pq.write_table(table, stream, use_dictionary=False, compression="none", write_page_checksum=True)


def _read_parquet(path: Path) -> Fields:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        names = file.schema_arrow.names
        if "id" not in names or "vector" not in names:
            raise FileFormatError(path, f"columns 'id' and 'vector' are needed, there are {names[:9]}")
        table = file.read(columns=["id", "vector"])
        metadata = file.schema_arrow.metadata or {}
    ids, vectors = table["id"].combine_chunks(), table["vector"].combine_chunks()
    if not any(test(ids.type) for test in (types.is_integer, types.is_string, types.is_large_string)):
        raise FileFormatError(path, f"column 'id' should hold integers or strings, it holds {ids.type}")
    if not any(test(vectors.type) for test in (types.is_fixed_size_list, types.is_list, types.is_large_list)):
        raise FileFormatError(path, f"column 'vector' should hold lists of numbers, it holds {vectors.type}")
    if not len(ids) or ids.null_count or vectors.null_count:
        raise FileFormatError(path, "no rows, or rows without id or vector")
    # Data-frame libraries make lists of any size of what we wrote: still good if all have one length.
    dim = len(vectors[0])
    if pc.any(pc.not_equal(pc.list_value_length(vectors), dim)).as_py():
        raise FileFormatError(path, "the vectors have different lengths")
    values = vectors.flatten()
    if values.null_count:
        raise FileFormatError(path, "a value is missing in column 'vector'")
    document = _document(path, metadata[_KEY.encode()].decode()) if _KEY.encode() in metadata else {}
    return {
        "vectors": values.to_numpy(zero_copy_only=False, writable=True).reshape(len(ids), dim),
        "nodes": ids.to_numpy() if types.is_integer(ids.type) else _objects(ids),
        "provenance": document.get("provenance", {}),
    }


# Text: csv and word2vec


def _write_rows(stream: BinaryIO, ids: list[str], vectors: NDArray[np.float32], delimiter: str) -> None:
    options = pacsv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    names = [str(column) for column in range(vectors.shape[1])]
    n_rows = max(1, 2**21 // len(names))  # about 25 MB of text at a time
    joint = delimiter.encode()
    for start in range(0, len(ids), n_rows):
        # pyarrow writes the shortest text that reads back as the same float32.
        columns = np.ascontiguousarray(vectors[start : start + n_rows].T)
        sink = pa.BufferOutputStream()
        pacsv.write_csv(pa.table([pa.array(column) for column in columns], names=names), sink, options)
        rows = sink.getvalue().to_pybytes().split(b"\n")
        heads = (node.encode() for node in ids[start : start + n_rows])
        stream.writelines([head + joint + row + b"\n" for head, row in zip(heads, rows, strict=False)])


def _write_csv(embedding: Embedding, stream: BinaryIO) -> None:
    stream.write(",".join(["id", *map(str, range(embedding.dim))]).encode() + b"\n")
    needs_quotes = re.compile(r'[",\r\n]|^\s|\s$|^$')
    ids = [
        '"' + node.replace('"', '""') + '"' if needs_quotes.search(node) else node
        for node in map(str, embedding.nodes.tolist())
    ]
    _write_rows(stream, ids, embedding.vectors, ",")


def _write_word2vec(embedding: Embedding, stream: BinaryIO) -> None:
    stream.write(f"{len(embedding)} {embedding.dim}\n".encode())
    _write_rows(stream, list(map(str, embedding.nodes.tolist())), embedding.vectors, " ")


def _read_csv(path: Path) -> Fields:
    with open(path, "rb") as stream:
        header = stream.readline().removeprefix(b"\xef\xbb\xbf").strip().replace(b'"', b"").split(b",")
    dim = len(header) - 1
    if dim < 1 or header != [b"id", *(b"%d" % column for column in range(dim))]:
        raise FileFormatError(path, "the header should be id,0,1,…", line=1, text=_shown(b",".join(header)))
    return _read_rows(path, dim, ",")


def _read_word2vec(path: Path) -> Fields:
    with open(path, "rb") as stream:
        header, row = stream.readline(100), stream.readline()
    found = re.fullmatch(rb"(?:\xef\xbb\xbf)?([0-9]{1,18}) ([0-9]{1,18})\s*", header)
    if found is None:
        raise FileFormatError(path, "the first line should be `rows columns`", line=1, text=_shown(header))
    n_rows, dim = int(found[1]), int(found[2])
    # Before anything of that size is made. The original word2vec ends its lines with a space.
    fields = row.rstrip(b"\r\n").removesuffix(b" ").count(b" ")
    if fields != dim or dim < 1:
        raise FileFormatError(path, f"{dim} values should follow the id, there are {fields}", line=2)
    result = _read_rows(path, dim, " ", trailing=row.rstrip(b"\r\n").endswith(b" "))
    if len(result["nodes"]) != n_rows:
        raise FileFormatError(path, f"{n_rows} rows are announced, there are {len(result['nodes'])}", line=1)
    return result


def _read_rows(path: Path, dim: int, delimiter: str, trailing: bool = False) -> Fields:
    """Read all lines but the first; `trailing`: each ends with a delimiter."""
    with open(path, "rb") as stream:
        stream.seek(-1, os.SEEK_END)
        if stream.read() not in (b"\n", b"\r"):
            raise FileFormatError(path, "the last line has no end: cut short (or add a line break)")
    names = ["id", *map(str, range(dim))]
    quote = '"' if delimiter == "," else False
    block_size = 2**22 + 64 * dim  # a row must fit into a block
    try:
        table = pacsv.read_csv(
            path,
            pacsv.ReadOptions(skip_rows=1, column_names=names + [""] * trailing, block_size=block_size),
            pacsv.ParseOptions(delimiter=delimiter, quote_char=quote, newlines_in_values=delimiter == ","),
            pacsv.ConvertOptions(
                column_types={"id": pa.string(), **dict.fromkeys(names[1:], pa.float32())},
                include_columns=names,
                null_values=[],
            ),
        )
    except pa.ArrowInvalid as error:
        _blame_line(path, dim, delimiter, trailing, error)
    vectors = np.empty((len(table), dim), dtype=np.float32)
    for column, name in enumerate(names[1:]):
        vectors[:, column] = table[name].to_numpy()
    if not np.isfinite(vectors).all():
        _blame_line(path, dim, delimiter, trailing, ValueError("a value is not finite"))
    return {"vectors": vectors, "nodes": _integers_or_strings(table["id"].cast(pa.large_string()))}


def _blame_line(path: Path, dim: int, delimiter: str, trailing: bool, error: Exception) -> NoReturn:
    """Find the line that `error` is about, slowly: pyarrow does not always tell."""
    number = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
    largest = float(np.finfo(np.float32).max)
    # A csv.Error (a field too long for it) only means that the line stays unknown.
    with open(path, encoding="utf-8", errors="replace", newline="") as stream, suppress(csv.Error):
        stream.readline()
        if delimiter == ",":
            reader = csv.reader(stream)
        else:
            reader = csv.reader(stream, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        for row in filter(None, reader):
            line = reader.line_num + 1
            values = row[1 : len(row) - trailing]
            if len(values) != dim:
                raise FileFormatError(
                    path, f"{dim} values should follow the id, there are {len(values)}", line=line
                ) from error
            for text in values:
                if not number.fullmatch(text) or not abs(float(text)) <= largest:
                    raise FileFormatError(path, "not a finite number", line=line, text=text) from error
    raise error


def _shown(text: bytes) -> str:
    return text.strip()[:60].decode(errors="replace")


FORMATS: dict[str, tuple[Callable[[Embedding, BinaryIO], None], Callable[[Path], Fields]]] = {
    ".safetensors": (_write_safetensors, _read_safetensors),
    ".npz": (_write_npz, _read_npz),
    ".parquet": (_write_parquet, _read_parquet),
    ".npy": (_write_npy, _read_npy),
    ".csv": (_write_csv, _read_csv),
    ".emb": (_write_word2vec, _read_word2vec),
    ".txt": (_write_word2vec, _read_word2vec),
}
