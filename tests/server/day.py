# SPDX-License-Identifier: BSD-3-Clause
"""What the checks work on: the server with its hosts, and the page that they follow."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/guest")]

from image import Image  # noqa: E402
from install import expect  # noqa: E402
from machine import Result  # noqa: E402
from page import Command, Page, changed  # noqa: E402
from server import NICS, Hosts, Server  # noqa: E402

CONFIGURATION = "/etc/weir/weir.yaml"
NOBODY = "cd /; exec setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c "
PATH = "export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive; cd /root; "
BOOT_S = 600.0
ORDER_S = 240.0


@dataclass
class Day:
    folder: Path
    logs: Path
    page: Page = field(default_factory=Page)
    packages: Path = Path()
    disk: Path = Path()
    image: Image | None = None
    hosts: Hosts = field(default_factory=Hosts)
    _server: Server | None = None

    @property
    def server(self) -> Server:
        assert self._server is not None
        return self._server

    # -- the server

    def boot(self, command_line: str) -> None:
        assert self.image is not None
        self._server = Server(self.disk, self.image, command_line, self.hosts, self.logs)
        self.server.wait_up(BOOT_S)

    def run(self, text: str, status: int | None = 0) -> Result:
        """As root, in root's home."""
        result = self.server.run(PATH + text, ORDER_S, check=False)
        expect(status is None or result.status == status, f"status should be {status}: {result.complaint}")
        return result

    def run_as_user(self, text: str) -> Result:
        return self.run(f"({NOBODY} {shlex.quote(text)})")

    def carry_out(self, heading: str, differences: dict[str, str], left_out: dict[str, str]) -> dict[str, str]:
        """All commands below the heading; what each said."""
        said = {}
        for command in self.page.commands(heading):
            if command.text not in left_out:
                said[command.text] = self._carry_out(command, differences).output
        return said

    def _carry_out(self, command: Command, differences: dict[str, str]) -> Result:
        text = changed(command.text, differences)
        return self.run(text) if command.by_root else self.run_as_user(text)

    def turn_off(self) -> None:
        """As `reboot` does, to the point where the boot loader would start."""
        self.server.start("systemctl reboot")
        expect(self.server.wait_end(ORDER_S), f"it does not end:\n{self.server.console_tail()}")
        self._power_off()

    def _power_off(self) -> None:
        if self._server is not None:
            self._server.power_off()
            self._server = None

    def close(self) -> None:
        self._power_off()
        self.hosts.close()

    # -- the switch

    def journal(self) -> str:
        return self.run("journalctl --unit weir --output cat --no-pager").output

    # -- the hosts

    def workers(self, command: str, **options: str) -> list[subprocess.Popen[str]]:
        """The page's command on each host, as rank 0 has it."""
        return [self.hosts.start(rank, *changed(command, {"--rank 0": f"--rank {rank}", "host0": f"host{rank}"}).split())
                for rank in range(len(NICS))]


def check_workers(workers: list[subprocess.Popen[str]], seconds: float = 240.0) -> None:
    """Every rank had every element by way of the switch."""
    deadline = time.monotonic() + seconds
    for rank, worker in enumerate(workers):
        try:
            said, _ = worker.communicate(timeout=max(deadline - time.monotonic(), 1.0))
        except subprocess.TimeoutExpired:
            for other in workers:
                other.kill()
            said = worker.communicate()[0] + f"\n(killed after {seconds:.0f} s)"
        expect(worker.returncode == 0 and "algorithm=switch verified=every_element" in said,
               f"rank {rank}, at {NICS[rank].model}, ended with {worker.returncode} and said {said}")
