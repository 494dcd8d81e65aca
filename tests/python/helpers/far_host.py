"""Hosts of their own for helpers: network namespaces of this machine, whose links can be slow, lossy, or cut.

Each is joined to the namespace of the caller by two devices. The kernel limits the rate (`tc`, tbf), drops packets and
resets connections (`nft`). Delays are made by a thread that passes packets on, since the kernels of many virtual
machines are without netem.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import select
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress

from headrace._helpers.connection import TOKEN

PORT = 9917
_BLOCKS = 1 << 14  # of four addresses each, in 198.18.0.0/16, which is for tests of networks
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_PACKET = 9000  # bytes, at most, of a network that delays


def call(*command: str) -> None:
    """Runs a command. Raises RuntimeError with what it says if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")


def why_none() -> str:
    """Returns why this process can make no hosts; "": it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "the program ip is not installed"
    name = f"headrace-{os.getpid()}-try"
    try:
        call("ip", "netns", "add", name)
        call("ip", "-n", name, "link", "add", "headrace0", "type", "veth", "peer", "name", "headrace1")
    except RuntimeError as error:
        return f"no network namespaces here: {error}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return ""


class FarHost:
    """A network namespace with a helper in it, which `close` ends and removes.

    Args:
        number: of the host, other than those of this process's other ones: 0 to 7.
        delay_s: how long each packet travels, in each direction.
    """

    def __init__(self, number: int, delay_s: float = 0.0) -> None:
        assert 0 <= number < 8
        name = f"{os.getpid()}-{number}"
        self._name, self._near, self._far = f"headrace-{name}", f"hr{name}n", f"hr{name}f"
        block = (8 * os.getpid() + number) % _BLOCKS * 4
        near, far = (f"198.18.{(block + i) >> 8}.{(block + i) & 255}" for i in (1, 2))
        self._host = far
        self._process: subprocess.Popen[str] | None = None
        self._relay: _Relay | None = None
        call("ip", "netns", "add", self._name)
        try:
            if delay_s:
                self._relay = _Relay(self._near, self._far, delay_s)
            else:
                call("ip", "link", "add", self._near, "type", "veth", "peer", "name", self._far)
            call("ip", "link", "set", self._far, "netns", self._name)
            call("ip", "address", "add", f"{near}/30", "dev", self._near)
            call("ip", "link", "set", self._near, "up")
            self.run("ip", "address", "add", f"{far}/30", "dev", self._far)
            self.run("ip", "link", "set", self._far, "up")
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """Of its helper, as a loader takes it."""
        return f"{self._host}:{PORT}"

    def run(self, *command: str) -> None:
        """Runs a command on this host."""
        call("ip", "netns", "exec", self._name, *command)

    def start(self, threads: int = 1) -> None:
        """Starts its helper, and waits until it serves. The secret is that of this process, which is made if needed."""
        os.environ.setdefault(TOKEN, secrets.token_hex(8))
        options = ["--host", self._host, "--port", str(PORT), "--threads", str(threads)]
        command = ["ip", "netns", "exec", self._name, sys.executable, "-m", "headrace", "serve", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert f" at {self._host}:" in line, line

    def send_signal(self, number: signal.Signals) -> None:
        """Stops, continues or ends its helper; one that is killed is waited for."""
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            with self._process:
                pass
            self._process = None

    def limit(self, rate: str) -> None:
        """Limits what both ends send to a rate such as ``"100mbit"``."""
        shape = ["root", "tbf", "rate", rate, "burst", "64k", "latency", "100ms"]
        call("tc", "qdisc", "replace", "dev", self._near, *shape)
        self.run("tc", "qdisc", "replace", "dev", self._far, *shape)

    def drop(self, share: float) -> None:
        """Loses this share of the packets, in both directions."""
        for device, run in ((self._near, call), (self._far, self.run)):  # a packet is what a cable carries, not 64 KB
            run("ip", "link", "set", device, "gso_max_segs", "1")
        self._filter(f"numgen random mod 10000 < {round(1e4 * share)} drop")

    def reset(self, share: float) -> None:
        """Answers this share of the packets by the end of their connection."""
        self._filter(f"meta l4proto tcp numgen random mod 100000 < {round(1e5 * share)} reject with tcp reset")

    def _filter(self, rule: str) -> None:
        self.run("nft", "add table inet faults")
        for hook in ("input", "output"):
            self.run("nft", f"add chain inet faults {hook} {{ type filter hook {hook} priority 0; }}")
            self.run("nft", f"add rule inet faults {hook} {rule}")

    def cut(self) -> None:
        """Takes the link down: what is sent is lost, and neither end is notified."""
        self.run("ip", "link", "set", self._far, "down")

    def mend(self) -> None:
        """Takes the link up again."""
        self.run("ip", "link", "set", self._far, "up")

    def close(self) -> None:
        """Kills the helper, and removes the namespace with its devices."""
        if self._process is not None:
            self.send_signal(signal.SIGKILL)
        if self._relay is not None:
            self._relay.close()
        for command in (["netns", "del", self._name], ["link", "del", self._near]):
            subprocess.run(["ip", *command], capture_output=True)


class _Relay:
    """Two devices, of which each gets the packets that the other one sends, later."""

    def __init__(self, near: str, far: str, delay_s: float) -> None:
        self._delay, self._ended = delay_s, threading.Event()
        self._ends = [_device(near), _device(far)]
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        for name in (near, far):
            call("ip", "link", "set", name, "mtu", str(_PACKET))
        self._thread.start()

    def _pass_on(self) -> None:
        waiting: deque[tuple[float, int, bytes]] = deque()  # when and where a packet arrives
        while not self._ended.is_set():
            pause = waiting[0][0] - time.monotonic() if waiting else 0.05
            for end in select.select(self._ends, [], [], min(max(pause, 0.0), 0.05))[0]:
                with suppress(OSError):  # the device is down
                    packet = os.read(end, 1 << 16)
                    waiting.append((time.monotonic() + self._delay, self._ends[end == self._ends[0]], packet))
            while waiting and waiting[0][0] <= time.monotonic():
                with suppress(OSError):
                    os.write(*waiting.popleft()[1:])

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        for end in self._ends:
            os.close(end)


def _device(name: str) -> int:
    """Makes a device whose packets this process reads and writes."""
    made = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(made, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    except BaseException:
        os.close(made)
        raise
    return made
