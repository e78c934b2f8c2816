#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Operators written as functions of Python (weir_torch/tracer.py), against numpy; and what such functions may not do.

`tracer.py [BUILD_DIR]`. Ends in "operator-tracer: N passed, N failed, 0 skipped"."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import verdicts
from ranks import ROOT, Weir, check_reduce


def loaded_tracer():
    """The file alone: the package needs torch."""
    spec = importlib.util.spec_from_file_location("tracer", ROOT / "lib/host/torch/weir_torch/tracer.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["tracer"] = module
    spec.loader.exec_module(module)
    return module


tracer = loaded_tracer()
f, Record, operator = tracer.f, tracer.Record, tracer.operator


def larger(a, b):
    takes = (b.v > a.v) | f.is_nan(b.v) & ~f.is_nan(a.v)
    ties = (b.v == a.v) | f.is_nan(b.v) & f.is_nan(a.v)
    return f.select(takes, b, Record(v=a.v, i=f.select(ties, f.min(a.i, b.i), a.i)))


def product(a, b):
    return Record(re=a.re * b.re - a.im * b.im, im=a.re * b.im + a.im * b.re)


def new_scale(a):
    t = f.pow2(f.max(f.floor_log2(f.block_max(f.finite_abs(a))) - 8, -127))
    return Record(scale=t, out=f.round(a / t))


WRITTEN = {
    "maxloc": lambda: operator("maxloc", "f32 v, u32 i", fold=larger, identity="v 0xff800000 i 0xffffffff"),
    "complex-product": lambda: operator("product", "f32 re, f32 im", fold=product),
    "clipped-i8-sum": lambda: operator("clipped", "i8 v", lanes="i16", identity="v 0", fold=lambda a, b: a + b, finish=f.clip,
                                       flags={0: lambda a: (a > 127) | (a < -128)}),
    "mxfp8-e4m3-sum": lambda: operator("mx", "block 32 of f8e4m3, scale e8m0", fold=lambda a, b: a + b, finish=new_scale,
                                       identity="code 0x80 scale 0x00"),
    "f32-sum": lambda: operator("sum", "f32 v", fold=lambda a, b: b + a, identity="none"),
}


def error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 (the text tells)
        return str(error)
    return "no error"


def check_mistakes(weir: Weir) -> list[str]:
    """What Python alone would take and do otherwise, and what the library refuses."""
    due = {
        "no branches: found (acc_sum < v)": lambda: operator("a", "f32 v", fold=lambda a, b: b if a < b else a),
        "found 'x'; allowed: numbers": lambda: operator("a", "f32 v", fold=lambda a, b: a + "x"),
        "no function tan; allowed: select": lambda: operator("a", "f32 v", fold=lambda a, b: f.tan(b)),
        "fold gives ['sum'], start ['i', 'v']": lambda: operator("a", "f32 v, u32 i", fold=lambda a, b: a.v + b.v),
        "line 3: ": lambda: weir.load(operator("a", "f33 v", fold=lambda a, b: a + b)),
    }
    said = {words: error_of(call) for words, call in due.items()}
    return [f"found {found!r}; should have {words!r}" for words, found in said.items() if words not in found]


def main() -> int:
    weir = Weir(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve())
    checks = [(name, lambda name=name: check_reduce(weir, WRITTEN[name](), name)) for name in WRITTEN]
    return verdicts.run("operator-tracer", [*checks, ("mistakes", lambda: check_mistakes(weir))])


if __name__ == "__main__":
    sys.exit(main())
