# SPDX-License-Identifier: BSD-3-Clause
"""The part of weir/weir.h that the backend calls. tests/install.py compares names, numbers and fields with the header."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Optional

LIBRARY = "libweir.so.1"

STATUS = {"WEIR_OK": 0, "WEIR_PENDING": 9}
DATA_TYPES = {"WEIR_F32": 0, "WEIR_I32": 1, "WEIR_F16": 2, "WEIR_BF16": 3, "WEIR_F64": 4, "WEIR_I8": 5, "WEIR_U8": 6,
              "WEIR_I16": 7, "WEIR_I64": 10}
OPERATIONS = {"WEIR_SUM": 0, "WEIR_MIN": 1, "WEIR_MAX": 2, "WEIR_PRODUCT": 3, "WEIR_AND": 4, "WEIR_OR": 5, "WEIR_XOR": 6,
              "WEIR_AVERAGE": 256}
BY_OPERATOR = {"WEIR_AS_OPERATOR": 255, "WEIR_OPERATOR(0)": 128}  # a type, and the first one's operation
MEMORY_KINDS = {"WEIR_MEMORY_HOST": 0}
TRANSPORTS = {"WEIR_SOFTWARE": 0, "WEIR_VERBS": 1}
FALLBACKS = {"WEIR_FALLBACK_NONE": 0, "WEIR_FALLBACK_RING": 1}
RING_COUNTS = {"WEIR_RINGS_OFFERED": c_size_t(-1).value}

ALL_GATHER_FUNCTION = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_void_p)


class ContextOptions(ctypes.Structure):
    NAME = "weir_context_options"
    _fields_ = [("size", c_size_t), ("transport", c_int), ("device", c_char_p), ("ip", c_char_p), ("mac", c_char_p),
                ("gid_index", c_uint8)]


class GroupOptions(ctypes.Structure):
    NAME = "weir_group_options"
    _fields_ = [("size", c_size_t), ("rank", c_uint16), ("world", c_uint16), ("rendezvous", c_char_p),
                ("rings", POINTER(c_uint32)), ("ring_count", c_size_t), ("window", c_uint32), ("message_bytes", c_uint32),
                ("path_mtu", c_uint32), ("epoch", c_uint32), ("fallback", c_int), ("form_timeout_ms", c_uint32),
                ("timeout_ms", c_uint32), ("ack_timeout_ms", c_uint32), ("retry_count", c_uint8), ("lateness_ms", c_uint32),
                ("job", c_char_p), ("secret", c_void_p), ("secret_bytes", c_size_t),
                ("all_gather", ALL_GATHER_FUNCTION), ("all_gather_user", c_void_p), ("keep_alive_ms", c_uint32),
                ("farewell_ms", c_uint32), ("switch_address", c_char_p), ("switch_certificate", c_char_p),
                ("switch_key", c_char_p), ("switch_authority", c_char_p), ("switch_name", c_char_p), ("missing_rings", c_int),
                ("progress", c_int), ("listener", c_void_p), ("handle", c_void_p), ("handle_bytes", c_size_t),
                ("operators", POINTER(c_void_p)), ("operator_count", c_size_t)]


class GroupStatistics(ctypes.Structure):
    NAME = "weir_group_statistics"
    _fields_ = [("size", c_size_t), ("messages_sent", c_uint64), ("results_received", c_uint64),
                ("retransmitted_packets", c_uint64), ("ack_timeouts", c_uint64)]


class Tensor(ctypes.Structure):
    NAME = "weir_tensor"
    _fields_ = [("in", c_void_p), ("out", c_void_p), ("count", c_size_t)]


class SparseTensor(ctypes.Structure):
    NAME = "weir_sparse_tensor"
    _fields_ = [("size", c_size_t), ("count", c_size_t), ("indices", c_void_p), ("values", c_void_p), ("index_count", c_size_t),
                ("block_elements", c_size_t)]


class SparseView(ctypes.Structure):
    NAME = "weir_sparse_view"
    _fields_ = [("size", c_size_t), ("indices", c_void_p), ("values", c_void_p), ("index_count", c_size_t),
                ("block_elements", c_size_t), ("is_dense", c_uint32), ("reserved", c_uint32), ("exchanged_bytes", c_uint64)]


STRUCTS = (ContextOptions, GroupOptions, GroupStatistics, Tensor, SparseTensor, SparseView)

PROTOTYPES = {
    "weir_context_options_init_sized": (None, POINTER(ContextOptions), c_size_t),
    "weir_group_options_init_sized": (None, POINTER(GroupOptions), c_size_t),
    "weir_context_open": (c_int, POINTER(ContextOptions), POINTER(c_void_p)),
    "weir_context_close": (None, c_void_p),
    "weir_memory_register": (c_int, c_void_p, c_int, c_void_p, c_size_t, POINTER(c_void_p)),
    "weir_memory_release": (None, c_void_p),
    "weir_group_form": (c_int, c_void_p, POINTER(GroupOptions), POINTER(c_void_p)),
    "weir_group_abort_because": (c_int, c_void_p, c_char_p),
    "weir_group_close": (None, c_void_p),
    "weir_group_progress": (c_int, c_void_p),
    "weir_group_read_statistics": (c_int, c_void_p, POINTER(GroupStatistics)),
    "weir_group_address": (c_char_p, c_void_p),
    "weir_group_algorithm": (c_char_p, c_void_p),
    "weir_group_fallback_reason": (c_char_p, c_void_p),
    "weir_group_missing_operators": (c_char_p, c_void_p),
    "weir_is_reducible": (c_int, c_int, c_int),
    "weir_operator_load": (c_int, c_char_p, c_size_t, POINTER(c_void_p)),
    "weir_operator_release": (None, c_void_p),
    "weir_operator_name": (c_char_p, c_void_p),
    "weir_operator_digest": (c_char_p, c_void_p),
    "weir_operator_set_layout": (c_int, c_void_p, c_uint32, c_uint32),
    "weir_operator_bytes": (c_size_t, c_void_p, c_size_t),
    "weir_operator_place": (c_size_t, c_void_p, c_size_t),
    "weir_operator_pack": (c_int, c_void_p, c_void_p, c_size_t, c_void_p),
    "weir_operator_unpack": (c_int, c_void_p, c_void_p, c_size_t, c_void_p),
    "weir_operator_reduce": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t),
    "weir_start_all_reduce": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, POINTER(c_void_p)),
    "weir_start_all_reduce_coalesced": (c_int, c_void_p, POINTER(Tensor), c_size_t, c_int, c_int, POINTER(c_void_p)),
    "weir_start_reduce": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_uint16, POINTER(c_void_p)),
    "weir_start_all_gather": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int, POINTER(c_void_p)),
    "weir_start_reduce_scatter": (c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, POINTER(c_void_p)),
    "weir_start_broadcast": (c_int, c_void_p, c_void_p, c_size_t, c_int, c_uint16, POINTER(c_void_p)),
    "weir_start_barrier": (c_int, c_void_p, POINTER(c_void_p)),
    "weir_start_sparse_all_reduce": (c_int, c_void_p, POINTER(SparseTensor), c_int, c_int, POINTER(c_void_p), POINTER(c_void_p)),
    "weir_sparse_result_read": (c_int, c_void_p, POINTER(SparseView)),
    "weir_sparse_result_copy": (c_int, c_void_p, c_void_p, c_void_p, c_size_t),
    "weir_sparse_result_free": (None, c_void_p),
    "weir_test": (c_int, c_void_p),
    "weir_wait": (c_int, c_void_p),
    "weir_release": (None, c_void_p),
    "weir_group_descriptor": (c_int, c_void_p),
    "weir_last_error": (c_char_p,),
    "weir_last_error_rank": (c_int,),
    "weir_status_name": (c_char_p, c_int),
    "weir_version": (c_char_p,),
}


class Library:
    """The library's functions. It is loaded for the first of them, so that weir_torch.check can say what is missing. CDLL
    gives up the interpreter's lock during each call, so a call that waits stops no other thread."""

    def __getattr__(self, name: str) -> Any:
        self.__dict__.update(_load())
        return self.__dict__[name]


def _load() -> dict[str, Any]:
    try:
        loaded = ctypes.CDLL(library_file())
    except OSError as error:
        raise ImportError(f"weir_torch: {error}; install the host library, or set WEIR_LIBRARY to the file's path") from error
    for function, (result, *arguments) in PROTOTYPES.items():
        getattr(loaded, function).restype = result
        getattr(loaded, function).argtypes = arguments
    return {function: getattr(loaded, function) for function in PROTOTYPES}


def library_file() -> str:
    """What the environment names, else what a wheel has beside this file, else the loader's."""
    bundled = Path(__file__).parent / LIBRARY
    return os.environ.get("WEIR_LIBRARY") or (str(bundled) if bundled.exists() else LIBRARY)


library = Library()


class WeirError(RuntimeError):
    """A call that failed: `status` is its name in weir.h without WEIR_, `rank` the rank that it is about, or None."""

    def __init__(self, status: str, text: str, rank: Optional[int] = None) -> None:
        self.status, self.rank = status, rank
        super().__init__(f"weir: {status}: {text}")

    def add(self, words: str) -> None:
        if words:
            self.args = (f"{self}; {words}",)


def check(status: int) -> None:
    """Call it in the thread of the failed call: the library keeps the last error of each thread."""
    if status != STATUS["WEIR_OK"]:
        rank = library.weir_last_error_rank()
        raise WeirError(library.weir_status_name(status).decode(), library.weir_last_error().decode(errors="replace"),
                        rank if rank >= 0 else None)
