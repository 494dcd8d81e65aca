"""libtiff's lines on descriptor 2 are counted while files are checked, and no other line is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, features

from headrace._cli.console import libtiff_messages
from support import WATCHDOG_S

pytestmark = pytest.mark.processes

BEGIN = """
import os, subprocess, sys, threading
from headrace._cli.console.libtiff_messages import count_libtiff_messages
def c(text):
    os.write(2, text)
"""


def run(code: str, *options: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs code in a process of its own: the tests have `faulthandler` enabled, with which nothing is redirected."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONFAULTHANDLER"}
    return subprocess.run(
        [sys.executable, *options, "-c", BEGIN + code],
        capture_output=True,
        timeout=WATCHDOG_S,
        env={**usual, **environment},
    )


def noisy_tiff(path: Path) -> None:
    """Writes a file about which libtiff complains."""
    if not features.check("libtiff"):
        pytest.skip("this Pillow was built without libtiff")
    values = random.Random(1).randbytes(64 * 64 * 3)
    file = BytesIO()
    Image.frombytes("RGB", (64, 64), values).convert("1").save(file, "TIFF", compression="group4")
    data = bytearray(file.getvalue())
    for i in range(20, len(data) - 300, 7):
        data[i] ^= 0x5A
    path.write_bytes(data)


@pytest.mark.parametrize("command", [["doctor"], ["verify", "--recipe", "eval"]])
def test_commands_count_the_lines(command: list[str], tmp_path: Path) -> None:
    noisy_tiff(tmp_path / "noisy.tif")
    before = run(f"from PIL import Image\nImage.open({str(tmp_path / 'noisy.tif')!r}).load()")
    assert b"Fax4Decode: " in before.stderr  # what libtiff does by itself
    name, *options = command
    code = f"from headrace._cli.main import main\nprint(main({[name, str(tmp_path), *options]!r}))"
    done = run(code)
    assert done.stderr == b""
    assert b"of libtiff's messages not shown" in done.stdout


def test_other_lines_are_printed_again() -> None:
    done = run(
        "with count_libtiff_messages() as found:\n"
        "    c(b'TIFFFetchNormalTag: Defined set_get_field_type of custom tag 65000.\\n')\n"
        "    c(b'a warning of another library\\n')\n"
        "    c(b'ZIPDecode: Decoding error at scanline 0.\\nhalf a line')\n"
        "    c(b' and its end, \\xff\\n')\n"
        "    assert found.lines == 0\n"
        "c(b'after\\n')\n"
        "print(found.lines, found)"
    )
    assert done.stderr == b"a warning of another library\nhalf a line and its end, \xff\nafter\n"
    assert done.stdout == b"2 2 lines of libtiff's messages not shown\n"


def orders(threads: list[list[bytes]]) -> Iterator[list[bytes]]:
    """Every order in which threads may write their pieces."""
    if not any(threads):
        yield []
    for i, (first, *later) in ((i, pieces) for i, pieces in enumerate(threads) if pieces):
        for rest in orders([*threads[:i], later, *threads[i + 1 :]]):
            yield [first, *rest]


def test_every_order_of_three_messages_by_two_threads() -> None:
    bad = [b"Fax4Decode: ", b"Bad code word at line 0 of strip 0 (x 60)", b".\n"]
    zip_error = [b"ZIPDecode: ", b"Decoding error at scanline 0", b".\n"]
    all_orders = list(orders([bad + zip_error, bad]))
    assert len(all_orders) == 84
    for pieces in all_orders:
        with tempfile.TemporaryFile() as kept, tempfile.TemporaryFile() as screen:
            kept.write(b"".join(pieces))
            assert libtiff_messages._print_other_lines(kept, screen.fileno()) == 3, pieces
            screen.seek(0)
            assert screen.read() == b"", pieces


def test_messages_of_threads_that_interrupt_each_other() -> None:
    done = run(
        "with count_libtiff_messages() as found:\n"
        "    c(b'Fax4Decode: Bad code word at line 2 of strip 0.\\n')\n"
        "    c(b'Fax4Decode: ZIPDecode: Decoding error at scanline 0.\\n')\n"
        "    c(b'Bad code word at line 13 of strip 4.\\n')\n"
        "    c(b'Bad weather.\\n')\n"
        "print(found.lines)"
    )
    assert (done.stdout, done.stderr) == (b"3\n", b"Bad weather.\n")


def test_a_message_that_another_library_interrupts() -> None:
    done = run(
        "with count_libtiff_messages() as found:\n"
        "    c(b'Fax4Decode: '); c(b'a warning\\n'); c(b'Bad code word at line 2'); c(b'.\\n'); c(b'Bad weather.\\n')\n"
        "print(found.lines)"
    )
    assert (done.stdout, done.stderr) == (b"2\n", b"Bad weather.\n")


def test_pythons_own_messages_appear_at_once() -> None:
    done = run(
        "with count_libtiff_messages():\n"
        "    c(b'second\\n')\n"
        "    print('first', file=sys.stderr)\n"
        "    assert sys.stderr.fileno() != 2\n"
        "assert sys.stderr.fileno() == 2"
    )
    assert done.stderr == b"first\nsecond\n"


def test_threads_and_processes() -> None:
    done = run(
        "with count_libtiff_messages() as found:\n"
        "    one = threading.Thread(target=c, args=(b'tempfile.tif: Using code not yet in table.\\n',))\n"
        "    one.start(); one.join()\n"
        "    subprocess.run(['sh', '-c', 'echo _TIFFVSetField: Bad value. >&2; echo other >&2'])\n"
        "    if (child := os.fork()) == 0:\n"
        "        c(b'LZWDecode: Not enough data.\\n')\n"
        "        print('child', file=sys.stderr)\n"
        "        sys.stderr.flush()\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "print(found.lines)"
    )
    assert (done.stdout, done.stderr) == (b"3\n", b"child\nother\n")


@pytest.mark.parametrize("how", ["raise OSError('of the work')", "raise KeyboardInterrupt"])
def test_an_error_keeps_what_was_said(how: str) -> None:
    done = run(
        f"try:\n    with count_libtiff_messages():\n        c(b'said\\n')\n        {how}\n"
        "except BaseException as e: print(e)"
    )
    assert done.stderr == b"said\n"
    assert done.stdout in (b"of the work\n", b"\n")


def test_a_handler_made_meanwhile_goes_on() -> None:
    done = run(
        "import logging\n"
        "with count_libtiff_messages():\n"
        "    logging.basicConfig()\n"
        "    logging.warning('within')\n"
        "logging.warning('after')",
        "-Werror",
    )
    assert done.stderr == b"WARNING:root:within\nWARNING:root:after\n"


LINE = "with count_libtiff_messages() as found:\n    c(b'TIFFOpen: no.\\n')\nprint(found.lines)"


def test_nothing_is_redirected_where_a_crash_would_be_lost() -> None:
    done = run(LINE, "-Xfaulthandler")
    assert (done.stdout, done.stderr) == (b"0\n", b"TIFFOpen: no.\n")


def test_without_a_temporary_folder_or_a_standard_error(tmp_path: Path) -> None:
    code = "import tempfile\ntempfile.TemporaryFile = lambda: (_ for _ in ()).throw(FileNotFoundError())\n"
    done = run(code + LINE)
    assert (done.stdout, done.stderr) == (b"0\n", b"TIFFOpen: no.\n")
    line = f'{sys.executable} -c "$CODE" 2>&-'
    code = BEGIN + "with count_libtiff_messages() as found: pass\nprint(found.lines)"
    closed = subprocess.run(
        ["sh", "-c", line], capture_output=True, timeout=WATCHDOG_S, env={**os.environ, "CODE": code}
    )
    assert (closed.returncode, closed.stdout) == (0, b"0\n")
