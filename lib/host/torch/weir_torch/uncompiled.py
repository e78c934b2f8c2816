# SPDX-License-Identifier: BSD-3-Clause
"""What torch.compile must not look into."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """While compiled code runs, C++ code of torch calls Python's methods, which the compiler would compile too. The compiler
    is not imported for this: that takes seconds, and many programs need none."""
    if not hasattr(torch, "_disable_dynamo"):  # before torch 2.1
        return function
    hidden = torch._disable_dynamo(function)

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return (hidden if "torch._dynamo" in sys.modules else function)(*arguments, **named)
    return call


def hide_methods(kind: type, *names: str) -> None:
    for name in names:
        setattr(kind, name, uncompiled(getattr(kind, name)))
