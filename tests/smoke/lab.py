# SPDX-License-Identifier: BSD-3-Clause
"""What a test uses: namespaces, switches and files that are removed at its end; and the list of tests."""
from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from netns import Namespace
from weir import ROOT, Weir, without_probes


class Lab:
    def __init__(self, name: str) -> None:
        self._cleanup = ExitStack()
        # Not in /tmp: the switch has a private /tmp.
        directory = tempfile.TemporaryDirectory(prefix=f"weir-smoke-{name}-", dir="/var/tmp")
        self.directory = Path(self._cleanup.enter_context(directory))
        self._switches = 0

    def namespace(self) -> Namespace:
        namespace = Namespace()
        self._cleanup.callback(namespace.close)
        return namespace

    def file(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path

    def weir(self, namespace: Namespace, config: str | Path, *arguments: str, directory: Path | None = None,
             terminal: int | None = None) -> Weir:
        """Starts a switch; `config` is a file or its text. It sends no loop probes, unless the test's own file or the text
        says something of them."""
        self._switches += 1
        if isinstance(config, str):
            config = self.file(f"weir{self._switches}.yaml", without_probes(config))
        elif config.is_relative_to(ROOT / "config"):
            config = self.file(config.name, without_probes(config.read_text()))
        switch = Weir(namespace, config, self.directory / f"weir{self._switches}.log", *arguments,
                      directory=directory or self.directory, terminal=terminal)
        self._cleanup.callback(switch.close)
        return switch

    def ready_weir(self, namespace: Namespace, config: str | Path, *arguments: str) -> Weir:
        switch = self.weir(namespace, config, "--no-interactive", *arguments)
        switch.wait_ready()
        return switch

    def on_end(self, action: Callable[[], object]) -> None:
        self._cleanup.callback(action)

    def close(self) -> None:
        self._cleanup.close()


@dataclass(frozen=True)
class Test:
    name: str
    body: Callable[[Lab], None]
    hidden: bool = False  # runs only when named: the victim of another test
    is_alone: bool = False  # it looks at all of the machine: nothing runs beside it


TESTS: list[Test] = []


def smoke_test(name: str, *, hidden: bool = False, is_alone: bool = False) -> Callable[[Callable[[Lab], None]], Callable[[Lab], None]]:
    """Adds a function to the list of tests. The function raises an exception on failure."""
    def enter(body: Callable[[Lab], None]) -> Callable[[Lab], None]:
        TESTS.append(Test(name, body, hidden, is_alone))
        return body
    return enter
