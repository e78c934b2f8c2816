# SPDX-License-Identifier: BSD-3-Clause
"""Line and bar charts as SVG text. Every value is a median with its quartiles, drawn as a mark with a whisker."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum
from html import escape

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 44, 62
COLOURS = ["#1b6ca8", "#c8553d", "#3d8b5f", "#8a5fa8", "#b8860b", "#4a4a4a", "#d0709c", "#5aa0a0", "#7a8b3d", "#a05a2c"]
TICKS = 5


class Scale(Enum):
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"


@dataclass(frozen=True)
class Point:
    x: float
    median: float
    low: float
    high: float


@dataclass
class Series:
    name: str
    points: list[Point] = field(default_factory=list)
    is_bound: bool = False  # a bound or baseline: dashed, grey
    beside: int | None = None  # the index of the series that it is compared with: dashed, in its colour


@dataclass(frozen=True)
class Axis:
    """Maps values to pixels."""
    low: float
    high: float
    start: float
    end: float
    scale: Scale = Scale.LINEAR

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.scale is Scale.LOGARITHMIC:
            low, high, value = math.log2(low), math.log2(high), math.log2(value)
        share = 0.5 if high == low else (value - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.scale is Scale.LOGARITHMIC:
            return [tick for tick in round_numbers(self.low) if tick <= self.high]
        step = round_step(self.high)
        return [tick * step for tick in range(round(self.high / step) + 1)]


def round_numbers(low: float) -> list[float]:
    """1, 2 and 5 times the powers of ten, of about six decades: the largest that is at most `low`, and those above."""
    power = math.floor(math.log10(low))
    numbers = [step * 10.0 ** (power + decade) for decade in range(6) for step in (1, 2, 5)]
    first = max(number for number in numbers if number <= low)
    return [number for number in numbers if number >= first]


def round_step(span: float) -> float:
    """The step of 1, 2 or 5 times a power of ten that divides the span into about TICKS pieces."""
    power = 10 ** math.floor(math.log10(span / TICKS))
    return next(step * power for step in (1, 2, 5, 10) if span / (step * power) <= TICKS + 1)


def number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def text(x: float, y: float, content: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def y_axis(series: list[Series], scale: Scale = Scale.LINEAR) -> Axis:
    highest = max((point.high for one in series for point in one.points), default=1.0) or 1.0
    if scale is Scale.LOGARITHMIC:
        numbers = round_numbers(min(point.low for one in series for point in one.points))
        return Axis(numbers[0], next(number for number in numbers if number >= highest), HEIGHT - BOTTOM, TOP, scale)
    step = round_step(highest)
    return Axis(0, math.ceil(highest * 1.02 / step) * step, HEIGHT - BOTTOM, TOP)


def draw_y_axis(axis: Axis, label: str) -> list[str]:
    parts = []
    for tick in axis.ticks():
        y = axis.place(tick)
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, 'stroke="#ddd"'))
        parts.append(text(LEFT - 8, y + 4, number(tick), "end"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(text(18, middle, label, extra=f'transform="rotate(-90 18 {middle:.1f})"'))
    return parts


def draw_legend(series: list[Series]) -> list[str]:
    parts = []
    for index, one in enumerate(series):
        y = TOP + 10 + 18 * index
        parts.append(line(WIDTH - RIGHT + 14, y, WIDTH - RIGHT + 34, y, stroke_of(one, index)))
        parts.append(text(WIDTH - RIGHT + 40, y + 4, one.name, "start"))
    return parts


def colour_of(one: Series, index: int) -> str:
    return "#999" if one.is_bound else COLOURS[(index if one.beside is None else one.beside) % len(COLOURS)]


def stroke_of(one: Series, index: int) -> str:
    dashes = ' stroke-dasharray="5 4"' if one.is_bound or one.beside is not None else ""
    return f'stroke="{colour_of(one, index)}" stroke-width="2"{dashes}'


def document(title: str, parts: list[str]) -> str:
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif" font-size="12" fill="#222">')
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    return "\n".join([head, background, text(WIDTH / 2, 22, title, extra='font-size="15"'), *parts, "</svg>", ""])


def line_chart(title: str, x_label: str, y_label: str, series: list[Series], x_scale: Scale = Scale.LINEAR,
               y_scale: Scale = Scale.LINEAR) -> str:
    """Series over a numeric parameter. A logarithmic x axis leaves values of 0 out; a logarithmic y axis allows none."""
    if x_scale is Scale.LOGARITHMIC:
        series = [replace(one, points=[point for point in one.points if point.x > 0]) for one in series]
    places = sorted({point.x for one in series for point in one.points})
    x_axis = Axis(places[0], places[-1], LEFT + 20, WIDTH - RIGHT - 20, x_scale)
    vertical = y_axis(series, y_scale)
    parts = draw_y_axis(vertical, y_label) + draw_legend(series)
    parts += [text(x_axis.place(place), HEIGHT - BOTTOM + 18, f"{place:g}") for place in places]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 18, x_label))
    for index, one in enumerate(series):
        corners = " ".join(f"{x_axis.place(point.x):.1f},{vertical.place(point.median):.1f}" for point in one.points)
        parts.append(f'<polyline points="{corners}" fill="none" {stroke_of(one, index)}/>')
        for point in one.points:
            x = x_axis.place(point.x)
            parts.append(line(x, vertical.place(point.low), x, vertical.place(point.high), stroke_of(one, index)))
            parts.append(f'<circle cx="{x:.1f}" cy="{vertical.place(point.median):.1f}" r="3" '
                         f'fill="{colour_of(one, index)}"/>')
    return document(title, parts)


def bar_chart(title: str, y_label: str, labels: list[str], series: list[Series]) -> str:
    """Groups of bars: a point's x is the index of its group's label."""
    vertical = y_axis(series)
    parts = draw_y_axis(vertical, y_label)
    group_width = (WIDTH - LEFT - RIGHT) / max(1, len(labels))
    bar_width = group_width * 0.8 / max(1, len(series))
    for index, label in enumerate(labels):
        x = LEFT + group_width * (index + 0.5)
        turned = f'transform="rotate(-25 {x:.1f} {HEIGHT - BOTTOM + 16})"' if len(labels) > 8 else ""
        parts.append(text(x, HEIGHT - BOTTOM + 16, label, extra=turned))
    for index, one in enumerate(series):
        for point in one.points:
            x = LEFT + group_width * (point.x + 0.1) + bar_width * index
            top = vertical.place(point.median)
            parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" width="{bar_width * 0.92:.1f}" '
                         f'height="{vertical.start - top:.1f}" fill="{colour_of(one, index)}"/>')
            middle = x + bar_width * 0.46
            parts.append(line(middle, vertical.place(point.low), middle, vertical.place(point.high), 'stroke="#222"'))
    return document(title, parts + draw_legend(series))
