"""What a program or library needs to be loaded, read from its ELF headers.

Purpose: the same answer as `ldd` without running anything and without an `ldd`. Trade-off: 64-bit little-endian files
only, which every platform of the image has.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS, _RPATH, _RUNPATH = 1, 5, 15, 29
_HEADER = b"\x7fELF\x02\x01"


@dataclass(frozen=True, slots=True)
class Elf:
    """The loader that a program names (None for a library), the libraries it needs, and where it looks first."""

    interpreter: str | None
    needed: tuple[str, ...]
    search: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def read(path: Path) -> Elf | None:
    """Read the headers of a file; None when it is no such file."""
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            return None
    data = path.read_bytes()
    segments = _segments(data)
    dynamic = _dynamic(data, segments)
    strings = next((_offset(value, segments) for tag, value in dynamic if tag == _STRINGS), 0)
    search = [_text(data, strings + value) for tag, value in dynamic if tag in {_RPATH, _RUNPATH}]
    return Elf(
        interpreter=next((_text(data, one.offset) for one in segments if one.kind == _INTERPRETER), None),
        needed=tuple(_text(data, strings + value) for tag, value in dynamic if tag == _NEEDED),
        search=tuple(folder for folders in search for folder in folders.split(":") if folder),
    )


def _segments(data: bytes) -> list[_Segment]:
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = []
    for index in range(count):
        kind, _flags, offset, address, _physical, length = struct.unpack_from("<IIQQQQ", data, table + index * size)
        found.append(_Segment(kind, offset, address, length))
    return found


def _dynamic(data: bytes, segments: list[_Segment]) -> list[tuple[int, int]]:
    for segment in segments:
        if segment.kind == _DYNAMIC:
            return list(struct.iter_unpack("<qQ", data[segment.offset : segment.offset + segment.size // 16 * 16]))
    return []


def _offset(address: int, segments: list[_Segment]) -> int:
    for segment in segments:
        if segment.kind == _LOAD and segment.address <= address < segment.address + segment.size:
            return segment.offset + address - segment.address
    return 0


def _text(data: bytes, begin: int) -> str:
    return data[begin : data.index(b"\0", begin)].decode()
