# SPDX-License-Identifier: BSD-3-Clause
"""A fabric whose manager is called over TLS, by a scheduler, by hosts, and by jobs that have nothing but a token."""
from __future__ import annotations

from fabric_lab import Fabric
from lab import Lab
from test_control import Authority
from weir import BUILD, Ended, run_to_end

ADDRESS = "127.0.0.1:9480"
WEIRCTL = BUILD / "app" / "weirctl"
SCHEDULER = "slurmctld"


class AllocationFabric(Fabric):
    """As a Fabric, with a tenant blue, who has host1 alone."""

    def __init__(self, lab: Lab) -> None:
        self.authority = Authority(lab, "fabric")
        self._signed: dict[str, tuple[str, str]] = {}
        super().__init__(lab, ("train", "eval"))

    def _write_managers(self, lab: Lab) -> None:
        certificate, key = self.signed("manager")
        authority = self.authority.certificate
        text = self._manager("mgr1", "manager.sock", f"sqlite: {self.folder}/fabric.db", "127.0.0.1:9471", ADDRESS)
        text = text.replace("tenants: [", 'tenants: [{ name: blue, hosts: ["host1"] }, ')
        lab.file("manager.yaml", f"{text}schedulers: [{SCHEDULER}]\ntls: {{ certificate: {certificate}, key: {key}, "
                                 f"client_authority: {authority}, switch_authority: {authority} }}\n")

    def signed(self, name: str) -> tuple[str, str]:
        """This name's certificate and key: the same files each time, since a script may read them meanwhile."""
        if name not in self._signed:
            self._signed[name] = self.authority.sign(name)
        return self._signed[name]

    def options_of(self, name: str) -> list[str]:
        """Of weirctl with this name's certificate."""
        certificate, key = self.signed(name)
        return ["--server", ADDRESS, "--tls-certificate", certificate, "--tls-key", key, "--tls-authority", self.authority.certificate]

    def ctl(self, name: str, *words: str) -> Ended:
        """Of root, by the Unix socket, without a name."""
        options = self.options_of(name) if name else ["--server", f"unix:{self.folder}/manager.sock"]
        with self.entered():
            return run_to_end([str(WEIRCTL), *options, "fabric", *words])
