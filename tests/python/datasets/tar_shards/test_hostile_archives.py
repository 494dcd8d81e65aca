"""Archives that are false or are made to exhaust a reader: one clear error, or WebDataset's samples."""

from __future__ import annotations

import io
import os
import random
import resource
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

import headrace
from headrace import DataLoader, TarShards
from headrace.datasets.tar_shards.tar_index import index_of
from support import pictures, train

END = bytes(1024)


def header(
    name: str,
    size: int = 0,
    kind: bytes = tarfile.REGTYPE,
    form: Literal[0, 1, 2] = tarfile.USTAR_FORMAT,
    **fields: str,
) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(form)


def member(name: str, data: bytes = b"", **options: object) -> bytes:
    return header(name, len(data), **options) + data + bytes(-len(data) % 512)  # type: ignore[arg-type]


def pax(*records: tuple[str, str], kind: bytes = tarfile.XHDTYPE) -> bytes:
    text = b""
    for key, value in records:
        body = f" {key}={value}\n".encode()
        size = len(body) + 1
        while len(str(size)) + len(body) != size:
            size = len(str(size)) + len(body)
        text += str(size).encode() + body
    return member("pax", text, kind=kind)


def patched(block: bytes, at: int, field: bytes) -> bytes:
    """A header with another field, and the checksum of it."""
    made = bytearray(block)
    made[at : at + len(field)] = field
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


HUGE = b"\x80\0\0\0" + (1 << 53).to_bytes(8, "big")  # base 256
REFUSED: dict[str, tuple[bytes, str]] = {
    "a size of exabytes": (
        patched(header("a.jpg"), 124, HUGE),
        "at byte 0: 'a.jpg' has 9007199254740992 bytes, but only",
    ),
    "a size beyond 64 bits": (patched(header("a.jpg"), 124, b"\xff" * 12), "size in a header is no number"),
    "a size that is no number": (patched(header("a.jpg"), 124, b"9" * 11 + b"\0"), "size in a header is no number"),
    "a size of PAX beyond the end": (
        pax(("size", str(1 << 50))) + member("a.jpg"),
        "'a.jpg' has 1125899906842624 bytes",
    ),
    "a size of PAX that is no number": (pax(("size", "-1")) + member("a.jpg"), "size in a PAX header is no number"),
    "a long name of gigabytes": (header("x", 1 << 31, kind=tarfile.GNUTYPE_LONGNAME), "bytes, but only"),
    "a long name of megabytes": (member("x", b"n" * (2 << 20), kind=tarfile.GNUTYPE_LONGNAME), "have 2097152 bytes"),
    "PAX records of megabytes": (member("x", b"1" * (2 << 20), kind=tarfile.XHDTYPE), "have 2097152 bytes"),
    "a PAX record longer than its header": (
        member("x", b"99 path=a.jpg\n", kind=tarfile.XHDTYPE),
        "PAX record is damaged",
    ),
    "a PAX record without a value": (member("x", b"7 path\n", kind=tarfile.XHDTYPE), "PAX record is damaged"),
    "a path of PAX for all": (
        pax(("path", "a.jpg"), kind=tarfile.XGLTYPE) + member("b.jpg"),
        "gives all members one path",
    ),
    "a sparse file of GNU": (header("a.jpg", kind=tarfile.GNUTYPE_SPARSE, form=tarfile.GNU_FORMAT), "sparse"),
    "a sparse file of PAX": (pax(("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0")) + member("a.jpg"), "sparse"),
    "a file of several volumes": (header("a.jpg", kind=b"M"), "continues a file of another volume"),
    "a long name without a file": (member("x", b"name", kind=tarfile.GNUTYPE_LONGNAME), "followed by no file"),
    "a climbing name": (member("a/../../etc/x.jpg"), "has '..' in its name"),
    "a climbing name of GNU": (member("x", b"../x.jpg\0", kind=tarfile.GNUTYPE_LONGNAME) + member("b.jpg"), "'..'"),
    "a climbing name of PAX": (pax(("path", "../x.jpg")) + member("b.jpg"), "has '..' in its name"),
    "a zero byte in a name of PAX": (pax(("path", "a\0b.jpg")) + member("b.jpg"), "has a zero byte"),
    "a name twice": (member("a.jpg") + member("a.jpg"), "repeats the extension 'jpg' of its sample 'a'"),
    "a name in two cases": (member("a.jpg") + member("a.JPG"), "repeats the extension 'jpg'"),
    "a wrong checksum": (member("a.jpg") + member("b.jpg")[:-300] + b"!" + member("b.jpg")[-299:], "checksum"),
    "a bomb of gzip": (b"\x1f\x8b" + bytes(600), "compressed (gzip)"),
    "a bomb of zstd": (b"\x28\xb5\x2f\xfd" + bytes(600), "compressed (zstd)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    data, message = REFUSED[name]
    path = tmp_path / "bad.tar"
    path.write_bytes(data + END)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError) as caught:
        TarShards(path, label=None)
    assert message in str(caught.value) and str(caught.value).isprintable() and "bad.tar: at byte" in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KB: sizes are not believed
    assert [one.name for one in tmp_path.iterdir()] == ["bad.tar"]  # nothing was written, nor unpacked


def link(kind: bytes) -> bytes:
    return header("b.jpg", kind=kind, linkname="/etc/passwd")


TAKEN: dict[str, tuple[bytes, list[str]]] = {
    "one key in two places": (member("a.jpg") + member("b.jpg") + member("a.jpg"), ["a", "b", "a"]),
    "an absolute name": (member("/etc/a.jpg"), ["/etc/a"]),
    "dots that climb nowhere": (member("./x..y/..a/a.jpg") + member("a..b/c.jpg"), ["./x..y/..a/a", "a..b/c"]),
    "links": (link(tarfile.SYMTYPE) + link(tarfile.LNKTYPE) + member("a.jpg"), ["a"]),
    "devices and pipes": (
        b"".join(map(link, (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE))) + member("a.jpg"),
        ["a"],
    ),
    "a link with a size": (patched(link(tarfile.SYMTYPE), 124, b"00000001000\0") + member("a.jpg"), ["a"]),
    "notes": (member("__n__/a.jpg") + member("__n__") + member("a.jpg"), ["a"]),
    "a long name that is taken back": (
        member("x", b"long/" * 60 + b"a.jpg\0", kind=tarfile.GNUTYPE_LONGNAME) + member("b.jpg") + member("c.jpg"),
        ["long/" * 60 + "a", "c"],
    ),
    "bytes behind the end": (member("a.jpg") + END + member("b.jpg"), ["a"]),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken(tmp_path: Path, name: str) -> None:
    data, keys = TAKEN[name]
    (tmp_path / "odd.tar").write_bytes(data + END)
    assert TarShards(tmp_path / "odd.tar", label=None).keys[:] == keys


def test_names_of_any_bytes(tmp_path: Path) -> None:
    names = [b"\xff\xfe.jpg", b"new\nline.jpg", "é\u202e.jpg".encode(), b" .jpg", b"%s{}.jpg"]
    (tmp_path / "n.tar").write_bytes(b"".join(odd(name) for name in names) + END)
    data = TarShards(tmp_path / "n.tar", label=None, transform=train(8))
    assert data.keys[:] == [os.fsdecode(name[:-4]) for name in names]
    with pytest.raises(headrace.SampleError, match=r"n\.tar:"):
        list(DataLoader(data, num_workers=1))


def odd(name: bytes) -> bytes:
    return patched(header("a.jpg", 1), 0, name.ljust(100, b"\0")) + b"x" + bytes(511)


def test_missing_members(tmp_path: Path) -> None:
    parts = {"a": ("jpg", "cls"), "b": ("cls",), "c": ("jpg",), "d": (), "e": ("cls", "jpg")}
    data = b"".join(member(f"{key}.{one}", b"7") for key, some in parts.items() for one in (*some, "txt"))
    (tmp_path / "m.tar").write_bytes(data + END)
    with pytest.raises(ValueError, match=r"m\.tar: 2 of 5 samples have no jpg.*first 'b'"):
        TarShards(tmp_path / "m.tar")
    with pytest.raises(ValueError, match=r"m\.tar: 2 of 5 samples have no cls, first 'c'"):
        TarShards(tmp_path / "m.tar", image="txt")
    kept = TarShards(tmp_path / "m.tar", missing="skip")
    assert kept.keys[:] == ["a", "e"] and [kept.target(i) for i in (0, 1)] == [7, 7]


def test_a_bomb_of_pixels_in_a_shard_is_an_error_of_its_sample(tmp_path: Path) -> None:
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1 << 20, 1 << 20, 8, 2, 0, 0, 0))
    bomb = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(999))) + chunk(b"IEND", b"")
    good = [member(f"{i}.jpg", data) for i, data in enumerate(pictures(3))]
    (tmp_path / "p.tar").write_bytes(b"".join(good) + member("bomb.png", bomb) + END)
    loader = DataLoader(
        TarShards(tmp_path / "p.tar", label=None, transform=train(8)), 4, num_workers=1, on_error="skip"
    )
    with pytest.warns(UserWarning, match="skipped"):
        (batch,) = list(loader)
    assert len(batch) == 3


def test_every_cut_and_any_byte(tmp_path: Path) -> None:
    """An error of the archive, or samples that are within it."""
    with tarfile.open(tmp_path / "whole.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for i in range(4):
            info = tarfile.TarInfo(f"{'long/' * 40 if i % 2 else ''}{i}.jpg")
            info.size = 300 * i
            tar.addfile(info, io.BytesIO(bytes(300 * i)))
    whole, path = (tmp_path / "whole.tar").read_bytes(), tmp_path / "x.tar"
    draw = random.Random(0)
    changes: list[Callable[[bytearray], bytes | bytearray]] = [lambda data: data[: draw.randrange(len(data))]]
    changes += [lambda data: data.replace(b"%d.jpg" % draw.randrange(4), draw.randbytes(5))]
    outcomes = set()
    for trial in range(300):
        data = bytearray(whole)
        if trial % 3 == 2:
            at = draw.randrange(0, len(data) - 512, 512)
            data[at : at + 512] = patched(bytes(data[at : at + 512]), draw.randrange(140), draw.randbytes(3))
        else:
            data = bytearray(changes[trial % 3](data))
        path.write_bytes(data)
        try:
            index = index_of(str(path), "")
        except ValueError as error:
            assert "x.tar: at byte" in str(error)
            outcomes.add("refused")
        else:
            assert (index.offset + index.length <= len(data)).all()
            outcomes.add("read")
    assert outcomes == {"refused", "read"}
