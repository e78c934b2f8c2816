# SPDX-License-Identifier: BSD-3-Clause
"""Operators written in Python: functions whose arithmetic is recorded as the text of an operator (docs/operators.md). It needs
nothing but Python, and knows none of the text's rules: the library checks what comes of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Optional, Union

Number = Union[int, float]


class Expression:
    """What a function computes with. Its operators give the text's, in parentheses."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __bool__(self) -> bool:
        raise TypeError(f"an operator has no branches: found {self.text} as a condition of Python's; right are select(c, a, b), &, | and ~")

    def __neg__(self) -> Expression:
        return Expression(f"(-{self.text})")

    def __invert__(self) -> Expression:
        return Expression(f"(~{self.text})")

    def __abs__(self) -> Expression:
        return called("abs", self)

    __hash__ = None


def _binary(sign: str) -> tuple[Callable[..., Expression], Callable[..., Expression]]:
    def straight(left: Expression, right: Any) -> Expression:
        return Expression(f"({left.text} {sign} {text_of(right)})")

    def reflected(right: Expression, left: Any) -> Expression:
        return Expression(f"({text_of(left)} {sign} {right.text})")
    return straight, reflected


for _name, _sign in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "and": "&", "or": "|", "xor": "^", "lshift": "<<",
                     "rshift": ">>"}.items():
    _straight, _reflected = _binary(_sign)
    setattr(Expression, f"__{_name}__", _straight)
    setattr(Expression, f"__r{_name}__", _reflected)
for _name, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Expression, f"__{_name}__", _binary(_sign)[0])


class Record:
    """A struct's fields, by name: `a.v`. `select` takes whole records."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    @property
    def fields(self) -> dict[str, Any]:
        return self.__dict__


def text_of(value: Any) -> str:
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"in an operator: found {value!r}; allowed: numbers, and what the function's arguments give")
    return repr(value) if value >= 0 and not repr(value).startswith("-") else f"({value!r})"


def called(function: str, *arguments: Any) -> Any:
    """The text's function of this name. Of records: field by field; what is no record goes to each."""
    records = [argument for argument in arguments if isinstance(argument, Record)]
    if not records:
        return Expression(f"{function}({', '.join(text_of(argument) for argument in arguments)})")
    return Record(**{name: called(function, *(argument.fields[name] if isinstance(argument, Record) else argument
                                              for argument in arguments)) for name in records[0].fields})


FUNCTIONS = ("select", "fma", "min", "max", "abs", "finite_abs", "is_nan", "add_sat", "sub_sat", "sqrt", "floor_log2", "pow2", "block_max",
             "block_sum", "round", "clip", "wrap", "f32", "f64", "i16", "i32", "u32", "i64", "u64", "f16", "bf16", "f8e4m3", "f8e5m2")


class Functions:
    """The text's functions, by their names there: `f.select(c, a, b)`."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in FUNCTIONS:
            raise AttributeError(f"an operator has no function {name}; allowed: {', '.join(FUNCTIONS)}")
        return functools.partial(called, name)


f = Functions()


def operator(name: str, read: str, *, fold: Callable[..., Any], lanes: Optional[str] = None, identity: str = "none",
             start: Optional[Callable[..., Any]] = None, finish: Optional[Callable[..., Any]] = None,
             flags: Optional[Mapping[int, Callable[..., Expression]]] = None) -> str:
    """The text of an operator.

    `read` and `identity` are as in the text, `lanes` the type of the first field unless it is given. `fold(a, b)` joins what has
    been summed up to the next rank's; both are a value where `read` has one field or a block, else a Record of its fields.
    `start(b)` makes the first one of rank 0's; without it, that is rank 0's. `finish(a)` gives the result, or for a block a Record of
    `scale` and `out`. `flags` says when a packet has which flag."""
    fields = [] if read.startswith("block") else [part.split()[1] for part in read.split(",")]
    incoming = as_argument({field: Expression(field) for field in fields} or {"x": Expression("(x * s)")})
    first = parts_of(start(incoming) if start else incoming)
    summed = as_argument({part: Expression(f"acc_{part}") for part in first})
    folded = parts_of(fold(summed, incoming))
    if set(folded) != set(first):
        raise ValueError(f"operator {name}: fold gives {sorted(folded)}, start {sorted(first)}; right: the same names")
    conditions = [f"flag {number} when {text_of(when(summed))}" for number, when in (flags or {}).items()]
    lines = ["weir-operator 1", f"name {name}", f"read {read}", f"lanes {lanes or (read.split()[0] if fields else 'f32')}",
             f"identity {identity}", *part_lines("start", [f"acc_{part} = {text}" for part, text in first.items()]),
             *part_lines("fold", assigned(folded)),
             *part_lines("finish", conditions + outputs(finish(summed) if finish else summed, fields))]
    return "\n".join(lines) + "\n"


def as_argument(parts: dict[str, Expression]) -> Any:
    return next(iter(parts.values())) if len(parts) == 1 else Record(**parts)


def parts_of(value: Any) -> dict[str, str]:
    fields = value.fields if isinstance(value, Record) else {"sum": value}
    return {name: text_of(part) for name, part in fields.items()}


def assigned(parts: dict[str, str]) -> list[str]:
    """All at once: each is computed before the first of them changes."""
    *others, last = parts
    return [*(f"new_{part} = {parts[part]}" for part in others), f"acc_{last} = {parts[last]}",
            *(f"acc_{part} = new_{part}" for part in others)]


def outputs(value: Any, fields: list[str]) -> list[str]:
    if not isinstance(value, Record):
        return [f"out = {text_of(value)}"]
    if not fields:
        return [f"scale = {text_of(value.scale)}", f"out = {text_of(value.out)}"]
    return [f"out.{name} = {text_of(part)}" for name, part in value.fields.items()]


def part_lines(head: str, statements: list[str]) -> list[str]:
    return [f"{head} {statements[0]}", *(f"  {statement}" for statement in statements[1:])]
