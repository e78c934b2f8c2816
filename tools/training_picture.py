# SPDX-License-Identifier: BSD-3-Clause
"""The picture of tools/demo --training --compare: loss over time, and what a step is made of. An SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plot import COLOURS, line, number, round_step, text

WIDTH, HEIGHT, TOP, BOTTOM = 860, 320, 56, 52
LOSS = (56, 470)  # from the left: the first panel's sides
STEP = (560, 840)
COMPUTING = "#b9b9b9"


def picture(title: str, losses: Mapping[str, Sequence[tuple[float, float]]], steps_ms: Mapping[str, float], computing_ms: float) -> str:
    """`losses`: seconds and loss by who adds up; `steps_ms`: a step's time by the same."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', text(WIDTH / 2, 22, title, extra='font-size="15"'),
             *loss_panel(losses), *step_panel(steps_ms, computing_ms), "</svg>", ""]
    return "\n".join(parts)


def scaled(value: float, highest: float, start: float, end: float) -> float:
    return start + value / highest * (end - start)


def rows_of_numbers(highest: float, sides: tuple[int, int]) -> list[str]:
    parts, step = [], round_step(highest)
    for tick in range(int(highest / step) + 1):
        y = scaled(tick * step, highest, HEIGHT - BOTTOM, TOP)
        parts += [line(sides[0], y, sides[1], y, 'stroke="#ddd"'), text(sides[0] - 6, y + 4, number(tick * step), "end")]
    return parts


def loss_panel(losses: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    longest = max(points[-1][0] for points in losses.values())
    highest = max(loss for points in losses.values() for _, loss in points)
    step = round_step(longest)
    parts = [*rows_of_numbers(highest, LOSS), text((LOSS[0] + LOSS[1]) / 2, HEIGHT - 12, "seconds"),
             text(LOSS[0], TOP - 14, "loss, nats per letter", "start")]
    for tick in range(int(longest / step) + 1):
        parts.append(text(scaled(tick * step, longest, *LOSS), HEIGHT - BOTTOM + 18, number(tick * step)))
    for index, (name, points) in enumerate(losses.items()):
        corners = " ".join(f"{scaled(end, longest, *LOSS):.1f},{scaled(loss, highest, HEIGHT - BOTTOM, TOP):.1f}" for end, loss in points)
        parts.append(f'<polyline points="{corners}" fill="none" stroke="{COLOURS[index]}" stroke-width="2"/>')
        x = scaled(points[-1][0], longest, *LOSS)
        parts.append(line(x, HEIGHT - BOTTOM, x, scaled(points[-1][1], highest, HEIGHT - BOTTOM, TOP),
                          f'stroke="{COLOURS[index]}" stroke-dasharray="3 3"'))
        parts.append(text(LOSS[1] - 8, HEIGHT - BOTTOM - 62 + 18 * index, f"{name}: {len(points)} steps in {points[-1][0]:.1f} s", "end",
                          f'fill="{COLOURS[index]}"'))
    return parts


def step_panel(steps_ms: Mapping[str, float], computing_ms: float) -> list[str]:
    highest = max(steps_ms.values()) * 1.08
    wide = (STEP[1] - STEP[0]) / len(steps_ms)
    parts = [*rows_of_numbers(highest, STEP), text(STEP[0], TOP - 14, "ms of a step: computing (grey) and communication", "start")]
    for index, (name, step) in enumerate(steps_ms.items()):
        x, middle = STEP[0] + wide * (index + 0.2), STEP[0] + wide * (index + 0.5)
        floor, top = (scaled(value, highest, HEIGHT - BOTTOM, TOP) for value in (min(computing_ms, step), step))
        parts += [f'<rect x="{x:.1f}" y="{floor:.1f}" width="{0.6 * wide:.1f}" height="{HEIGHT - BOTTOM - floor:.1f}" fill="{COMPUTING}"/>',
                  f'<rect x="{x:.1f}" y="{top:.1f}" width="{0.6 * wide:.1f}" height="{floor - top:.1f}" fill="{COLOURS[index]}"/>',
                  text(middle, top - 5, f"{step:.0f} ms"), text(middle, HEIGHT - BOTTOM + 18, name),
                  text(middle, HEIGHT - BOTTOM + 34, f"{100 * (1 - computing_ms / step):.0f} % on the network")]
    return parts
