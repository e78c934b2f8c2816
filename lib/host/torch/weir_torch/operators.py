# SPDX-License-Identifier: BSD-3-Clause
"""Operators of the library: tensors packed for them, and what the network must give (docs/operators.md)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_void_p
from typing import Optional

import torch

from .c_api import GroupOptions, WeirError, check, library


MOST_ELEMENTS = 2**48


def count_of(what: str, number: int) -> int:
    if not 0 <= number <= MOST_ELEMENTS:
        raise ValueError(f"weir_torch: {what}: found {number}; allowed: 0 .. {MOST_ELEMENTS}")
    return number


def expect_packed(what: str, tensor: torch.Tensor, size: int) -> None:
    """The library reads so many bytes from its address."""
    if tensor.dtype != torch.uint8 or tensor.device.type != "cpu" or not tensor.is_contiguous() or tensor.numel() != size:
        raise ValueError(f"weir_torch: {what}: found {tensor.numel()} of {tensor.dtype} on {tensor.device}; "
                         f"allowed: {size} of torch.uint8 in a row on the CPU")


def loaded(texts: Sequence[str], path_mtu: Optional[int], message_bytes: Optional[int]) -> list[Operator]:
    """Errors say which text is wrong."""
    if isinstance(texts, str):
        raise ValueError("weir_torch: operators: found a string; allowed: a tuple of texts")
    operators = []
    for number, text in enumerate(texts):
        if "\n" not in text.strip():
            raise ValueError(f"weir_torch: operators[{number}]: found {text!r}; allowed: an operator's text, not the name of its file")
        try:
            operators.append(Operator(text, path_mtu, message_bytes))
        except WeirError as error:
            raise WeirError(error.status, f"operators[{number}]: {str(error).removeprefix(f'weir: {error.status}: ')}") from error
    return operators


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
        return library.weir_operator_bytes(self.pointer, count_of("elements", elements))

    def place(self, element: int) -> int:
        """The byte where its struct or code begins."""
        return library.weir_operator_place(self.pointer, count_of("element", element))

    def pack(self, numbers: torch.Tensor) -> torch.Tensor:
        """f32 to bytes. Only where `start` gives one number for each element, as MX formats do."""
        flat = numbers.detach().to("cpu", torch.float32).contiguous().flatten()
        packed = torch.zeros(self.bytes(flat.numel()), dtype=torch.uint8)
        check(library.weir_operator_pack(self.pointer, flat.data_ptr(), flat.numel(), packed.data_ptr()))
        return packed

    def unpack(self, packed: torch.Tensor, elements: int) -> torch.Tensor:
        """The numbers of a whole tensor that was packed with so many: where each lies depends on their count."""
        expect_packed("packed", packed, self.bytes(elements))
        numbers = torch.empty(elements, dtype=torch.float32)
        check(library.weir_operator_unpack(self.pointer, packed.data_ptr(), elements, numbers.data_ptr()))
        return numbers

    def reduce(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Of packed tensors, in the order of ranks: what the network must give."""
        if not tensors:
            raise ValueError("weir_torch: tensors: found none; allowed: one of each rank")
        for rank, tensor in enumerate(tensors):
            expect_packed(f"tensors[{rank}]", tensor, tensors[0].numel())
        out = torch.zeros_like(tensors[0])
        inputs = (c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
        check(library.weir_operator_reduce(self.pointer, out.data_ptr(), ctypes.cast(inputs, c_void_p), len(tensors), out.numel()))
        return out
