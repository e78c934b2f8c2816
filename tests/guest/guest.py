# SPDX-License-Identifier: BSD-3-Clause
"""One guest: a virtual machine on one TAP port, and commands in it.

Commands use virtio-serial channels, one command at a time on each, so that several can run in a guest. The channels are
socket pairs and leave nothing in the file system. The first channel is reserved for boot and for killing commands on the
others.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import secrets
import selectors
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from image import Image

CHANNELS = 8
MEMORY_MB = 256
BURST_BYTES = 8192  # of a rate-limited port: with less, a guest that was not scheduled would be slower
BOOT_TIMEOUT_S = 180.0  # 4 s on an idle machine; many guests on a loaded one take much longer
CPU = "max,-erms"  # with ERMS Linux copies by `rep movsb`, which the emulator does byte by byte
# A second CPU that is never added. With one possible CPU, QEMU's translator omits the guest's memory barriers, as if there
# were no I/O thread. Then driver and device sometimes miss each other's notification, and the guest never sends again.
ONE_CPU = "1,maxcpus=2"
OFFLOADS_OFF = ",".join(
    f"{offload}=off"
    for offload in ("csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo",
                    "host_tso4", "host_tso6", "host_ecn", "host_ufo", "mrg_rxbuf"))


class GuestError(Exception):
    """A guest did not do what it should. The text has its output."""


@dataclass(frozen=True)
class Identity:
    """The addresses of guest number `rank`."""

    rank: int

    @property
    def name(self) -> str:
        return f"guest{self.rank}"

    @property
    def ip(self) -> str:
        return f"10.77.0.{self.rank + 1}"

    @property
    def ip6(self) -> str:
        """Set after Guest.add_ip6."""
        return f"fd77::{self.rank + 1:x}"

    @property
    def mac(self) -> str:
        return f"52:54:00:00:00:{self.rank + 1:02x}"

    @property
    def tap(self) -> str:
        return f"tap{self.rank}"


@dataclass(frozen=True)
class Result:
    command: str
    status: int
    output: str  # standard output and error, as they came
    seconds: float

    @property
    def complaint(self) -> str:
        return f"`{self.command}` ended with status {self.status}:\n{self.output[-3000:]}"


@dataclass
class Channel:
    socket: socket.socket
    pending: bytes = b""
    ready: bool = False
    job: Job | None = None


@dataclass
class Job:
    """A command running in a guest. Written by the guest's reader thread, under the guest's lock."""

    guest: Guest
    number: int
    command: str
    mark: str = field(default_factory=lambda: f"weir-done-{secrets.token_hex(8)}")
    started: float = field(default_factory=time.monotonic)
    raw: bytes = b""
    status: int | None = None
    seconds: float = 0.0

    @property
    def output(self) -> str:
        return self.raw.decode(errors="replace").replace("\r\n", "\n")

    @property
    def is_running(self) -> bool:
        return self.status is None and self.guest.is_alive

    def wait(self, timeout: float = 120.0) -> Result:
        """Waits for the end of the command. After `timeout` seconds it is killed, and GuestError has its output."""
        if not self.guest.wait_until_true(lambda: self.status is not None, timeout):
            died = not self.guest.is_alive
            said = self._report("the guest died under" if died else f"not done after {timeout:.0f} s:")
            self.kill()
            self.guest.wait_until_true(lambda: self.status is not None, 30.0)  # its channel is free again
            raise GuestError(said)
        assert self.status is not None
        return Result(self.command, self.status, self.output, self.seconds)

    def wait_for(self, pattern: str, timeout: float = 60.0) -> re.Match[str]:
        """Waits until the output so far has a match of `pattern`, and returns it; GuestError when none comes."""
        def over() -> bool:
            return re.search(pattern, self.output) is not None or self.status is not None

        self.guest.wait_until_true(over, timeout)
        match = re.search(pattern, self.output)
        if match is None:
            raise GuestError(self._report(f"{pattern!r} never came from"))
        return match

    def kill(self, signal: str = "KILL") -> None:
        """Sends `signal` to the command and to all its children. No effect after its end."""
        if self.is_running:
            # A job that has not written its number yet is about to.
            file = f"/run/job.{self.number}"
            self.guest.control(f"until [ -s {file}.pid ] || [ ! -e {file} ]; do sleep 0.05; done; "
                               f"[ ! -s {file}.pid ] || kill -s {signal} -- -$(cat {file}.pid)")

    def _report(self, what: str) -> str:
        return f"{self.guest.who.name}: {what} `{self.command}`; it printed:\n{self.output[-3000:] or '(nothing)'}"


class Guest:
    """Start it from the main thread: the emulator is killed when the thread that started it ends."""

    def __init__(self, who: Identity, image: Image, namespace_prefix: Sequence[str], link_mtu: int, logs: Path) -> None:
        self.who = who
        self.console_log = logs / f"{who.name}-console.log"
        self._transcript = (logs / f"{who.name}-commands.log").open("w", buffering=1)
        self._changed = threading.Condition()
        self._jobs = 0
        self._has_discipline = False
        self._receives_through_ifb = False
        self._asks_nobody = False
        self._is_stopped = False
        pairs = [socket.socketpair() for _ in range(CHANNELS)]
        self._channels = [Channel(ours) for ours, _ in pairs]
        arguments = self._arguments(image, link_mtu, [theirs.fileno() for _, theirs in pairs])
        with (logs / f"{who.name}-qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*namespace_prefix, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno() for _, theirs in pairs], start_new_session=True)
        for _, theirs in pairs:
            theirs.close()
        self._reader = threading.Thread(target=self._read_channels, name=f"{who.name}-reader", daemon=True)
        self._reader.start()

    def _arguments(self, image: Image, link_mtu: int, channels: Sequence[int]) -> list[str]:
        settings = {"name": self.who.name, "address": f"{self.who.ip}/24", "mtu": link_mtu, "channels": CHANNELS}
        arguments = [
            "qemu-system-x86_64", "-name", self.who.name, "-machine", "q35", "-accel", "tcg,tb-size=128",
            "-cpu", CPU, "-smp", ONE_CPU, "-m", str(MEMORY_MB), "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-kernel", str(image.kernel), "-initrd", str(image.initramfs), "-append",
            " ".join(["console=ttyS0 quiet panic=-1 mitigations=off no_timer_check random.trust_cpu=on cryptomgr.notests=1",
                      *(f"weir.{key}={value}" for key, value in settings.items())]),
            "-serial", f"file:{self.console_log}",
            "-netdev", f"tap,id=net,ifname={self.who.tap},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=net,mac={self.who.mac},host_mtu={link_mtu},romfile=,{OFFLOADS_OFF}",
            "-device", f"virtio-serial-pci,max_ports={CHANNELS + 1}",
        ]
        for number, descriptor in enumerate(channels, start=1):
            arguments += ["-chardev", f"socket,id=channel{number},fd={descriptor}",
                          "-device", f"virtserialport,chardev=channel{number},nr={number},name=weir.{number}"]
        return arguments

    # -- life

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None and self._reader.is_alive()

    def wait_ready(self, timeout: float = BOOT_TIMEOUT_S) -> None:
        if not self.wait_until_true(lambda: all(channel.ready for channel in self._channels), timeout):
            raise GuestError(f"{self.who.name} was not up after {timeout:.0f} s; its console:\n{self.console_tail()}")

    def console_tail(self, characters: int = 2000) -> str:
        text = self.console_log.read_text(errors="replace") if self.console_log.exists() else ""
        emulator = self.console_log.with_name(f"{self.who.name}-qemu.log").read_text(errors="replace")
        return text[-characters:] + emulator[-characters:]

    def power_off(self) -> None:
        """Ends the machine at once, as a power failure does, and waits for its end. May be called twice."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for channel in self._channels:
            channel.socket.close()
        self._transcript.close()

    def stop(self) -> None:
        """Stops the whole machine, until resume() or reset(). It answers nothing; its clock goes on."""
        self._is_stopped = True
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._is_stopped = False
        self._process.send_signal(signal.SIGCONT)

    def add_ip6(self) -> int:
        """Gives the guest its IPv6 address, if it has none yet, and returns the index of the address's GID."""
        self.run(f"ip -6 address replace {self.who.ip6}/64 dev eth0 nodad")
        gid = ipaddress.IPv6Address(self.who.ip6).exploded
        table = "/sys/class/infiniband/rxe0/ports/1/gids"
        self.wait_until(f"grep -q {gid} {table}/*", 30.0)
        found = self.run(f"grep -l {gid} {table}/* | head -n 1").output
        return int(found.strip().rpartition("/")[2])

    # -- commands

    def run(self, command: str, timeout: float = 120.0, check: bool = True) -> Result:
        """Runs a shell command to its end. A status other than 0 is a GuestError, unless `check` is off."""
        result = self.start(command).wait(timeout)
        if check and result.status != 0:
            raise GuestError(f"{self.who.name}: {result.complaint}")
        return result

    def start(self, command: str) -> Job:
        """Starts a shell command in the background."""
        return self._start(command, self._channels[1:])

    def control(self, command: str) -> None:
        """Runs a short command on the first channel."""
        self._start(command, self._channels[:1]).wait(30.0)

    def wait_until(self, condition: str, timeout: float = 60.0) -> None:
        """Waits until the shell command `condition` succeeds in the guest."""
        self.run(f"until {condition}; do sleep 0.1; done", timeout)

    def rdma_counters(self) -> dict[str, int]:
        """What the soft-RoCE device has counted since boot: packets sent, retries, …"""
        said = self.run("cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep -H . *").output
        return {name: int(count) for name, count in (line.split(":") for line in said.split())}

    def wait_listening(self, tcp_port: int, timeout: float = 60.0) -> None:
        self.wait_until(f"grep -Eq ':{tcp_port:04X} [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6", timeout)

    def put(self, path: str, data: bytes) -> None:
        """Writes a file in the guest. Slow: for scripts and small data; programs belong in the image."""
        target = shlex.quote(path)
        self.run(f"> {target}")
        for start in range(0, len(data), 48000):
            piece = base64.b64encode(data[start:start + 48000]).decode()
            self.run(f"echo {piece} | base64 -d >> {target}")

    def get(self, path: str) -> bytes:
        return base64.b64decode(self.run(f"base64 {shlex.quote(path)}").output)

    def netem(self, settings: str) -> None:
        """Applies `settings` ("loss 2% delay 1ms") to all that the guest sends, until reset()."""
        self._queue_through(f"netem {settings}")

    def netem_both_ways(self, settings: str) -> None:
        """Applies `settings` to all that the guest sends and receives, as if both ends of the link had them."""
        self.netem(settings)
        self._receives_through_ifb = True
        self.run("ip link set ifb0 up; tc qdisc replace dev eth0 ingress && "
                 "tc filter replace dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0 && "
                 f"tc qdisc replace dev ifb0 root netem {settings}")

    def limit_rate(self, megabits: float) -> None:
        """Limits the guest's sending rate, Ethernet headers included, until reset(). Nothing is dropped."""
        self._queue_through(f"tbf rate {megabits}mbit burst {BURST_BYTES} limit 4mb")

    def ask_nobody(self, neighbours: Sequence[Identity]) -> None:
        """Fixes its neighbours' MAC addresses, so that there is no ARP, until reset()."""
        self._asks_nobody = True
        self.run(" && ".join(f"ip neigh replace {who.ip} lladdr {who.mac} nud permanent dev eth0"
                             for who in neighbours if who != self.who))

    def _queue_through(self, discipline: str) -> None:
        self._has_discipline = True
        self.run(f"tc qdisc replace dev eth0 root {discipline}")

    def reset(self) -> None:
        """Restores the network and ends all commands, as after boot."""
        if self._is_stopped:
            self.resume()
        for channel in self._channels[1:]:
            if (job := channel.job) is not None:
                job.kill()
                job.wait(30.0)
        if self._receives_through_ifb:
            self.run("tc qdisc del dev eth0 ingress; tc qdisc del dev ifb0 root")
            self._receives_through_ifb = False
        if self._asks_nobody:
            self.run("ip neigh flush dev eth0 nud permanent")
            self._asks_nobody = False
        if self._has_discipline:
            self.run("tc qdisc del dev eth0 root")
            self._has_discipline = False

    def wait_until_true(self, predicate: Callable[[], bool], timeout: float) -> bool:
        """Waits until the predicate is true; false when `timeout` has passed or the guest has died."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not predicate():
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not self.is_alive:
                    return predicate()
                self._changed.wait(min(remaining, 0.5))
        return True

    def _start(self, command: str, channels: Sequence[Channel]) -> Job:
        with self._changed:
            if not self.is_alive:
                raise GuestError(f"{self.who.name} is not running; its console:\n{self.console_tail()}")
            free = next((channel for channel in channels if channel.job is None), None)
            if free is None:
                raise GuestError(f"{self.who.name}: all {len(channels)} channels are busy; cannot run `{command}`")
            self._jobs += 1
            job = free.job = Job(self, self._jobs, command)
        text = base64.b64encode(f"{command}\n".encode()).decode()
        try:
            free.socket.sendall(f"{job.number} {job.mark} {text}\n".encode())
        except OSError as error:
            raise GuestError(f"{self.who.name} is gone; its console:\n{self.console_tail()}") from error
        return job

    # -- the reader thread

    def _read_channels(self) -> None:
        with selectors.DefaultSelector() as selector:
            for channel in self._channels:
                selector.register(channel.socket, selectors.EVENT_READ, channel)
            while True:
                for key, _ in selector.select():
                    try:
                        data = key.data.socket.recv(65536)
                    except OSError:
                        data = b""
                    if not data:
                        with self._changed:
                            self._changed.notify_all()
                        return
                    with self._changed:
                        self._take(key.data, data)
                        self._changed.notify_all()

    def _take(self, channel: Channel, data: bytes) -> None:
        if not channel.ready:
            channel.pending += data
            _, ready, rest = channel.pending.partition(b"ready\n")
            channel.ready = bool(ready)
            channel.pending = rest
            return
        job = channel.job
        if job is None:
            return  # output of a process that an earlier command left behind
        job.raw += data
        end = re.search(rb"\n%s (\d+)\n" % job.mark.encode(), job.raw[-(len(data) + 128):])
        if end is None:
            return
        job.raw = job.raw[:job.raw.rindex(b"\n" + job.mark.encode())]
        job.seconds = time.monotonic() - job.started
        channel.job = None
        self._transcript.write(f"$ {job.command[:2000]}\n{job.output}\n[status {int(end[1])}, {job.seconds:.2f} s]\n")
        job.status = int(end[1])
