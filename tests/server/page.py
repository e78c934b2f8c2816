# SPDX-License-Identifier: BSD-3-Clause
"""docs/deployment.md, as something to carry out: its commands and files, as they stand in its code blocks.

The page speaks of the reader's server, and the test has another one, so some words are changed. A command of a section that is
carried out is run, or named as one that is not (set_up.py).
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from install import expect  # noqa: E402

PAGE = ROOT / "docs/deployment.md"
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    text: str  # without its prompt and its remark
    by_root: bool


@dataclass
class Page:
    text: str = field(default_factory=PAGE.read_text)

    def section(self, heading: str) -> str:
        """From the heading up to the next one of its rank or above."""
        found = re.search(rf"^(#+) {re.escape(heading)}$", self.text, re.MULTILINE)
        expect(found is not None, f"docs/deployment.md has no heading {heading!r}")
        assert found is not None
        rest = self.text[found.end():]
        after = re.search(rf"^#{{1,{len(found[1])}}} ", re.sub(r"^```.*?^```$", lambda block: "x" * len(block[0]), rest,
                                                               flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
        return rest[:after.start()] if after else rest

    def commands(self, heading: str) -> list[Command]:
        """In their order. A line that ends in a backslash goes on in the next one."""
        found = []
        for _, language, body in FENCE.findall(self.section(heading)):
            if language == "":
                for prompt, text in re.findall(r"^ *([#$]) ((?:.*\\\n)*.*)$", body, re.MULTILINE):
                    found.append(Command(re.sub(r"\s+# .*$", "", text.replace("\\\n", " ")).strip(), prompt == "#"))
        return found

    def block(self, heading: str, language: str, mark: str) -> str:
        """The one block of that language below the heading that has `mark`."""
        found = [body for _, of, body in FENCE.findall(self.section(heading)) if of == language and mark in body]
        expect(len(found) == 1, f"docs/deployment.md, {heading!r}: {len(found)} {language} blocks with {mark!r}; should be one")
        return found[0]


def changed(text: str, differences: dict[str, str]) -> str:
    """The page's text for another server."""
    for words, others in differences.items():
        text = text.replace(words, others)
    return text
