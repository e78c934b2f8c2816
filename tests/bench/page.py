# SPDX-License-Identifier: BSD-3-Clause
"""Tables and plots of a part, and the page with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plot
from output import write_text
from parts import Part, Plot, Table
from rounds import Measured, Summary, parameter_names, values_of, varying_parameters

Rows = list[list[str]]  # the first is the heading


def cell(summary: Summary | None) -> str:
    """Median and quartiles."""
    if summary is None:
        return ""
    return f"{plot.number(summary.median)} ({plot.number(summary.low)}–{plot.number(summary.high)})"


def figure_of(measured: Measured, name: str, shows_ratio: bool) -> Summary | None:
    if name not in measured.figures:
        return None
    return measured.ratio(name) if shows_ratio else measured.figures[name].summary()


def entry(table: Table, measured: Measured) -> str:
    """The cell of one case: a median with its quartiles, or the medians of two figures."""
    names = [table.figure, table.beside] if table.beside else [table.figure]
    summaries = [figure_of(measured, name, table.shows_ratio) for name in names]
    if not table.beside:
        return cell(summaries[0])
    return " / ".join(plot.number(summary.median) for summary in summaries if summary is not None)


def fill(table: Table, cases: list[Measured]) -> Rows:
    chosen = [measured for measured in cases if measured.matches(table.where)
              and table.rows in measured.case and table.columns in measured.case]
    columns = values_of(chosen, table.columns)
    rows = [[table.rows] + [f"{column}" if isinstance(column, str) else f"{table.columns} {column}"
                            for column in columns]]
    for value in values_of(chosen, table.rows):
        found = {measured.case[table.columns]: measured for measured in chosen if measured.case[table.rows] == value}
        rows.append([str(value)] + [entry(table, found[column]) if column in found else "" for column in columns])
    return rows


def fill_all(cases: list[Measured]) -> Rows:
    """Every case with every figure, and its ratio where it has a baseline."""
    parameters = parameter_names(cases)
    figures = {name: figure for measured in cases for name, figure in measured.figures.items()}
    heading = list(parameters)
    for name, figure in figures.items():
        heading += [f"{name}, {figure.unit}"] + ([f"{name} / {figure.baseline}"] if figure.baseline else [])
    rows = [heading]
    for measured in cases:
        row = [str(measured.case.get(name, "")) for name in parameters]
        for name, figure in figures.items():
            row.append(cell(figure_of(measured, name, shows_ratio=False)))
            row += [cell(figure_of(measured, name, shows_ratio=True))] if figure.baseline else []
        rows.append(row)
    return rows


def tables_of(part: Part, cases: list[Measured]) -> Iterator[tuple[str, Rows]]:
    """Titles and contents, without empty tables."""
    for table in part.tables:
        rows = fill(table, cases)
        if len(rows) > 1:
            yield table.title, rows
    if not part.tables:
        yield f"{part.name}: {part.about}", fill_all(cases)


def as_text(rows: Rows) -> str:
    """Aligned text: the first column to the left, the others to the right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return "\n".join("  ".join(entry.ljust(width) if index == 0 else entry.rjust(width)
                               for index, (entry, width) in enumerate(zip(row, widths, strict=True))).rstrip()
                     for row in rows)


def as_markdown(rows: Rows) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def point(x: float, summary: Summary) -> plot.Point:
    return plot.Point(x, summary.median, summary.low, summary.high)


def name_of_series(measured: Measured, one: Plot, figure: str) -> str:
    parts = [str(measured.case[key]) if isinstance(measured.case[key], str) else f"{key} {measured.case[key]}"
             for key in one.series if key in measured.case]
    return ", ".join(parts + ([figure] if one.beside or not parts else []))


def series_of(chosen: list[Measured], one: Plot, figure: str, places: list[Any]) -> list[plot.Series]:
    """Places along the x axis are numbers or, for text, positions."""
    is_text = any(isinstance(place, str) for place in places)
    series: dict[str, plot.Series] = {}
    for measured in chosen:
        summary = figure_of(measured, figure, one.shows_ratio)
        name = name_of_series(measured, one, figure)
        if summary is not None:
            place = measured.case[one.x]
            series.setdefault(name, plot.Series(name)).points.append(
                point(places.index(place) if is_text else place, summary))
    for each in series.values():
        each.points.sort(key=lambda entry: entry.x)
    return list(series.values())


def all_series(chosen: list[Measured], one: Plot, places: list[Any]) -> list[plot.Series]:
    """Those of the plot's figure, then those of the figure beside it, in the same order."""
    series = series_of(chosen, one, one.figure, places)
    if one.beside:
        dashed = series_of(chosen, one, one.beside, places)
        for index, each in enumerate(dashed):
            each.beside = index
        series += dashed
    return series


def bound_of(chosen: list[Measured], one: Plot, places: list[Any]) -> list[plot.Series]:
    """The baseline's median over all cases at each place, as one series."""
    if one.shows_ratio:
        return [plot.Series("1", [plot.Point(place, 1, 1, 1) for place in places], is_bound=True)]
    points = []
    names: set[str] = set()
    for place in places:
        values = []
        for measured in chosen:
            baseline = measured.figures[one.figure].baseline if one.figure in measured.figures else None
            if measured.case[one.x] == place and baseline is not None:
                names.add(baseline)
                values.append(measured.figures[baseline].summary().median)
        if values:
            points.append(point(place, Summary.of(values)))
    return [plot.Series(" ".join(sorted(names)), points, is_bound=True)] if points else []


def draw(one: Plot, cases: list[Measured]) -> str | None:
    """The plot as SVG, or None when it would be empty."""
    chosen = [measured for measured in cases if measured.matches(one.where) and one.x in measured.case
              and one.figure in measured.figures]
    places = values_of(chosen, one.x)
    if len(places) < 2:
        return None
    figure = chosen[0].figures[one.figure]
    name = f"{one.figure} and {one.beside}" if one.beside else one.figure
    y_label = f"{name} / {figure.baseline}" if one.shows_ratio else f"{name}, {figure.unit}"
    series = all_series(chosen, one, places)
    if isinstance(places[0], str):
        return plot.bar_chart(one.title, y_label, places, series)
    return plot.line_chart(one.title, one.x, y_label, series + bound_of(chosen, one, places), one.x_scale, one.y_scale)


def plots_for(part: Part, cases: list[Measured]) -> tuple[Plot, ...]:
    """The part's plots, or one for each figure with a baseline over the number that varies most."""
    if part.plots:
        return part.plots
    varying = list(varying_parameters(cases))
    numeric = [name for name in varying if all(isinstance(value, int) for value in values_of(cases, name))]
    if not numeric:
        return ()
    x = max(numeric, key=lambda name: len(values_of(cases, name)))
    figures = {name: figure for measured in cases for name, figure in measured.figures.items() if figure.baseline}
    others = tuple(name for name in varying if name != x)
    return tuple(Plot(name, f"{part.name}: {name} over {figure.baseline}", name, x, others, shows_ratio=True)
                 for name, figure in figures.items())


def draw_all(part: Part, cases: list[Measured], folder: Path) -> list[Path]:
    drawn = []
    for one in plots_for(part, cases):
        picture = draw(one, cases)
        if picture is not None:
            path = folder / f"{part.name}-{one.name.replace(' ', '-')}.svg"
            write_text(path, picture)
            drawn.append(path)
    return drawn


def machine_lines(machine: dict[str, Any]) -> Iterator[str]:
    for name, value in machine.items():
        shown = ", ".join(f"{entry:.2f}" if isinstance(entry, float) else str(entry) for entry in value) \
            if isinstance(value, list | tuple) else value
        yield f"- {name}: {shown}"


def write_page(folder: Path, machine: dict[str, Any], sections: list[str]) -> None:
    head = ["<!-- SPDX-License-Identifier: BSD-3-Clause -->", "# Results of tools/bench", "",
            "Median (lower–upper quartile) over the rounds of each case. A share is taken round by round, of a figure and the",
            "baseline that was measured next to it. The JSON files hold every round.", "", "## Machine", ""]
    write_text(folder / "README.md", "\n".join([*head, *machine_lines(machine), "", *sections]))


def section(part: Part, cases: list[Measured], drawn: list[Path]) -> str:
    rounds = max(len(figure.values) for measured in cases for figure in measured.figures.values())
    lines = [f"## {part.name}", "", f"{part.about[0].upper()}{part.about[1:]}; {rounds} rounds, "
             f"[{part.name}.json]({part.name}.json).", ""]
    for path in drawn:
        lines += [f"![{path.stem}]({path.name})", ""]
    for title, rows in tables_of(part, cases):
        lines += [f"{title}:", "", as_markdown(rows), ""]
    return "\n".join(lines)
