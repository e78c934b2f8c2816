# SPDX-License-Identifier: BSD-3-Clause
"""A fabric's manager as a process, in a namespace, with switches and jobs that only talk."""
from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

from lab import Lab
from weir import BUILD, KILLED_WITH_US, Skipped, expect, wait_for

MANAGER = BUILD / "app" / "weir-manager"
SWITCHES = ("leaf0", "leaf1", "spine0", "spine1")
HOSTS = 6
LISTEN = "127.0.0.1:9471"
PATIENCE_S = 30
HOSTILE = "<script>document.title = 'x'</script>\"'&"
LONG = "a-name-" * 30


def address_of(host: int) -> str:
    return f"10.0.0.{host + 1}"


class Fabric:
    """Two leaves of three hosts, two spines, a manager; two jobs that have their rings."""

    def __init__(self, lab: Lab, names: tuple[str, str] = (HOSTILE, LONG)) -> None:
        if not MANAGER.exists():
            raise Skipped(f"there is no {MANAGER}")
        self.namespace, self.folder = lab.namespace(), lab.directory
        self._logs = 0
        self.say()
        lab.file("topology.yaml", self._topology())
        self._write_managers(lab)
        self._switches = self.start(lab, sys.executable, str(Path(__file__).with_name("fabric_switches.py")), str(self.folder), *SWITCHES)
        self.start_manager(lab)
        self.wait_for_all_serving()
        self._jobs: list[dict[str, Any]] = []
        self.hold(names[0], list(range(HOSTS)), tenant="red")
        self.hold(names[1], [0, 3])
        self.wait_for_placed(2)

    def _write_managers(self, lab: Lab) -> None:
        lab.file("manager.yaml", self._manager("mgr1", "manager.sock", f"sqlite: {self.folder}/fabric.db", LISTEN))

    def _manager(self, name: str, socket: str, store: str, pages: str, *more: str) -> str:
        """Where else it listens is in `more`."""
        listen = json.dumps([f"unix:{self.folder}/{socket}", *more])
        return (f"fabric: lab\nname: {name}\nlisten: {listen}\ntrees: 2\nstore: {{ {store} }}\n"
                f"topology: topology.yaml\ntenants: [{{ name: red }}]\nmetrics: {{ listen: \"{pages}\" }}\n")

    def hold(self, name: str, hosts: list[int], **more: str) -> None:
        """One job more, which holds its rings from now on."""
        self._jobs.append({"name": name, "addresses": list(map(address_of, hosts)), **more})
        self._write("jobs.json", self._jobs)

    def wait_for_all_serving(self) -> None:
        """All switches know this manager's term, then."""
        self.wait_until(lambda metrics: metrics.count('state="serving"') == len(SWITCHES), "not all switches serve")

    def wait_for_placed(self, count: int) -> None:
        self.wait_until(lambda metrics: f'weir_fabric_jobs{{state="placed"}} {count}\n' in metrics, f"not {count} jobs are placed")

    def _topology(self) -> str:
        hosts = "".join(f"  - {{ name: host{host}, address: [{address_of(host)}] }}\n" for host in range(HOSTS))
        links = "".join(f"  - {{ between: [host{host}, leaf{host // 3}], rate: 100Gbit/s, latency: 1us }}\n" for host in range(HOSTS))
        links += "".join(f"  - {{ between: [\"leaf[0-1]\", {spine}], rate: 100Gbit/s, latency: 1us }}\n" for spine in SWITCHES[2:])
        switches = "".join(f"  - {{ name: {name}, control: \"unix:{self.folder}/{name}.control\" }}\n" for name in SWITCHES)
        return f"nodes:\n{hosts}switches:\n{switches}links:\n{links}"

    def start(self, lab: Lab, *command: str) -> subprocess.Popen[bytes]:
        self._logs += 1
        with self.namespace.entered(), (self.folder / f"log{self._logs}").open("wb") as log:
            process = subprocess.Popen([*KILLED_WITH_US, *command], stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        lab.on_end(lambda: (process.kill(), process.wait()))
        return process

    def start_manager(self, lab: Lab) -> None:
        self.manager = self.start_from(lab, "manager.yaml")

    def start_from(self, lab: Lab, file: str, *options: str) -> subprocess.Popen[bytes]:
        return self.start(lab, str(MANAGER), *options, str(self.folder / file))

    def kill_manager(self) -> None:
        self.manager.kill()
        self.manager.wait()

    def say(self, **said: Any) -> None:
        """What the switches say from now on."""
        self._write("said.json", said)

    def _write(self, name: str, value: object) -> None:
        """In one step, since the switches read it meanwhile."""
        (self.folder / "new").write_text(json.dumps(value))
        (self.folder / "new").rename(self.folder / name)

    def ask(self, path: str, method: str = "GET") -> HTTPResponse:
        with self.namespace.entered():
            answer: HTTPResponse = urllib.request.urlopen(urllib.request.Request(f"http://{LISTEN}{path}", method=method), timeout=10)
            return answer

    def wait_until(self, is_so: Callable[[str], bool], otherwise: str) -> None:
        """Of the metrics."""
        wait_for(lambda: is_so(self.metrics_or_nothing()), PATIENCE_S, otherwise)

    def metrics_or_nothing(self) -> str:
        try:
            return self.ask("/metrics").read().decode()
        except OSError:
            return ""

    def log_has(self, text: str) -> bool:
        """One of what the switches, the jobs and all managers have said."""
        return any(text in log.read_text(errors="replace") for log in self.folder.glob("log*"))

    def entered(self) -> contextlib.AbstractContextManager[None]:
        return self.namespace.entered()
