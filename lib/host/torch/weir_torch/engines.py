# SPDX-License-Identifier: BSD-3-Clause
"""What moves data of other devices than the CPU: streams, events and copies, as CUDA has them. It has not met a GPU yet; the
tests have an engine of threads in its place."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, byref, c_int, c_uint, c_uint32, c_uint64, c_void_p
from functools import cached_property
from itertools import count
from typing import Any, Protocol

import torch
from torch.futures import Future

Stream = Any  # an engine's own
Event = Any


class Gate(Protocol):
    """Streams wait at it for numbers, which ascend."""

    def open(self, number: int) -> None:
        """For this number and lower ones, by the CPU alone: no call of a driver, which may be busy with a stream that waits here."""


class Engine(Protocol):
    """Each call enqueues and returns at once."""

    def stream(self, device: torch.device) -> Stream:
        """A new one, that waits for no other by itself."""

    def current(self, device: torch.device) -> Stream:
        """On which the program works."""

    def memory(self, size: int) -> torch.Tensor:
        """Bytes of the CPU's that the device reaches."""

    def gate(self) -> Gate: ...

    def run(self, stream: Stream, work: Callable[[], object]) -> None:
        """Torch's own calls, on this stream."""

    def record(self, stream: Stream) -> Event: ...

    def wait(self, stream: Stream, event: Event) -> None: ...

    def is_over(self, event: Event) -> bool: ...

    def call(self, stream: Stream, function: Callable[[], None]) -> None:
        """A function of the CPU's, when the stream gets there. It calls no driver and raises nothing."""

    def hold(self, stream: Stream, gate: Gate, number: int) -> None:
        """The stream goes on when the gate is open for the number."""

    def keep(self, tensor: torch.Tensor, stream: Stream) -> None:
        """Its memory is not given to others before the stream is done with it."""

    def future(self, device: torch.device, stream: Stream, value: Any) -> Future:
        """Whose `wait` and callbacks come behind what is on the stream now."""


class CudaGate:
    """A number in memory that the GPU looks at."""

    _all: list[CudaGate] = []  # a stream may look for longer than the group lives

    def __init__(self, engine: CudaEngine) -> None:
        self._memory = engine.memory(ctypes.sizeof(c_uint32)).zero_()
        self._number = c_uint32.from_address(self._memory.data_ptr())
        self.address = c_uint64()
        check(engine.driver.cuMemHostGetDevicePointer_v2(byref(self.address), self._memory.data_ptr(), 0), "cuMemHostGetDevicePointer")
        self._all.append(self)

    def open(self, number: int) -> None:
        self._number.value = number


HOST_FUNCTION = CFUNCTYPE(None, c_void_p)
AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ: by the sign of the difference, so the number may wrap around
PROTOTYPES = {"cuStreamWaitValue32_v2": (c_void_p, c_uint64, c_uint32, c_uint),
              "cuLaunchHostFunc": (c_void_p, HOST_FUNCTION, c_void_p),
              "cuMemHostGetDevicePointer_v2": (POINTER(c_uint64), c_void_p, c_uint)}

_numbers = count(1)
_calls: dict[int, Callable[[], None]] = {}


@HOST_FUNCTION
def _make_call(number: int) -> None:
    _calls.pop(number)()


def check(result: int, what: str) -> None:
    if result != 0:
        raise RuntimeError(f"weir_torch: {what}: CUDA's driver says {result}")


class CudaEngine:
    """By torch, and by the driver where torch has nothing: streams that wait for the CPU. CUDA 11.7 and later have all of it."""

    @cached_property
    def driver(self) -> ctypes.CDLL:
        loaded = ctypes.CDLL("libcuda.so.1")
        for function, arguments in PROTOTYPES.items():
            getattr(loaded, function).restype = c_int
            getattr(loaded, function).argtypes = arguments
        return loaded

    def stream(self, device: torch.device) -> Stream:
        return torch.cuda.Stream(device)

    def current(self, device: torch.device) -> Stream:
        return torch.cuda.current_stream(device)

    def memory(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def gate(self) -> CudaGate:
        return CudaGate(self)

    def run(self, stream: Stream, work: Callable[[], object]) -> None:
        with torch.cuda.stream(stream):
            work()

    def record(self, stream: Stream) -> Event:
        return stream.record_event()

    def wait(self, stream: Stream, event: Event) -> None:
        stream.wait_event(event)

    def is_over(self, event: Event) -> bool:
        return event.query()

    def call(self, stream: Stream, function: Callable[[], None]) -> None:
        number = next(_numbers)
        _calls[number] = function
        with torch.cuda.device(stream.device):
            check(self.driver.cuLaunchHostFunc(stream.cuda_stream, _make_call, number), "cuLaunchHostFunc")

    def hold(self, stream: Stream, gate: CudaGate, number: int) -> None:
        with torch.cuda.device(stream.device):
            check(self.driver.cuStreamWaitValue32_v2(stream.cuda_stream, gate.address, number % 2**32, AT_LEAST), "cuStreamWaitValue32")

    def keep(self, tensor: torch.Tensor, stream: Stream) -> None:
        tensor.record_stream(stream)

    def future(self, device: torch.device, stream: Stream, value: Any) -> Future:
        future: Future = Future(devices=[device])
        self.run(stream, lambda: future.set_result(value))  # torch records an event there
        return future


# By the type of torch's device. The CPU has none: the library reads and writes its memory by itself.
ENGINES: dict[str, Engine] = {"cuda": CudaEngine()}
