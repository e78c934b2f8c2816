# SPDX-License-Identifier: BSD-3-Clause
"""A switch as a site has it: three groups of hosts, two of them tenants', a network for its control service, and files that change."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hosts import ring_7
from lab import Lab
from netns import veth
from test_control import Authority, socket_of, weirctl
from test_held_rings import MODULE
from test_metrics import LISTEN, samples, scrape
from test_worker import WORKER, Process
from weir import NO_HUGEPAGES, ONE_CORE, Ended, Weir, configuration, expect

CONTROL = "10.99.0.1:9465"
ROOM = "spare: { rings: 8, members: 32, frames: 8192 }\n"
MEMORY = NO_HUGEPAGES.replace("256", "512")
RING_OF_NOBODY = ring_7(1).replace("id: 7", "id: 8").replace("10.77.0", "10.78.0")  # it comes and goes by reloads


@dataclass(frozen=True)
class Party:
    """Hosts that have jobs together: those of the configured ring, or a tenant's."""

    name: str
    hosts: range
    rendezvous: int
    ring: int | None = None  # None: the switch makes rings for the tenant of this name

    def address(self, host: int) -> str:
        return f"10.77.0.{host + 1}"


PARTIES = (Party("house", range(4), 7471, ring=7), Party("red", range(4, 7), 7472), Party("blue", range(7, 10), 7473))
HOSTS = range(10)


class Site:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.fabric, self.outside = lab.namespace(), lab.namespace()
        for host in HOSTS:
            veth(self.fabric, f"tap{host}", self.outside, f"host{host}")
        veth(self.fabric, "control0", self.outside, "control1")
        self.fabric.ip("address add 10.99.0.1/24 dev control0")
        self.outside.ip("address add 10.99.0.2/24 dev control1")
        self.authority = Authority(lab, "site")
        self._certificates = {party.name: self.authority.sign(party.name) for party in PARTIES}
        self.certify_switch()
        self._one_reload = threading.Lock()
        self.config = lab.directory / "weir.yaml"
        self.write_config()
        self.switch: Weir = lab.ready_weir(self.fabric, self.config)

    def certify_switch(self) -> None:
        """A new certificate and a new key in the place of the old ones, as before these end."""
        self._switch_certificate = self.authority.sign("switch")

    def write_config(self, rings: str = "") -> None:
        ports = [f'name: p{host}, device: "net_af_packet{host},iface=tap{host}"' for host in HOSTS]
        certificate, key = self._switch_certificate
        self.config.write_text(
            configuration(ports, ONE_CORE, ring_7() + rings, MEMORY) + ROOM +
            f"state_directory: {self.state}\nmetrics: {{ listen: \"{LISTEN}\" }}\n"
            f'control:\n  listen: ["{CONTROL}", "unix:{socket_of(self.lab)}"]\n'
            f'  tls: {{ certificate: "{certificate}", key: "{key}", client_authority: "{self.authority.certificate}" }}\n'
            "tenants:\n  - { name: red, rings: 3 }\n  - { name: blue, rings: 3 }\n")

    @property
    def state(self) -> Path:
        return self.lab.directory / "state"

    def say(self, *words: object) -> Ended:
        """To the switch, as its operator."""
        return weirctl(*words, server=socket_of(self.lab))

    def reload(self, rings: str) -> str:
        with self._one_reload:
            self.write_config(rings)
            ended = self.say("reload")
        expect(ended.status == 0, f"reload: {ended}")
        return ended.output

    def metrics(self) -> dict[tuple[str, frozenset[str]], float]:
        return samples(scrape(self.fabric))

    def rings(self) -> set[str]:
        """By the labels of one of their metrics."""
        return {label for name, labels in self.metrics() if name == "weir_ring_ranks" for label in labels}

    def start(self, party: Party, hosts: Sequence[int], *options: str) -> list[Process]:
        return [Process(self.lab, self.outside, self._rank(party, hosts, rank, *options), WEIR_SWITCH_MODULE=str(MODULE))
                for rank in range(len(hosts))]

    def _rank(self, party: Party, hosts: Sequence[int], rank: int, *options: str) -> list[str | Path]:
        place = ["--rank", str(rank), "--world", str(len(hosts)), "--rendezvous", f"127.0.0.1:{party.rendezvous}",
                 "--device", f"iface=host{hosts[rank]}", "--ip", party.address(hosts[rank]),
                 "--window", "4", "--message-bytes", "16384", *options]
        if party.ring is not None:
            place += ["--ring", str(party.ring)]
        elif rank == 0:
            certificate, key = self._certificates[party.name]
            place += ["--switch", CONTROL, "--switch-certificate", certificate, "--switch-key", key,
                      "--switch-authority", self.authority.certificate, "--switch-name", "the-switch"]
        return [WORKER, *place]
