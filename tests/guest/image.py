# SPDX-License-Identifier: BSD-3-Clause
"""The guests' operating system: Debian's own kernel and an initramfs made of this machine's packages.

The image is cached by a hash of its content, so only a changed program or init script makes a new one. Nothing is
downloaded, and nothing outside the cache directory is written.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel import unpacked

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / "build" / "guest"
CACHED_IMAGES = 4  # older ones are deleted

# In the order of loading; their dependencies are loaded before them. Those built into the kernel are left out.
MODULES = (
    "virtio_pci", "virtio_net", "virtio_console",
    "crc32_generic",  # rdma_rxe needs "crc32" from the crypto layer when it is loaded; modules.dep does not list it
    "ib_uverbs", "ib_umad", "rdma_rxe", "rdma_ucm",
    "sch_netem", "sch_tbf",
    "sch_ingress", "cls_matchall", "act_mirred", "ifb",  # received frames go through ifb0, where netem acts on them
)

# Each program and its Debian package.
PROGRAMS = {
    "dash": "dash",
    "ip": "iproute2", "tc": "iproute2", "rdma": "iproute2", "ping": "iputils-ping",
    "ibv_devinfo": "ibverbs-utils", "ibv_rc_pingpong": "ibverbs-utils", "ibv_uc_pingpong": "ibverbs-utils",
    "ibv_ud_pingpong": "ibverbs-utils", "rping": "rdmacm-utils",
    "ib_write_bw": "perftest", "ib_read_bw": "perftest", "ib_send_bw": "perftest", "ib_atomic_bw": "perftest",
}

# /usr/bin has the real programs and comes first; otherwise busybox's `ip`, `tc` and `ping` would be used. The shell is
# dash for the same reason: that of busybox prefers its own applets to PATH.
INIT = """#!/usr/bin/dash
export PATH=/usr/bin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
while read -r module; do
  insmod "/lib/modules/$module" || echo "weir-init: cannot load $module"
done < /etc/modules.list
for word in $(cat /proc/cmdline); do
  case $word in
    weir.name=*) hostname "${word#*=}" ;;
    weir.address=*) address=${word#*=} ;;
    weir.mtu=*) mtu=${word#*=} ;;
    weir.channels=*) channels=${word#*=} ;;
  esac
done
ulimit -l unlimited
ip link set lo up
ip link set eth0 mtu "$mtu" up
ip address add "$address" dev eth0
rdma link add rxe0 type rxe netdev eth0 || echo "weir-init: no soft-RoCE device"
n=1
while [ "$n" -le "$channels" ]; do
  until port=$(echo /dev/vport*p"$n") && [ -c "$port" ]; do sleep 0.05; done
  /usr/bin/weir-agent "$port" &
  n=$((n + 1))
done
echo "weir-init: ready"
while :; do wait; sleep 1; done
"""

# One per channel: a line "ID MARK BASE64" is a command. Its output goes straight to the channel, then a line
# "MARK STATUS". The command leads a process group of its own, so that another channel can kill it with all it started.
AGENT = """#!/usr/bin/dash
exec 3<>"$1"
echo ready >&3
while read -r id mark text <&3; do
  echo "$text" | base64 -d > "/run/job.$id"
  setsid /usr/bin/dash "/run/job.$id" </dev/null >&3 2>&1 3>&- &
  echo $! > "/run/job.$id.pid"
  wait $!
  status=$?
  rm -f "/run/job.$id" "/run/job.$id.pid"
  printf '\\n%s %d\\n' "$mark" "$status" >&3
done
"""


class ImageError(Exception):
    """A part of the image is not on this machine."""


@dataclass(frozen=True)
class Image:
    kernel: Path
    initramfs: Path


@dataclass(frozen=True)
class Entry:
    """One file, directory or link of the archive. `data` is a link's target."""

    mode: int
    data: bytes = b""


def build_image(extra_programs: Sequence[Path] = ()) -> Image:
    """Returns the image; builds it if it is not cached. `extra_programs` go to /usr/bin with their own names."""
    kernel, modules = newest_kernel()
    return cached_image(kernel, _entries(modules, extra_programs))


def cached_image(kernel: Path, entries: dict[str, Entry]) -> Image:
    """The kernel with an initramfs of these entries, which is made if no other run has."""
    digest = hashlib.sha256()
    for name, entry in sorted(entries.items()):
        digest.update(f"{name}\0{entry.mode}\0{len(entry.data)}\0".encode())
        digest.update(entry.data)
    CACHE.mkdir(parents=True, exist_ok=True)
    initramfs = CACHE / f"initramfs-{digest.hexdigest()[:16]}.cpio"
    if not initramfs.exists():
        partial = initramfs.with_suffix(f".{os.getpid()}")
        partial.write_bytes(_cpio(entries))
        partial.rename(initramfs)  # two runs at once may both get here: each writes its own, and both are the same
    os.utime(initramfs)
    for old in sorted(CACHE.glob("initramfs-*.cpio"), key=lambda file: file.stat().st_mtime)[:-CACHED_IMAGES]:
        old.unlink(missing_ok=True)
    return Image(unpacked(kernel, CACHE), initramfs)


def newest_kernel() -> tuple[Path, Path]:
    """The newest kernel in /boot whose modules have soft-RoCE (Debian's cloud kernels do not), and these modules."""
    def version_key(kernel: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", kernel.name)]

    for kernel in sorted(Path("/boot").glob("vmlinuz-*"), key=version_key, reverse=True):
        modules = Path("/lib/modules") / kernel.name.removeprefix("vmlinuz-")
        if (modules / "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko").exists():
            return kernel, modules
    raise ImageError("no /boot/vmlinuz-* has rdma_rxe among its modules: apt install linux-image-amd64")


def _entries(modules: Path, extra_programs: Sequence[Path]) -> dict[str, Entry]:
    programs = {name: Path(_which(name, package)) for name, package in PROGRAMS.items()}
    for program in extra_programs:
        if not program.is_file():
            raise ImageError(f"{program} is not there: build it first")
        programs[program.name] = program
    files: dict[str, bytes] = {f"usr/bin/{name}": _stripped(path) for name, path in programs.items()}

    provider, settings = _rxe_provider()
    files[str(provider).lstrip("/")] = provider.read_bytes()
    files[str(settings).lstrip("/")] = settings.read_bytes()
    for distribution in Path("/usr/lib/tc").glob("*.dist"):  # netem's delay distributions
        files[str(distribution).lstrip("/")] = distribution.read_bytes()
    for library in _libraries([*programs.values(), provider]):
        # One from a build tree is moved to a place where the loader finds it.
        standard = any(library.is_relative_to(folder) for folder in ("/lib", "/lib64", "/usr/lib"))
        home = str(library).lstrip("/") if standard else f"lib/x86_64-linux-gnu/{library.name}"
        files[home] = _stripped(library)

    files |= loaded_modules(modules, MODULES)
    files["etc/passwd"] = b"root:x:0:0:root:/root:/usr/bin/dash\n"
    files["etc/hosts"] = b"127.0.0.1 localhost\n"
    files["init"] = INIT.encode()
    files["usr/bin/weir-agent"] = AGENT.encode()
    return entries_of(files) | {"bin/sh": Entry(stat.S_IFLNK | 0o777, b"/usr/bin/dash")}


def loaded_modules(modules: Path, wanted: Sequence[str]) -> dict[str, bytes]:
    """These and what they need, and the list by which an init script loads them."""
    ordered = modules_in_order(modules, wanted)
    files = {f"lib/modules/{module.name}": module.read_bytes() for module in ordered}
    return files | {"etc/modules.list": "".join(f"{module.name}\n" for module in ordered).encode()}


def entries_of(files: dict[str, bytes]) -> dict[str, Entry]:
    """The files with busybox, and the folders for them."""
    busybox = Path(_which("busybox", "busybox-static"))
    files = files | {"bin/busybox": busybox.read_bytes()}
    entries = {name: Entry(stat.S_IFREG | 0o755, data) for name, data in files.items()}
    for applet in subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split():
        entries.setdefault(f"bin/{applet}", Entry(stat.S_IFLNK | 0o777, b"busybox"))
    for directory in ("dev", "proc", "sys", "run", "tmp", "root", "srv"):
        entries[directory] = Entry(stat.S_IFDIR | 0o755)
    for name in list(entries):
        for parent in Path(name).parents:
            if str(parent) != ".":
                entries.setdefault(str(parent), Entry(stat.S_IFDIR | 0o755))
    return entries


def _which(program: str, package: str) -> str:
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise ImageError(f"no program {program} on this machine: apt install {package}")
    return found


def _rxe_provider() -> tuple[Path, Path]:
    providers = sorted(Path("/usr/lib/x86_64-linux-gnu/libibverbs").glob("librxe-rdmav*.so"))
    settings = Path("/etc/libibverbs.d/rxe.driver")
    if not providers or not settings.exists():
        raise ImageError("libibverbs has no soft-RoCE provider: apt install ibverbs-providers")
    return providers[-1], settings


def _libraries(binaries: Iterable[Path]) -> list[Path]:
    """Every shared library of `binaries`, under the path by which the loader finds it."""
    found = {Path("/lib/x86_64-linux-gnu/libgcc_s.so.1")}  # glibc opens it by name when a thread is cancelled
    for binary in binaries:
        listing = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
        if missing := re.findall(r"(\S+) => not found", listing):
            raise ImageError(f"{binary} needs {', '.join(missing)}, which this machine lacks")
        found.update(Path(path) for path in re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", listing, re.MULTILINE))
    return sorted(found)


def modules_in_order(modules: Path, wanted: Sequence[str]) -> list[Path]:
    """Files of the wanted modules and their dependencies, each after its own dependencies."""
    dependencies: dict[str, tuple[str, list[str]]] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        file, _, needs = line.partition(":")
        dependencies[_module_name(file)] = (file, needs.split())
    built_in = {_module_name(line) for line in (modules / "modules.builtin").read_text().splitlines()}
    ordered: dict[str, None] = {}
    for name in wanted:
        if name in dependencies:
            file, needs = dependencies[name]
            ordered.update(dict.fromkeys([*reversed(needs), file]))  # modules.dep lists the deepest last
        elif name not in built_in:
            raise ImageError(f"kernel {modules.name} has no module {name}: apt install linux-image-amd64")
    return [modules / file for file in ordered]


def _module_name(file: str) -> str:
    return Path(file).name.removesuffix(".ko").replace("-", "_")


def _stripped(binary: Path) -> bytes:
    """The file without debugging information, which is too large for a small guest's memory."""
    data = binary.read_bytes()
    if not data.startswith(b"\x7fELF") or b".debug_info" not in data or shutil.which("strip") is None:
        return data
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / binary.name
        subprocess.run(["strip", "--strip-debug", "-o", target, binary], check=True)
        return target.read_bytes()


def _cpio(entries: dict[str, Entry]) -> bytes:
    """An archive in the kernel's "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst).

    Not compressed: an emulated CPU would take longer to unpack it than to copy it.
    """
    archive = bytearray()

    def append(number: int, name: str, entry: Entry) -> None:
        # ino, mode, uid, gid, nlink, mtime, filesize, device and special device (major, minor each), namesize, check
        fields = (number, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, 0, 0, len(name) + 1, 0)
        archive.extend(b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0")
        archive.extend(bytes(-len(archive) % 4))
        archive.extend(entry.data)
        archive.extend(bytes(-len(archive) % 4))

    for number, name in enumerate(sorted(entries), start=1):  # a directory sorts before what is in it
        append(number, name, entries[name])
    append(0, "TRAILER!!!", Entry(0))
    return bytes(archive)
