# SPDX-License-Identifier: BSD-3-Clause
"""A fabric with two managers, and an etcd of three members, as processes in a namespace."""
from __future__ import annotations

import subprocess
import urllib.request
from pathlib import Path

from fabric_lab import MANAGER, Fabric
from lab import Lab
from test_control import Authority
from weir import ROOT, Skipped, wait_for

ETCDS = (ROOT / "build/etcd-server/usr/bin/etcd", Path("/usr/bin/etcd"))  # the first by tools/prepare
MEMBERS = (1, 2, 3)
MANAGERS = ("mgr1", "mgr2")
PATIENCE_S = 60


def etcd_program() -> Path:
    for program in ETCDS:
        if program.exists():
            return program
    raise Skipped(f"there is no {ETCDS[0]}: `tools/prepare test` unpacks it")


def client_url(member: int) -> str:
    return f"https://127.0.0.1:{23790 + member}"


def peer_url(member: int) -> str:
    return f"http://127.0.0.1:{23800 + member}"


def address_of_manager(manager: str) -> str:
    return f"127.0.0.1:948{manager[-1]}"


def pages_of(manager: str) -> str:
    return f"127.0.0.1:947{manager[-1]}"


class EtcdFabric(Fabric):
    """As a Fabric, whose metrics are those of the manager that leads."""

    def __init__(self, lab: Lab) -> None:
        self._etcd = etcd_program()
        self.members: dict[int, subprocess.Popen[bytes]] = {}
        self.managers: dict[str, subprocess.Popen[bytes]] = {}
        super().__init__(lab, ("train", "eval"))

    def _write_managers(self, lab: Lab) -> None:
        self._authority = Authority(lab, "etcd")
        self._certificates = {name: self._authority.sign(name) for name in ("member", "manager")}
        for member in MEMBERS:
            self.start_member(lab, member)
        certificate, key = self._certificates["manager"]
        servers = ", ".join(f'"{client_url(member)}"' for member in MEMBERS)
        store = f"etcd: [{servers}], certificate: {certificate}, key: {key}, authority: {self._authority.certificate}"
        authority = self._authority.certificate
        tls = f"tls: {{ certificate: {certificate}, key: {key}, client_authority: {authority}, switch_authority: {authority} }}\n"
        self._write("managers.json", [f"{name}.sock" for name in MANAGERS])
        for name in MANAGERS:
            lab.file(f"{name}.yaml", self._manager(name, f"{name}.sock", store, pages_of(name), address_of_manager(name)) + tls)

    def options_of(self, name: str) -> list[str]:
        """Of weirctl with this name's certificate."""
        certificate, key = self._authority.sign(name)
        return ["--tls-certificate", certificate, "--tls-key", key, "--tls-authority", self._authority.certificate]

    def start_member(self, lab: Lab, member: int) -> None:
        certificate, key = self._certificates["member"]
        cluster = ",".join(f"e{each}={peer_url(each)}" for each in MEMBERS)
        self.members[member] = self.start(
            lab, str(self._etcd), f"--name=e{member}", f"--data-dir={self.folder}/e{member}", f"--listen-client-urls={client_url(member)}",
            f"--advertise-client-urls={client_url(member)}", f"--listen-peer-urls={peer_url(member)}",
            f"--initial-advertise-peer-urls={peer_url(member)}", f"--initial-cluster={cluster}",
            f"--cert-file={certificate}", f"--key-file={key}", f"--trusted-ca-file={self._authority.certificate}", "--client-cert-auth",
            "--log-level=error")

    def start_manager(self, lab: Lab) -> None:
        for name in MANAGERS:
            self.start_one(lab, name)

    def start_one(self, lab: Lab, name: str) -> None:
        self.managers[name] = self.start(lab, str(MANAGER), str(self.folder / f"{name}.yaml"))

    def kill_member(self, member: int) -> None:
        self.members[member].kill()
        self.members[member].wait()

    def page(self, name: str, path: str) -> str:
        """Empty: it does not answer."""
        try:
            with self.namespace.entered():
                return str(urllib.request.urlopen(f"http://{pages_of(name)}{path}", timeout=3).read().decode())
        except OSError:
            return ""

    def leads(self, name: str) -> bool:
        return "weir_fabric_leader 1\n" in self.page(name, "/metrics")

    def leader(self) -> str:
        wait_for(lambda: any(map(self.leads, MANAGERS)), PATIENCE_S, "no manager leads")
        return next(filter(self.leads, MANAGERS))

    def metrics_or_nothing(self) -> str:
        return next((self.page(name, "/metrics") for name in MANAGERS if self.leads(name)), "")
