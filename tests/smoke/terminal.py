# SPDX-License-Identifier: BSD-3-Clause
"""The prompt on a pseudo-terminal."""
from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from pathlib import Path

from lab import Lab
from netns import Namespace
from weir import START_S, STOP_S, Ended, Failed, wait_for

PROMPT = "weir> "
# Values for each placeholder of the grammar, with the ports and the ring of ring_of_hosts().
VALUES = {"<name|all>": ("all", "p2"), "<id|all>": ("all", "7"), "<id>": ("7",), "<region|all>": ("all",)}
# Lines of the log, below which the prompt stands once more. They may come at any moment, and in pieces.
EVENTS = re.compile(r"\n((?:weir: [^\n]* \[[a-z_]+(?: [a-z_]+=\S+)*\]\n)+)weir> ")
BEGUN_EVENTS = re.compile(r"\n(?:weir: [^\n]*\n)*(?:w|we|wei|weir|weir:|weir: [^\n]*)?\Z")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x07")
TAB, UP, CTRL_D, CTRL_U = "\t", "\x1b[A", "\x04", "\x15"


def lines_of(grammar: str) -> list[tuple[str, str]]:
    """Each possible line of a command, and its value; "" where it has none."""
    placeholders = re.findall(r"<.*?>", grammar)
    if not placeholders:
        return [(grammar, "")]
    return [(grammar.replace(placeholders[0], value), value) for value in VALUES[placeholders[0]]]


class Terminal:
    def __init__(self, lab: Lab, namespace: Namespace, config: str | Path, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self._is_open = True
        lab.on_end(self.hang_up)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))  # lines are not broken
        self.switch = lab.weir(namespace, config, *arguments, terminal=slave)
        os.close(slave)
        self._said = ""
        self._begun = ""
        self.events: list[str] = []
        self.banner = self.until(PROMPT, START_S)

    def hang_up(self) -> None:
        if self._is_open:
            os.close(self._master)
            self._is_open = False

    def press(self, keys: str) -> None:
        """Waits until the line is being edited: libedit writes the prompt before it turns the terminal's echo off."""
        wait_for(lambda: not termios.tcgetattr(self._master)[3] & termios.ECHO, 10, "the prompt does not take keys")
        os.write(self._master, keys.encode())

    def until(self, text: str, seconds: float = 10.0) -> str:
        """The output up to and including `text`, as a person sees it; later output is for the next call."""
        deadline = time.monotonic() + seconds
        while text not in self._said:
            if time.monotonic() > deadline or not self._read(deadline):
                raise Failed(f"{text!r} was not said, but {self._said!r}")
        said, _, self._said = self._said.partition(text)
        return said + text

    def event(self, kind: str, seconds: float = 10.0) -> str:
        """The first line of the log of that kind."""
        deadline = time.monotonic() + seconds
        while not (lines := [line for line in self.events if f" [{kind} " in line]):
            if time.monotonic() > deadline or not self._read(deadline):
                raise Failed(f"the log has no {kind}, only {self.events}")
        return lines[0]

    def _read(self, deadline: float) -> bool:
        if not select.select([self._master], [], [], max(deadline - time.monotonic(), 0))[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the switch has closed its end
            self._said, self._begun = self._said + self._begun, ""
            return False
        self._take(data.decode(errors="replace"))
        return bool(data)

    def _take(self, data: str) -> None:
        """What may be the beginning of the log's lines waits for the rest."""
        text = ESCAPES.sub("", self._begun + data).replace("\r", "")
        self.events += "".join(EVENTS.findall(text)).splitlines()
        text = EVENTS.sub("", text)
        begun = BEGUN_EVENTS.search(text)
        end = begun.start() if begun else len(text)
        self._said, self._begun = self._said + text[:end], text[end:]

    def ask(self, line: str) -> str:
        """The answer to a command."""
        self.press(line + "\n")
        self.until("\n")  # the echo
        return self.until("\n" + PROMPT).removesuffix(PROMPT)

    def questions(self) -> list[str]:
        """The grammar of each `show` from `help`: "show ring <id> stuck"."""
        return re.findall(r"^  (show .*?) \[json\]  ", self.ask("help"), re.MULTILINE)

    def quit(self) -> str:
        """Ends the switch; the rest of its output."""
        self.press("quit\n")
        ended = self.end()
        if ended.status != 0:
            raise Failed(f"quit: exit status {ended.status}")
        return ended.output

    def end(self) -> Ended:
        """The rest of the output, up to the switch's end."""
        deadline = time.monotonic() + STOP_S
        while self._read(deadline):
            if time.monotonic() > deadline:
                raise Failed(f"the switch does not end: {self._said!r}")
        return Ended(self.switch.process.wait(STOP_S), self._said)
