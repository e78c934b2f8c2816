#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes a manual page from what a program prints of itself, so that nothing is written twice.

    man_page.py PAGE.SECTION VERSION PURPOSE MORE COMMAND [ARGUMENT...]

COMMAND prints the text of --help, or rows as in it: two blanks, a name, two blanks or more, its meaning. MORE is a file
of further sections in man(7) that begin the page's second half; "-" for none. The page goes to standard output.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROW = re.compile(r"  (\S.*?) {2,}(\S.*)")
# An option, or a word that a person replaces.
OPTION_WORD = re.compile(r"(--?[a-z][a-z-]*)|\b([A-Z][A-Z_]*(?:\.[a-z]+)?)\b")


def escaped(text: str) -> str:
    for character, name in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("^", "\\(ha"), ("~", "\\(ti")):
        text = text.replace(character, name)
    return "\\&" + text if text.startswith(".") else text


def with_fonts(text: str) -> str:
    """Options in bold, and what stands for a value in italics."""
    def font(found: re.Match[str]) -> str:
        return f"\\fB{escaped(found[1])}\\fR" if found[1] else f"\\fI{escaped(found[2])}\\fR"
    pieces, last = [], 0
    for found in OPTION_WORD.finditer(text):
        pieces += [escaped(text[last:found.start()]), font(found)]
        last = found.end()
    return "".join([*pieces, escaped(text[last:])])


def rows(block: list[str]) -> list[str]:
    lines = []
    for line in block:
        found = ROW.fullmatch(line)
        if found is None:
            raise SystemExit(f"man_page.py: found {line!r} among rows; should be a name, two blanks and its meaning")
        name = with_fonts(found[1]) if found[1].startswith("-") else f"\\fB{escaped(found[1])}\\fR"
        lines += [".TP", name, escaped(found[2])]
    return lines


def example(block: list[str]) -> list[str]:
    """Commands are indented, and sentences are not."""
    lines: list[str] = []
    for line in block:
        if not line.startswith("  "):
            sentence = re.sub(r"^Example(, |:$)", "", line)
            lines += [".PP", escaped(sentence[:1].upper() + sentence[1:])] if sentence else [".PP"]
        elif lines[-1] == ".EE":
            lines[-1:] = [escaped(line[2:]), ".EE"]
        else:
            lines += [".EX", escaped(line), ".EE"]
    return lines


def exit_status(block: list[str]) -> list[str]:
    lines = []
    for part in " ".join(block).removeprefix("Exit:").strip().rstrip(".").split("; "):
        number, meaning = part.split(" ", 1)
        lines += [".TP", f".B {number}", escaped(meaning)]
    return lines


def synopsis(block: list[str]) -> list[str]:
    """A line that begins with the program's name is another way to call it; others go on."""
    name = block[0].removeprefix("usage: ").split()[0]
    ways = re.split(rf"(?:^usage:|\n) +{re.escape(name)} ", "\n".join(block))[1:]
    lines = [[f".B {escaped(name)}", with_fonts(" ".join(way.split()))] for way in ways]
    return [line for way in lines for line in [*way, ".br"]][:-1]


def sections(text: str) -> dict[str, list[str]]:
    """The page's sections in their order."""
    headings = ("SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS")
    found: dict[str, list[str]] = {heading: [] for heading in headings}
    for block in (part.splitlines() for part in re.split(r"\n{2,}", text.strip("\n"))):
        if block[0].startswith("usage: "):
            found["SYNOPSIS"] += synopsis(block)
        elif block[0].startswith("Exit:"):
            found["EXIT STATUS"] += exit_status(block)
        elif re.match(r"Example\b", block[0]):
            found["EXAMPLES"] += example(block)
        elif block[0].lstrip().startswith("-"):
            found["OPTIONS"] += rows(block)
        elif block[0].startswith("  "):
            found["DESCRIPTION"] += rows(block)
        else:
            found["DESCRIPTION"] += [".PP", escaped(" ".join(block))]
    return found


def page(name: str, version: str, purpose: str, more: str, text: str) -> str:
    title, section = name.rsplit(".", 1)
    lines = [f'.TH {title} {section} "" "Weir {version}" "Weir"', ".SH NAME",
             f"{escaped(title)} \\- {escaped(purpose)}"]
    for heading, body in sections(text).items():
        if body:
            lines += [f".SH {heading}", *body]
    return "\n".join(lines) + "\n" + more


def main(arguments: list[str]) -> None:
    name, version, purpose, more, *command = arguments
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sys.stdout.write(page(name, version, purpose, "" if more == "-" else Path(more).read_text(), said))


if __name__ == "__main__":
    main(sys.argv[1:])
