# SPDX-License-Identifier: BSD-3-Clause
"""Rings of which other switches have a part."""
from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from unittest.mock import patch

from hosts import captured_incarnation, frame_of, raw_link
from lab import Lab, smoke_test
from netns import Namespace, veth
from terminal import Terminal
from test_control import at_socket, foreign
from test_events import MORE_LOOKS_S, wait_for_line
from test_incarnations import with_header
from test_restarts import expect_exact
from test_rings import added
from test_worker import RENDEZVOUS, WORKER, Process
from weir import Weir, configuration, expect, wait_for

UNANSWERED_CALL_S = 8  # the switch has given up a first call by then, and would be in a second one
PARENT = "parent: { switch: spine0, port: up0 }"
TREE_PORTS = [f'name: {name}, device: "net_null{number},no-rx=1"' for number, name in enumerate(("up0", "up1", "down0", "h0", "h1"))]


def ring_of_a_tree(ring: int = 17, parent: str = PARENT, children: str = "{ rank: 1, port: h0 }, { switch: rack7, ranks: [2, 3], port: down0 }") -> str:
    members = ", ".join(f"{{ ip: 10.79.{ring}.{rank + 1} }}" for rank in range(4))
    return (f"  - {{ id: {ring}, window: 2, max_message_bytes: 2048, members: [{members}],\n"
            f"      {parent}, children: [{children}] }}\n")


@smoke_test("rings-of-a-tree")
def rings_of_a_tree(lab: Lab) -> None:
    """A ring's place in a tree comes by the file, the prompt, a reload and the control service, and is told by each."""
    def file_with(rings: str) -> str:
        room = f"spare: {{ rings: 2, members: 8, frames: 4096 }}\nstate_directory: {lab.directory / 'state'}\n"
        return at_socket(lab, configuration(TREE_PORTS, rings=rings) + room)

    def tree_of(ring: int) -> list[tuple[object, str, str]]:
        return [(row["rank"], row["switch"], row["port"]) for row in json.loads(terminal.ask(f"show ring {ring} json"))["tree"]]

    def effects() -> dict[str, str]:
        return {row["key"]: row["effect"] for row in json.loads(terminal.ask("reload json"))["changes"]}
    space = lab.namespace()
    config = lab.file("weir.yaml", file_with(ring_of_a_tree()))
    terminal = Terminal(lab, space, config)
    place = [(1, "-", "h0"), ("2-3", "rack7", "down0"), ("parent", "spine0", "up0")]
    expect(tree_of(17) == place, f"{tree_of(17)}")
    above = json.loads(terminal.ask("show ring 17 json"))["uplink"]
    expect(above == [{"climbs": 0, "partial_sums": 0, "totals": 0}], f"{above}")
    said = added(lab, terminal, ring_of_a_tree(18, "patience: 9", "{ rank: 0 }, { switch: rack7, ranks: [1, 3], port: down0 }"))
    expect(said == "added: ring 18\n", said)
    expect(tree_of(18) == [(0, "-", "-"), ("1-3", "rack7", "down0")], f"{tree_of(18)}")
    said = added(lab, terminal, ring_of_a_tree(19, "patience: 9"))
    expect("children: found children for ranks 1 to 3 of 4, and no parent:; allowed: children for ranks 0 to 3" in said, said)
    config.write_text(file_with(ring_of_a_tree().replace("spine0", "spine1").replace("port: h0", "port: h1")))
    changed = effects()
    expect(changed == {"rings[17].parent.switch": "in_place", "rings[17].children[0].port": "in_place"}, f"{changed}")
    expect(tree_of(17) == [(1, "-", "h1"), ("2-3", "rack7", "down0"), ("parent", "spine1", "up0")], f"{tree_of(17)}")
    config.write_text(file_with(ring_of_a_tree().replace("up0", "up1")))
    expect(effects()["rings[17].parent.port"] == "ring_made_anew", "another uplink")
    expect(tree_of(17)[2] == ("parent", "spine0", "up1"), f"{tree_of(17)}")
    rings = {row["ring"]["id"]: row["ring"] for row in foreign(lab, "call", "ListRings", "{}")["rings"]}
    expect(rings[17]["parent"] == {"name": "spine0", "port": "up1"}, f"{rings}")
    below = {"switch_below": {"name": "rack7", "first_rank": 2, "last_rank": 3}, "port": "down0"}
    expect(rings[17]["children"] == [{"rank": 1, "port": "h0"}, below], f"{rings}")
    terminal.ask("withdraw ring 18")
    answer = foreign(lab, "call", "AddRing", json.dumps({"ring": rings[17] | {"id": 20}}))
    expect(answer == {}, f"{answer}")
    expect(tree_of(20) == tree_of(17), f"{tree_of(20)}")
    terminal.press("quit\n")
    expect(terminal.end().status == 0, "quit")
    remembered = (lab.directory / "state/rings").read_text().splitlines()
    expect("10.79.18.1 10.79.18.2" in remembered and "10.79.18.4 10.79.18.1" in remembered, f"{remembered}")
    expect("10.79.18.2 10.79.18.3" not in remembered, f"a pair of another switch: {remembered}")
    terminal = Terminal(lab, space, config)
    expect(tree_of(17)[2] == ("parent", "spine0", "up1"), "after a restart")


@smoke_test("tree-dead-uplink")
def dead_uplink(lab: Lab) -> None:
    """The log names the rings that wait for a link to another switch, once, and says when it is back."""
    fabric, above = lab.namespace(), lab.namespace()
    veth(fabric, "up0", above, "down7")
    ports = ['name: up0, device: "net_af_packet0,iface=up0"', *TREE_PORTS[1:]]
    rings = ring_of_a_tree(17) + ring_of_a_tree(18)
    switch = lab.ready_weir(fabric, configuration(ports, rings=rings))
    above.ip("link set down7 down")
    fields = r"port=up0 switch=spine0 rings=17,18\]"
    wait_for_line(switch, r"port up0: no link to spine0, the switch above in the tree of rings 17, 18; jobs wait for it until their "
                  rf"hosts' retries end \[tree_link_down {fields}")
    time.sleep(MORE_LOOKS_S)  # it is still down
    above.ip("link set down7 up")
    wait_for_line(switch, rf"port up0: the link to spine0 is up again, .* \[tree_link_up {fields}")
    expect(switch.output().count("tree_link_") == 2, switch.output())
    switch.stop()


def ring_of_racks(place: str, window: int = 4) -> str:
    """Ring 7 of the captured hosts; the place in its tree as in YAML."""
    members = ", ".join(f"{{ ip: 10.77.0.{rank + 1} }}" for rank in range(4))
    return f"  - {{ id: 7, window: {window}, max_message_bytes: 16384, mtu: 1024, members: [{members}],\n      {place} }}\n"


ROOT_OF_RACKS = "children: [{ switch: rack0, ranks: [0, 1], port: p0 }, { switch: rack1, ranks: [2, 3], port: p1 }]"
LEAF_OF_RACKS = "parent: { switch: spine0, port: up0 }, children: [{ rank: 0, port: h0 }, { rank: 1, port: h1 }]"


class Racks:
    """A spine with ports p0 and p1, and rack0 below it with ports up0, h0 and h1; hosts 0 and 1 say hello."""

    def __init__(self, lab: Lab, leaf: str, spine: str = ring_of_racks(ROOT_OF_RACKS), cable: int = 0) -> None:
        self._above, self._below, hosts = lab.namespace(), lab.namespace(), lab.namespace()
        veth(self._above, f"p{cable}", self._below, "up0")
        veth(self._above, f"p{1 - cable}", hosts, "rack1")
        for rank in range(2):
            veth(self._below, f"h{rank}", hosts, f"host{rank}")
        self.spine = self._switch(lab, self._above, ("p0", "p1"), spine)
        self.leaf = self._switch(lab, self._below, ("up0", "h0", "h1"), leaf)
        links = [raw_link(hosts, f"host{rank}") for rank in range(2)]
        for rank, link in enumerate(links):
            lab.on_end(link.close)
            link.send(with_header(frame_of(rank, 0, captured_incarnation()), qp=0x700 + rank, ack_timeout=14))

    @staticmethod
    def _switch(lab: Lab, space: Namespace, interfaces: tuple[str, ...], ring: str) -> Weir:
        ports = [f'name: {name}, device: "net_af_packet{number},iface={name}"' for number, name in enumerate(interfaces)]
        return lab.ready_weir(space, configuration(ports, rings=ring))

    def refused(self) -> list[tuple[str, str, str, str]]:
        rows = self.spine.ask("/weir/ring,7")["refused_hellos"].values()
        return [(row["port"], row["field"], row["theirs"], row["ours"]) for row in rows]

    def stop(self) -> None:
        self.leaf.stop()
        self.spine.stop()


@smoke_test("tree-ring-that-differs")
def ring_that_differs(lab: Lab) -> None:
    """The switch above says, once, who has another ring and in what; so does its table. The one below says whose answer it lacks."""
    racks = Racks(lab, ring_of_racks(LEAF_OF_RACKS, window=8))
    wait_for_line(racks.spine, r"ring 7: rack0, the switch below at port p0 has it otherwise: window 8 \(here 4\); no job begins "
                  r"\[hello_refused ring=7 port=p0 reason=ring_differs field=window theirs=8 ours=4\]")
    time.sleep(MORE_LOOKS_S)  # it climbs again and again
    expect(racks.spine.output().count("[hello_refused ") == 1, racks.spine.output())
    expect(racks.refused() == [("p0", "window", "8", "4")], f"{racks.refused()}")
    expect(racks.leaf.ask("/weir/ring,7")["uplink"]["0"]["climbs"] > 3, "it does not climb")
    wait_for_line(racks.leaf, r"ring 7: no answer to the hellos here of the switch above, spine0 at port up0, for .* "
                  r"\[hello_missing ring=7 ranks=parent .* switch=spine0 port=up0\]", 10)
    racks.stop()


@smoke_test("tree-ring-not-above")
def ring_not_above(lab: Lab) -> None:
    """The spine has another ring. It says in one place who wants ring 7, though it has no place for that ring; and asked for ring 7, says where."""
    racks = Racks(lab, ring_of_racks(LEAF_OF_RACKS), ring_of_racks(ROOT_OF_RACKS).replace("id: 7", "id: 8"))
    wait_for_line(racks.spine, r"ring 7 is not here, but ring 8: rack0 at port p0 says hello for it; no job begins "
                  r"\[hello_refused ring=7 port=p0 reason=partial_of_unknown_ring field=ring theirs=7 ours=none\]")
    rows = [(row["ring"], row["from"], row["port"], row["field"]) for row in racks.spine.ask("/weir/hellos")["refused_hellos"].values()]
    expect(rows == [(7, "rack0", "p0", "ring")], f"{rows}")
    said = racks.spine.ask_raw("/weir/ring,7")
    expect("allowed: 8; another switch says hello for it here: see `show hellos`" in said, said)
    wait_for_line(racks.leaf, r"ring 7: no answer to the hellos here of the switch above, spine0 at port up0, for .* \[hello_missing .*", 10)
    racks.stop()


@smoke_test("tree-wrong-cable")
def wrong_cable(lab: Lab) -> None:
    """The cable of rack 0 is in rack 1's port."""
    racks = Racks(lab, ring_of_racks(LEAF_OF_RACKS), cable=1)
    wait_for_line(racks.spine, r"port p1: a hello for ring 7 has come by it, from rack0, the switch below, and belongs to port p0; is "
                  r"the cable in the right port\? \[wrong_cable port=p1 ring=7 right_port=p0\]")
    expect(racks.refused() == [("p1", "port", "p1", "p0")], f"{racks.refused()}")
    racks.stop()


def memif_port(name: str, number: int, role: str, folder: Path, server: str, cable: int) -> str:
    return f'name: {name}, device: "net_memif{number},role={role},id={cable},socket={folder}/{server}.sock,socket-abstract=no"'


RING_OVER_MEMIF = "  - { id: 7, window: 8, max_message_bytes: 32768, members: [{ ip: 10.0.0.1 }, { ip: 10.0.0.2 }, { ip: 10.0.0.3 }],\n"
OVER_MEMIF = {  # ports, as name, role, server and cable; the ring's place
    "spine": ((("down0", "server", "spine", 0), ("h2", "server", "spine", 2)),
              "      children: [{ switch: leaf, ranks: [0, 1], port: down0 }, { rank: 2, port: h2 }] }\n"),
    "leaf": ((("up0", "client", "spine", 0), ("h0", "server", "leaf", 0), ("h1", "server", "leaf", 1)),
             "      parent: { switch: spine, port: up0 }, children: [{ rank: 0, port: h0 }, { rank: 1, port: h1 }] }\n"),
}


def start_over_memif(lab: Lab, fabric: Namespace, name: str) -> Weir:
    ports, place = OVER_MEMIF[name]
    lines = [memif_port(port, number, role, lab.directory, server, cable)
             for number, (port, role, server, cable) in enumerate(ports)]
    return lab.ready_weir(fabric, configuration(lines, rings=RING_OVER_MEMIF + place))


def all_reduce_over_memif(lab: Lab, outside: Namespace) -> None:
    expect_exact([Process(lab, outside, [
        WORKER, "--rank", str(rank), "--world", "3", "--rendezvous", RENDEZVOUS, "--ring", "7", "--tree", "[[0,1],2]", "--device",
        f"net_memif0,role=client,id={rank},socket={lab.directory}/{switch}.sock,socket-abstract=no", "--ip", f"10.0.0.{rank + 1}",
        "--message-bytes", "32768", "--size", "1MiB"], RUNTIME_DIRECTORY=str(lab.directory))
        for rank, switch in enumerate(("leaf", "leaf", "spine"))])


@smoke_test("tree-memif-restart")
def memif_restart(lab: Lab) -> None:
    """A memif client connects only when it starts: when the switch above is there, or back, the one below starts its port again.

    The leaf's other links are untouched, and the next job goes through both switches."""
    fabric, outside = lab.namespace(), lab.namespace()
    leaf = start_over_memif(lab, fabric, "leaf")
    wait_for_line(leaf, r".*port up0: its link is down; the switch connects when somebody listens on .*/spine.sock \[port_down port=up0\]")
    spine = start_over_memif(lab, fabric, "spine")
    wait_for_line(leaf, r".* \[tree_link_up port=up0 .*", 15)
    all_reduce_over_memif(lab, outside)
    os.killpg(spine.process.pid, signal.SIGKILL)
    wait_for(lambda: leaf.output().count("[tree_link_down port=up0 ") == 2, 5, "it does not see that the switch above has gone")
    time.sleep(MORE_LOOKS_S)  # nobody is there
    spine = start_over_memif(lab, fabric, "spine")
    wait_for(lambda: leaf.output().count("[tree_link_up port=up0 ") == 2, 15, "the link to the switch above does not come back")
    all_reduce_over_memif(lab, outside)
    expect(leaf.output().count("tree_link_") == 4, leaf.output())
    leaf.stop()
    spine.stop()


@smoke_test("tree-memif-slow-hangup")
def memif_slow_hangup(lab: Lab) -> None:
    """A switch ends when its interrupt thread has just heard that hosts have gone. What the driver frees there is not freed twice."""
    fabric, outside = lab.namespace(), lab.namespace()
    library = lab.directory / "slow_hangup.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, Path(__file__).parent / "slow_hangup.c"], check=True)
    with patch.dict(os.environ, LD_PRELOAD=str(library)):
        spine, leaf = start_over_memif(lab, fabric, "spine"), start_over_memif(lab, fabric, "leaf")
    all_reduce_over_memif(lab, outside)
    leaf.stop()
    spine.stop()


def start_below_a_stopped_spine(lab: Lab, namespace: Namespace, spine: Weir) -> None:
    """It answers while its call waits, or is not made, and has its link when the spine goes on."""
    leaf = start_over_memif(lab, namespace, "leaf")
    time.sleep(UNANSWERED_CALL_S)
    leaf.ask("/weir/port/stats,up0")
    os.killpg(spine.process.pid, signal.SIGCONT)
    wait_for(lambda: "up" in str(leaf.ask("/weir/port/info,up0")), 15, "the link to the switch above does not come")
    leaf.stop()
    spine.stop()


@smoke_test("tree-memif-stopped-server")
def memif_stopped_server(lab: Lab) -> None:
    """A switch calls the stopped one above once, and waits in its queue. The kernel tells it nothing of the queue: that is in
    another namespace."""
    spine = start_over_memif(lab, lab.namespace(), "spine")
    os.killpg(spine.process.pid, signal.SIGSTOP)
    start_below_a_stopped_spine(lab, lab.namespace(), spine)


@smoke_test("tree-memif-full-queue")
def memif_full_queue(lab: Lab) -> None:
    """A switch does not call a stopped one in whose queue others wait: it would wait with all its locks."""
    fabric = lab.namespace()
    spine = start_over_memif(lab, fabric, "spine")
    os.killpg(spine.process.pid, signal.SIGSTOP)
    with fabric.entered():
        callers = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    for caller in callers:
        lab.on_end(caller.close)
        caller.connect(str(lab.directory / "spine.sock"))
    start_below_a_stopped_spine(lab, fabric, spine)
