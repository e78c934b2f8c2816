# SPDX-License-Identifier: BSD-3-Clause
"""A kernel that needs not unpack itself: the emulator takes five seconds of processors for that, half of a boot.

A bzImage says where its payload is (Documentation/arch/x86/boot.rst of Linux, protocol 2.08). QEMU starts what is in it, an ELF file, by
its PVH note.
"""

from __future__ import annotations

import gzip
import lzma
import os
import struct
from collections.abc import Callable
from pathlib import Path

SETUP_SECTORS_AT, PAYLOAD_AT = 0x1F1, 0x248  # the payload's offset behind the setup's sectors, and its length
SECTOR_BYTES = 512
UNPACKERS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\xfd7zXZ\0": lambda packed: lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(packed),
    b"\x1f\x8b\x08": gzip.decompress,
}


def _payload(image: bytes) -> bytes:
    offset, length = struct.unpack_from("<II", image, PAYLOAD_AT)
    begin = (image[SETUP_SECTORS_AT] + 1) * SECTOR_BYTES + offset
    return image[begin:begin + length]


def unpacked(kernel: Path, folder: Path) -> Path:
    """The kernel's ELF file in `folder`, made if it is not there; the kernel itself if it is packed in a way that is not known here."""
    elf = folder / f"vmlinux-{kernel.name}-{kernel.stat().st_mtime_ns}"
    if elf.exists():
        return elf
    payload = _payload(kernel.read_bytes())
    unpack = next((unpack for magic, unpack in UNPACKERS.items() if payload.startswith(magic)), None)
    if unpack is None:
        return kernel
    for old in set(folder.glob("vmlinux-*")) - {elf}:
        old.unlink(missing_ok=True)
    partial = folder / f"partial-{os.getpid()}"
    partial.write_bytes(unpack(payload))
    partial.rename(elf)  # two runs at once may both get here: each writes its own, and both are the same
    return elf
