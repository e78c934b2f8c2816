# SPDX-License-Identifier: BSD-3-Clause
"""Operators of the library: tensors packed for them, and what the network must give (docs/operators.md)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_void_p
from typing import Optional

import torch

from .c_api import GroupOptions, check, library


class Operator:
    """A text that is loaded. Tensors are laid out for packets, so a group with another MTU or length of messages has its own.
    `text` that is no operator raises WeirError with the line, what was found and what is allowed."""

    def __init__(self, text: str, path_mtu: Optional[int] = None, message_bytes: Optional[int] = None) -> None:
        self.text = text
        self.pointer = c_void_p()
        data = text.encode()
        check(library.weir_operator_load(data, len(data), byref(self.pointer)))
        usual = GroupOptions()
        library.weir_group_options_init_sized(byref(usual), ctypes.sizeof(usual))
        check(library.weir_operator_set_layout(self.pointer, path_mtu or usual.path_mtu, message_bytes or usual.message_bytes))

    def __del__(self) -> None:
        if self.pointer:
            library.weir_operator_release(self.pointer)

    @property
    def name(self) -> str:
        return library.weir_operator_name(self.pointer).decode()

    @property
    def digest(self) -> str:
        return library.weir_operator_digest(self.pointer).decode()

    def bytes(self, elements: int) -> int:
        """Of a tensor with so many numbers of blocks, or structs."""
        return library.weir_operator_bytes(self.pointer, elements)

    def place(self, element: int) -> int:
        """The byte where its struct or code begins."""
        return library.weir_operator_place(self.pointer, element)

    def pack(self, numbers: torch.Tensor) -> torch.Tensor:
        """f32 to bytes. Only where `start` gives one number for each element, as MX formats do."""
        flat = numbers.detach().to("cpu", torch.float32).contiguous().flatten()
        packed = torch.zeros(self.bytes(flat.numel()), dtype=torch.uint8)
        check(library.weir_operator_pack(self.pointer, flat.data_ptr(), flat.numel(), packed.data_ptr()))
        return packed

    def unpack(self, packed: torch.Tensor, elements: int) -> torch.Tensor:
        numbers = torch.empty(elements, dtype=torch.float32)
        check(library.weir_operator_unpack(self.pointer, packed.data_ptr(), elements, numbers.data_ptr()))
        return numbers

    def reduce(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Of packed tensors, in the order of ranks: what the network must give."""
        out = torch.zeros_like(tensors[0])
        inputs = (c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
        check(library.weir_operator_reduce(self.pointer, out.data_ptr(), ctypes.cast(inputs, c_void_p), len(tensors), out.numel()))
        return out
