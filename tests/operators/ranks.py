#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Operators in the host library, by ctypes alone: tensors of several packets packed, folded and unpacked as numpy does, and all-reduces of
three ranks of one host.

`ranks.py [BUILD_DIR]`. Ends in "operator-ranks: N passed, N failed, 0 skipped"."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_void_p
from pathlib import Path

import numpy as np

import verdicts
from judges import E4M3, E8M0, JUDGES, Blocks

ROOT = Path(__file__).resolve().parent.parent.parent
TEXTS = ROOT / "config" / "operators"
AS_OPERATOR, FIRST_OPERATOR = 255, 128
MTU, MESSAGE, HEADER = 256, 1064, 40
WORLD = 3
NUMBERS = 5000
PORT = 7471
WINDOW = 4


class ContextOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("transport", c_int), ("device", c_char_p), ("ip", c_char_p), ("mac", c_char_p), ("gid_index", c_uint8)]


class GroupOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("rank", c_uint16), ("world", c_uint16), ("rendezvous", c_char_p), ("rings", POINTER(c_uint32)),
                ("ring_count", c_size_t), ("window", c_uint32), ("message_bytes", c_uint32), ("path_mtu", c_uint32), ("epoch", c_uint32),
                ("fallback", c_int), ("form_timeout_ms", c_uint32), ("timeout_ms", c_uint32), ("ack_timeout_ms", c_uint32), ("retry_count", c_uint8),
                ("lateness_ms", c_uint32), ("job", c_char_p), ("secret", c_void_p), ("secret_bytes", c_size_t), ("all_gather", c_void_p),
                ("all_gather_user", c_void_p), ("keep_alive_ms", c_uint32), ("farewell_ms", c_uint32), ("switch_address", c_char_p),
                ("switch_certificate", c_char_p), ("switch_key", c_char_p), ("switch_authority", c_char_p), ("switch_name", c_char_p),
                ("missing_rings", c_int), ("progress", c_int), ("listener", c_void_p), ("handle", c_void_p), ("handle_bytes", c_size_t),
                ("operators", POINTER(c_void_p)), ("operator_count", c_size_t)]


class Weir:
    def __init__(self, build: Path) -> None:
        self.library = ctypes.CDLL(str(build / "lib/host/package/libweir.so"))
        for name in ("weir_last_error", "weir_operator_digest", "weir_operator_name"):
            getattr(self.library, name).restype = c_char_p
        for name in ("weir_operator_bytes", "weir_operator_place"):
            getattr(self.library, name).restype = c_size_t

    def call(self, name: str, *arguments: object) -> None:
        if getattr(self.library, name)(*arguments) != 0:
            raise RuntimeError(self.library.weir_last_error().decode())

    def load(self, text: str) -> c_void_p:
        operator = c_void_p()
        self.call("weir_operator_load", text.encode(), c_size_t(len(text.encode())), byref(operator))
        self.call("weir_operator_set_layout", operator, c_uint32(MTU), c_uint32(MESSAGE))
        return operator

    def pack(self, operator: c_void_p, numbers: np.ndarray) -> np.ndarray:
        packed = np.zeros(self.library.weir_operator_bytes(operator, c_size_t(len(numbers))), np.uint8)
        self.call("weir_operator_pack", operator, pointer(numbers), c_size_t(len(numbers)), pointer(packed))
        return packed

    def group(self, rank: int, operators: list[c_void_p], world: int = WORLD, interface: str = "lo", ip: str = "127.0.0.1", ring: int = 1,
              fallback: int = 0) -> c_void_p:
        device, options = ContextOptions(), GroupOptions()
        self.library.weir_context_options_init_sized(byref(device), c_size_t(ctypes.sizeof(device)))
        self.library.weir_group_options_init_sized(byref(options), c_size_t(ctypes.sizeof(options)))
        device.device, device.ip = interface.encode(), ip.encode()
        options.rank, options.world, options.rendezvous = rank, world, f"127.0.0.1:{PORT}".encode()
        options.rings, options.ring_count, options.window = (c_uint32 * 1)(ring), 1, WINDOW
        options.path_mtu, options.message_bytes, options.fallback = MTU, MESSAGE, fallback
        options.operators = (c_void_p * len(operators))(*[operator.value for operator in operators])
        options.operator_count = len(operators)
        context, group = c_void_p(), c_void_p()
        self.call("weir_context_open", byref(device), byref(context))
        self.call("weir_group_form", context, byref(options), byref(group))
        return group


def pointer(array: np.ndarray) -> c_void_p:
    return array.ctypes.data_as(c_void_p)


def text_of(name: str) -> str:
    return (TEXTS / f"{name}.weir").read_text()


def numbers_of(rank: int) -> np.ndarray:
    return np.random.default_rng(rank).standard_normal(NUMBERS).astype(np.float32)


def packets(size: int) -> list[tuple[int, int]]:
    """Begin and end of each packet of a tensor: a message's first one has the header."""
    found, at, message = [], 0, (MESSAGE - HEADER) // 8 * 8
    while at < size:
        inside = at % message
        length = min(MTU - HEADER if inside == 0 else MTU, message - inside, size - at)
        found.append((at, at + length))
        at += length
    return found


def judged(name: str, tensors: list[np.ndarray]) -> np.ndarray:
    parts = packets(len(tensors[0]))
    return np.concatenate([JUDGES[name]([tensor[begin:end] for tensor in tensors]) for begin, end in parts])


def read_mxfp8(packed: np.ndarray) -> np.ndarray:
    blocks = Blocks(E4M3, 32, E8M0)
    return np.concatenate([blocks.read(packed[begin:end]).ravel() for begin, end in packets(len(packed))])[:NUMBERS]


def same(what: str, found: np.ndarray, due: np.ndarray) -> list[str]:
    return [] if found.shape == due.shape and (found == due).all() else [f"{what}: found {found[:8]}…, due {due[:8]}…"]


def check_packing(weir: Weir) -> list[str]:
    operator = weir.load(text_of("mxfp8-e4m3-sum"))
    numbers = numbers_of(0)
    packed = weir.pack(operator, numbers)
    read = read_mxfp8(packed)
    is_near = np.abs(read - numbers) <= np.abs(numbers) / 8 + 0.02
    wrong = [] if is_near.all() else ["packed numbers are not near the numbers"]
    again = np.zeros(NUMBERS, np.float32)
    weir.call("weir_operator_unpack", operator, pointer(packed), c_size_t(NUMBERS), pointer(again))
    wrong += same("unpacked", again, read)
    wrong += same("packed twice", weir.pack(operator, again), packed)
    for element in (0, 31, 32, 191, 192, 3000):
        place = weir.library.weir_operator_place(operator, c_size_t(element))
        code = E4M3.table[packed[place]]
        wrong += [] if np.sign(code) == np.sign(read[element]) and abs(code) >= abs(read[element]) else [f"place of {element}: {place}"]
    return wrong


def check_reduce(weir: Weir, text: str, name: str) -> list[str]:
    """What the library makes of four ranks' random bytes, beside the judge of this name."""
    operator = weir.load(text)
    dice = np.random.default_rng(7)
    size = weir.library.weir_operator_bytes(operator, c_size_t(4000))
    tensors = [dice.integers(0, 256, size).astype(np.uint8) for _ in range(4)]
    out = np.zeros(size, np.uint8)
    inputs = (c_void_p * 4)(*[tensor.ctypes.data for tensor in tensors])
    weir.call("weir_operator_reduce", operator, pointer(out), inputs, c_size_t(4), c_size_t(size))
    with np.errstate(all="ignore"):
        return same(name, out, judged(name, tensors))


def check_layout(weir: Weir) -> list[str]:
    """Of messages of 65536 bytes at MTU 1024: the first packet has 984 // 33 blocks, each of 63 others 1024 // 33."""
    operator = weir.load(text_of("mxfp8-e4m3-sum"))
    weir.call("weir_operator_set_layout", operator, c_uint32(1024), c_uint32(65536))
    in_message, data = 32 * (29 + 63 * 31), 65496
    size = lambda elements: weir.library.weir_operator_bytes(operator, c_size_t(elements))  # noqa: E731
    place = lambda element: weir.library.weir_operator_place(operator, c_size_t(element))  # noqa: E731
    found = [size(0), size(1), size(in_message), size(5 * in_message + 1), size(2**63), place(in_message - 1), place(7 * in_message), place(2**63)]
    due = [0, 40, data, 5 * data + 40, 0, data - 1024 + 31 * 32 - 1, 7 * data, 0]
    return [] if found == due else [f"found {found}, due {due}"]


def check_errors(weir: Weir) -> list[str]:
    wrong = []
    wide = text_of("mxfp8-e4m3-sum").replace("block 32 of f8e4m3, scale e8m0", "block 128 of f32, scale f32").replace("code 0x80 scale 0x00", "none")
    wide = wide.partition("finish")[0] + "finish one = block_max(select(acc == acc, 1.0, 1.0))\n  scale = one\n  out = acc\n"
    number, out = np.ones(1, np.float32), np.zeros(64, np.uint8)
    calls = ((lambda: weir.call("weir_operator_pack", weir.load(text_of("valid-sum")), pointer(number), c_size_t(1), pointer(out)), "structs of 2 fields"),
             (lambda: weir.call("weir_operator_set_layout", weir.load(wide), c_uint32(256), c_uint32(65536)), "which has 516 bytes, fits into a packet"),
             (lambda: weir.load(text_of("f32-sum").replace("acc + v", "acc + w")), 'line 8: found "w"; allowed: v, acc'),
             (lambda: weir.load(""), "line 1: found the end of the text"))
    for call, due in calls:
        try:
            call()
            wrong.append(f"no error: {due}")
        except RuntimeError as error:
            wrong += [] if due in str(error) else [f"found {error}; due {due}"]
    return wrong


def rank_all_reduces(weir: Weir, rank: int) -> None:
    """First, on rank 2, another text under the same number: no group. Then two operators in turn, in place and to a root."""
    names = ("mxfp8-e4m3-sum", "maxloc")
    operators = [weir.load(text_of(name)) for name in names]
    odd = text_of("f32-sum").replace("f32-sum", "f32-sum-2" if rank == 2 else "f32-sum")
    try:
        weir.group(rank, [*operators, weir.load(odd)])
        raise AssertionError("one number with two texts made a group")
    except RuntimeError as error:
        assert "has digest" in str(error) and "operator 2" in str(error), error
    group = weir.group(rank, operators)
    tensors = [weir.pack(operators[0], numbers_of(other)) for other in range(WORLD)]
    due = judged(names[0], tensors)

    def reduce(data: np.ndarray, out: np.ndarray, number: int) -> None:
        weir.call("weir_all_reduce", group, pointer(data), pointer(out), c_size_t(len(data)), AS_OPERATOR, FIRST_OPERATOR + number)

    data = tensors[rank].copy()
    reduce(data, data, 0)
    assert (data == due).all(), "all-reduce in place"
    places = [np.random.default_rng(100 + other).integers(0, 9, 4096).astype(np.uint8) for other in range(WORLD)]
    out = np.zeros(4096, np.uint8)
    weir.call("weir_reduce", group, pointer(places[rank]), pointer(out), c_size_t(4096), AS_OPERATOR, FIRST_OPERATOR + 1, c_uint16(1))
    wanted = judged(names[1], places) if rank == 1 else np.zeros(4096, np.uint8)
    assert (out == wanted).all(), "reduce to rank 1"
    shares = [[weir.pack(operators[0], numbers_of(10 * other + share)) for share in range(WORLD)] for other in range(WORLD)]
    brought, kept = np.concatenate(shares[rank]), np.zeros(len(tensors[0]), np.uint8)
    weir.call("weir_reduce_scatter", group, pointer(brought), pointer(kept), c_size_t(len(kept)), AS_OPERATOR, FIRST_OPERATOR)
    assert (kept == judged(names[0], [shares[other][rank] for other in range(WORLD)])).all(), "reduce-scatter"
    for count, number, words in ((12, 0, "a multiple of 8"), (16, 2, "found WEIR_OPERATOR(2); allowed: 2 of")):
        try:
            reduce(np.zeros(count, np.uint8), np.zeros(count, np.uint8), number)
            raise AssertionError(f"no error: {words}")
        except RuntimeError as error:
            assert words in str(error), error
    print(f"rank {rank} is done", flush=True)


def check_ranks(build: Path) -> list[str]:
    ranks = [subprocess.Popen([sys.executable, __file__, str(build), str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
             for rank in range(WORLD)]
    said = [rank.communicate(timeout=120)[0] for rank in ranks]
    return [f"rank {rank}: {text}" for rank, text in enumerate(said) if f"rank {rank} is done" not in text]


def main() -> int:
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    if len(sys.argv) > 2:
        rank_all_reduces(Weir(build), int(sys.argv[2]))
        return 0
    if "WEIR_IN_NAMESPACE" not in os.environ:
        inside = "ip link set lo up && exec \"$0\" \"$@\""
        command = [shutil.which("unshare"), "--net", "sh", "-c", inside, sys.executable, __file__, str(build)]
        return subprocess.run(command, env=os.environ | {"WEIR_IN_NAMESPACE": "1"}, check=False).returncode
    weir = Weir(build)
    checks = [("packing", lambda: check_packing(weir)), ("layout", lambda: check_layout(weir)), ("errors", lambda: check_errors(weir)), ("three ranks", lambda: check_ranks(build))]
    checks += [(name, lambda name=name: check_reduce(weir, text_of(name), name)) for name in JUDGES]
    return verdicts.run("operator-ranks", checks)


if __name__ == "__main__":
    sys.exit(main())
