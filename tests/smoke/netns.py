# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces without names, and links in them.

A namespace exists as long as something holds it: a file descriptor of this process, or a child that runs in it. So it
ends with the last of them, however they end, and its interfaces end with it.
"""
from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

CLONE_NEWNET = 0x40000000
THIS_THREAD = "/proc/thread-self/ns/net"
KILLED_WITH_US = ("setpriv", "--pdeathsig", "KILL")  # children end with a runner that is killed

SIOCETHTOOL = 0x8946
# linux/ethtool.h: features by which a kernel leaves work to a device
OFFLOADS = {"ETHTOOL_STXCSUM": 0x17, "ETHTOOL_SSG": 0x19, "ETHTOOL_STSO": 0x1F, "ETHTOOL_SGSO": 0x24,
            "ETHTOOL_SGRO": 0x2C}

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(answer: int, what: str) -> None:
    if answer != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def run(*command: str) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        raise OSError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


class Namespace:
    """A network namespace with loopback up and IPv6 off: it sends nothing unless a test does."""

    def __init__(self) -> None:
        with _back_home():
            _checked(_libc.unshare(CLONE_NEWNET), "unshare(CLONE_NEWNET)")
            self._descriptor = os.open(THIS_THREAD, os.O_RDONLY | os.O_CLOEXEC)
            for scope in ("all", "default"):
                with contextlib.suppress(FileNotFoundError):  # a kernel without IPv6
                    Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
            run("ip", "link", "set", "lo", "up")

    @property
    def path(self) -> str:
        """For `ip link set … netns PATH`."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    @property
    def inode(self) -> int:
        return os.fstat(self._descriptor).st_ino

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets and children that this thread makes inside the block belong to the namespace, and stay there."""
        with _back_home():
            _checked(_libc.setns(self._descriptor, CLONE_NEWNET), "setns")
            yield

    def ip(self, arguments: str) -> None:
        """Runs `ip ARGUMENTS` inside; no argument may contain a space."""
        with self.entered():
            run("ip", *arguments.split())

    def interfaces(self) -> list[str]:
        with self.entered():
            return sorted(name for _, name in socket.if_nameindex())

    def no_offloads(self, interface: str) -> None:
        """Turns offloads off. EOPNOTSUPP means that the interface does not have one."""
        with self.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for command in OFFLOADS.values():
                value = array.array("B", struct.pack("II", command, 0))
                request = struct.pack("16sP16x", interface.encode(), value.buffer_info()[0])
                with contextlib.suppress(OSError):
                    fcntl.ioctl(control, SIOCETHTOOL, request)

    def close(self) -> None:
        os.close(self._descriptor)


@contextlib.contextmanager
def _back_home() -> Iterator[None]:
    home = os.open(THIS_THREAD, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        _checked(_libc.setns(home, CLONE_NEWNET), "setns")
        os.close(home)


def veth(switch: Namespace, port: str, host: Namespace, name: str, mtu: int = 1500) -> None:
    """A cable: `port` in the switch's namespace, `name` in the host's, both up, without offloads."""
    switch.ip(f"link add {port} mtu {mtu} type veth peer name {name} netns {host.path} mtu {mtu}")
    for namespace, interface in ((switch, port), (host, name)):
        namespace.no_offloads(interface)
        namespace.ip(f"link set {interface} up")
