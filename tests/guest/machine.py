# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine, and commands in it.

Commands use virtio-serial channels, one command at a time on each, so that several can run in a machine. The channels are
socket pairs and leave nothing in the file system. The first channel is reserved for boot and for killing commands on the
others.
"""

from __future__ import annotations

import base64
import re
import secrets
import selectors
import shlex
import shutil
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
BOOT_TIMEOUT_S = 180.0  # 4 s on an idle machine; many guests on a loaded one take much longer
CPU = "max,-erms"  # with ERMS Linux copies by `rep movsb`, which the emulator does byte by byte
KERNEL_OPTIONS = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check random.trust_cpu=on cryptomgr.notests=1"


class GuestError(Exception):
    """A guest did not do what it should. The text has its output."""


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
    """A command running in a machine. Written by the machine's reader thread, under the machine's lock."""

    machine: Machine
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
        return self.status is None and self.machine.is_alive

    def wait(self, timeout: float = 120.0) -> Result:
        """Waits for the end of the command. After `timeout` seconds it is killed, and GuestError has its output."""
        if not self.machine.wait_until_true(lambda: self.status is not None, timeout):
            died = not self.machine.is_alive
            said = self._report("the machine died under" if died else f"not done after {timeout:.0f} s:")
            self.kill()
            self.machine.wait_until_true(lambda: self.status is not None, 30.0)  # its channel is free again
            raise GuestError(said)
        assert self.status is not None
        return Result(self.command, self.status, self.output, self.seconds)

    def wait_for(self, pattern: str, timeout: float = 60.0) -> re.Match[str]:
        """Waits until the output so far has a match of `pattern`, and returns it; GuestError when none comes."""
        def over() -> bool:
            return re.search(pattern, self.output) is not None or self.status is not None

        self.machine.wait_until_true(over, timeout)
        match = re.search(pattern, self.output)
        if match is None:
            raise GuestError(self._report(f"{pattern!r} never came from"))
        return match

    def kill(self, signal: str = "KILL") -> None:
        """Sends `signal` to the command and to all its children. No effect after its end."""
        if self.is_running:
            # A job that has not written its number yet is about to.
            file = f"/run/job.{self.number}"
            self.machine.control(f"until [ -s {file}.pid ] || [ ! -e {file} ]; do sleep 0.05; done; "
                               f"[ ! -s {file}.pid ] || kill -s {signal} -- -$(cat {file}.pid)")

    def _report(self, what: str) -> str:
        return f"{self.machine.name}: {what} `{self.command}`; it printed:\n{self.output[-3000:] or '(nothing)'}"


def why_no_emulator() -> str | None:
    if shutil.which("qemu-system-x86_64") is None:
        return "there is no qemu-system-x86_64: apt install qemu-system-x86"
    tried = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True)
    if tried.returncode != 0:
        return f"qemu-system-x86_64 does not run: {tried.stderr.strip()}"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun to plug guests into"
    return None


def emulator(name: str, image: Image, options: str, cpus: str, memory_mb: int, cpu: str = CPU) -> list[str]:
    """What every machine has. `options` are the kernel's, after those of all."""
    return ["qemu-system-x86_64", "-name", name, "-machine", "q35", "-accel", "tcg,tb-size=128", "-cpu", cpu, "-smp", cpus,
            "-m", str(memory_mb), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", str(image.kernel), "-initrd", str(image.initramfs), "-append", f"{KERNEL_OPTIONS} {options}"]


def channel_devices(descriptors: Sequence[int]) -> list[str]:
    arguments = ["-device", f"virtio-serial-pci,max_ports={len(descriptors) + 1}"]
    for number, descriptor in enumerate(descriptors, start=1):
        arguments += ["-chardev", f"socket,id=channel{number},fd={descriptor}",
                      "-device", f"virtserialport,chardev=channel{number},nr={number},name=weir.{number}"]
    return arguments


class Machine:
    """Start it from the main thread: the emulator is killed when the thread that started it ends."""

    def __init__(self, name: str, arguments: Sequence[str], namespace_prefix: Sequence[str], logs: Path,
                 inherited: Sequence[int] = ()) -> None:
        """`arguments` are the emulator's, and `inherited` the descriptors that they name."""
        self.name = name
        self.console_log = logs / f"{name}-console.log"
        self._transcript = (logs / f"{name}-commands.log").open("a", buffering=1)
        self._changed = threading.Condition()
        self._jobs = 0
        self._is_stopped = False
        pairs = [socket.socketpair() for _ in range(CHANNELS)]
        self._channels = [Channel(ours) for ours, _ in pairs]
        descriptors = [theirs.fileno() for _, theirs in pairs]
        with (logs / f"{name}-qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*namespace_prefix, *arguments, "-serial", f"file:{self.console_log}", *channel_devices(descriptors)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, pass_fds=[*descriptors, *inherited],
                start_new_session=True)
        for _, theirs in pairs:
            theirs.close()
        self._reader = threading.Thread(target=self._read_channels, name=f"{name}-reader", daemon=True)
        self._reader.start()

    # -- life

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None and self._reader.is_alive()

    def wait_ready(self, timeout: float = BOOT_TIMEOUT_S) -> None:
        if not self.wait_until_true(lambda: all(channel.ready for channel in self._channels), timeout):
            raise GuestError(f"{self.name} was not up after {timeout:.0f} s; its console:\n{self.console_tail()}")

    def console_tail(self, characters: int = 2000) -> str:
        text = self.console_log.read_text(errors="replace") if self.console_log.exists() else ""
        emulator = self.console_log.with_name(f"{self.name}-qemu.log").read_text(errors="replace")
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

    # -- commands

    def run(self, command: str, timeout: float = 120.0, check: bool = True) -> Result:
        """Runs a shell command to its end. A status other than 0 is a GuestError, unless `check` is off."""
        result = self.start(command).wait(timeout)
        if check and result.status != 0:
            raise GuestError(f"{self.name}: {result.complaint}")
        return result

    def start(self, command: str) -> Job:
        """Starts a shell command in the background."""
        return self._start(command, self._channels[1:])

    def control(self, command: str) -> None:
        """Runs a short command on the first channel."""
        self._start(command, self._channels[:1]).wait(30.0)

    def wait_until(self, condition: str, timeout: float = 60.0) -> None:
        """Waits until the shell command `condition` succeeds there."""
        self.run(f"until {condition}; do sleep 0.1; done", timeout)

    def wait_listening(self, tcp_port: int, timeout: float = 60.0) -> None:
        self.wait_until(f"grep -Eq ':{tcp_port:04X} [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6", timeout)

    def put(self, path: str, data: bytes) -> None:
        """Writes a file there. Slow: for scripts and small data; programs belong in the image."""
        target = shlex.quote(path)
        self.run(f"> {target}")
        for start in range(0, len(data), 48000):
            piece = base64.b64encode(data[start:start + 48000]).decode()
            self.run(f"echo {piece} | base64 -d >> {target}")

    def get(self, path: str) -> bytes:
        return base64.b64decode(self.run(f"base64 {shlex.quote(path)}").output)

    def wait_until_true(self, predicate: Callable[[], bool], timeout: float) -> bool:
        """Waits until the predicate is true; false when `timeout` has passed or the machine has died."""
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
                raise GuestError(f"{self.name} is not running; its console:\n{self.console_tail()}")
            free = next((channel for channel in channels if channel.job is None), None)
            if free is None:
                raise GuestError(f"{self.name}: all {len(channels)} channels are busy; cannot run `{command}`")
            self._jobs += 1
            job = free.job = Job(self, self._jobs, command)
        text = base64.b64encode(f"{command}\n".encode()).decode()
        try:
            free.socket.sendall(f"{job.number} {job.mark} {text}\n".encode())
        except OSError as error:
            raise GuestError(f"{self.name} is gone; its console:\n{self.console_tail()}") from error
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
