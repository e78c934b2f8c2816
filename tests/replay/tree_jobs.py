# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on trees of switches. A network of models (tree_network.py) runs each; what came to a switch there is that switch's
capture for weir-replay. What becomes of forged frames is written by hand."""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Callable, Protocol

from fold import AS_OPERATOR, BF16, E4M3, E5M2, F16, F64, I8, I16, I32, MAX, MIN, U16, U64, XOR
from jobs import Step
from operators import EMPTY, Loaded, entries, entry, fields_by, operators_yaml
from recovery_model import ACKNOWLEDGE, plus, rebuilt
from roce import BARRIER, BROADCAST, PARTIAL, RC_DATA, RESULT, Ina, Roce, Stamped, serial
from tree import Child, Parent, Tree
from tree_network import (SEND_FIRST, SEND_LAST_IMM, SEND_MIDDLE, SEND_ONLY_IMM, STRANGER, Host, Message, Network, Node,
                          Place, Ring, Rule, first_psn, links_of, places)
from tree_watch import Watch

MS = 10**6
TWO_RACKS = Ring(Node("spine0", (Node("rack0", (2,)), Node("rack1", (2,)))))
THREE_AND_ONE = Ring(Node("spine0", (Node("rack0", (3,)), Node("rack1", (1,)))), window=2)
THREE_LEVELS = Ring(Node("core0", (Node("spine0", (Node("rack0", (2,)), 1)), Node("rack1", (2,)))), is_tied=False)

TYPES = [Message(100), Message(90, F16), Message(90, BF16), Message(200, E4M3), Message(201, E5M2), Message(30, F64),
         Message(100, I32), Message(33, U16, MAX), Message(75, I8, XOR), Message(20, U64, MIN), Message(7, I16)]
SOME = [Message(100), Message(30, I32), Message(150, F16)]  # five packets


# Each switch has other operators; what one of them lacks nobody has.
CLIPPED, MAXLOC, VALID, MXFP8 = range(128, 132)
NUMBERS = (CLIPPED, "clipped-i8-sum"), (MAXLOC, "maxloc"), (VALID, "valid-sum"), (MXFP8, "mxfp8-e4m3-sum")
LOADED = (("rack0", tuple(name for _, name in NUMBERS)), ("rack1", ("mxfp8-e4m3-sum", "clipped-i8-sum", "valid-sum")),
          ("spine0", ("clipped-i8-sum", "maxloc", "mxfp8-e4m3-sum")),
          ("core0", ("f32-sum", "clipped-i8-sum", "valid-sum", "mxfp8-e4m3-sum", "maxloc")))
OPERATORS = {"two-racks": replace(TWO_RACKS, numbers=NUMBERS, loaded=LOADED),
             "three-levels": replace(THREE_LEVELS, numbers=NUMBERS, loaded=LOADED)}
BY_OPERATORS = [Message(60, AS_OPERATOR, CLIPPED, by="clipped-i8-sum"), Message(100, AS_OPERATOR, MXFP8, by="mxfp8-e4m3-sum"),
                Message(0, AS_OPERATOR, CLIPPED, by="clipped-i8-sum"), Message(30, I32)]


# -- what a link's rule is about


def is_data(place: int) -> Callable[[Roce], bool]:
    """Any rank's packet; `place` counts PSNs from its hello's."""
    return lambda roce: roce.opcode in RC_DATA and serial(roce.psn, first_psn(rank_at(roce.src)), 24) == place


def is_answer(roce: Roce) -> bool:
    return roce.opcode == ACKNOWLEDGE


def rank_at(address: str) -> int:
    return int(address.rsplit(".", 1)[1]) - 1


def directed(ring: Ring) -> list[tuple[str, str]]:
    return [link for near, far in links_of(ring) for link in ((near, far), (far, near))]


def on_each_link(does: str) -> Callable[[Ring], list[Rule]]:
    """To one packet of a message on each link, one after the other."""
    return lambda ring: [Rule(link, is_data(2 + 2 * n), (0,), does) for n, link in enumerate(directed(ring))]


def lost_answers(ring: Ring) -> list[Rule]:
    return [Rule(link, is_answer, (1 + n // 2,)) for n, link in enumerate(directed(ring))]


def lost_twice(ring: Ring) -> list[Rule]:
    """And the first time that it is sent again."""
    return [Rule(link, is_data(3 + 3 * n), (0, 1)) for n, link in enumerate(directed(ring))]


def lost_hellos(ring: Ring) -> list[Rule]:
    return [Rule(link, is_data(0), (0,)) for link in directed(ring)]


def nothing(_: Ring) -> list[Rule]:
    return []


# -- jobs that keep the rules

Play = Callable[[Network], None]


def begin(network: Network) -> None:
    network.say_hello()
    network.run()


def send(network: Network, *messages: Message) -> None:
    network.post(list(messages))
    network.run()


def types(network: Network) -> None:
    """All-reduces of all kinds of types, one behind the other"""
    begin(network)
    send(network, *TYPES)


def collectives(network: Network) -> None:
    """Broadcasts of each rank's data, and barriers"""
    begin(network)
    send(network, *(Message(70, I32, collective=BROADCAST, root=root) for root in range(network.ring.world)),
         Message(0, collective=BARRIER), Message(5), Message(0, collective=BARRIER))


def some_rounds(network: Network) -> None:
    """Some messages, again and again"""
    begin(network)
    for _ in range(6):
        send(network, *SOME)


def late_rank(network: Network) -> None:
    """The last rank says hello late, and another one computes long: hellos climb again, and who waits is kept alive"""
    last = network.ring.world - 1
    network.say_hello(range(last))
    network.wait(50 * MS)
    network.say_hello([last])
    network.run()
    for late in (last, 0):
        network.post(SOME, [rank for rank in range(network.ring.world) if rank != late])
        network.wait(40 * MS)
        network.post(SOME, [late])
        network.run()


def receiver_without_buffer(network: Network) -> None:
    """Receivers of results that come from the same switch and from the parent have no buffer, once each"""
    begin(network)
    for rank in range(network.ring.world):
        network.hosts[rank].missing_buffers = 1
        send(network, *SOME)


def run_after_run(network: Network) -> None:
    """A run whose last rank never comes, one that works until a rank is missing, and one that takes its place"""
    last = network.ring.world - 1
    network.say_hello(range(last))
    network.wait(30 * MS)
    network.start_run()
    begin(network)
    send(network, *SOME)
    network.post(SOME, range(last))
    network.wait(30 * MS)
    network.start_run()
    network.say_hello([0])
    network.wait(MS)
    network.say_hello(range(1, last + 1))
    network.run()
    send(network, *SOME, *SOME)


def operators(network: Network) -> None:
    """Sums by operators, nested as the tree is; each switch lacks some"""
    begin(network)
    for _ in range(3):
        send(network, *BY_OPERATORS)


# -- jobs with forged frames


def forged(host: Host, place: int, header: Ina | None, more: bytes = b"", opcode: int = SEND_ONLY_IMM,
           qp: int | None = None) -> bytes:
    """A packet on a rank's connection, made by somebody on a link where that rank's frames come."""
    to = host.template(host.successor, host.responder(host.successor) if qp is None else qp)
    payload = (b"" if header is None else Ina.LAYOUT.pack(*header)) + more
    immediate = bytes(4) if "IMM" in RC_DATA[opcode][0] else b""
    return rebuilt(to, opcode, plus(first_psn(host.rank, host.run), place), immediate, payload, 0, asks=True)


def from_stranger(frame: bytes) -> bytes:
    return frame[:6] + STRANGER + frame[12:]


def next_place(host: Host) -> int:
    return serial(host.end, host.first_psn, 24)


def session_of(network: Network, name: str) -> int:
    now = network.members[name].switch.incarnation
    assert now
    return now.session


def rogue_child(network: Network) -> None:
    """A child switch sends what no switch below may send"""
    host = network.hosts[1]  # the last one of rack0
    other = host.hello_header()._replace(session=0xBAD, flags=PARTIAL)
    digest = network.members["rack0"].switch.climbing_header(other).msg
    hellos: list[tuple[str, dict[str, int]]] = [
        ("raw_from_switch", {"flags": 0}), ("result_flag", {"flags": RESULT}), ("result_flag", {"flags": RESULT | PARTIAL}),
        ("reserved_bits", {"flags": PARTIAL | 4}), ("ring_differs", {"msg": digest ^ 1}), ("range_differs", {"root": 1}),
        ("queue_pair_untold", {"qp": 0}), ("queue_pair_untold", {"qp": 1 << 24}), ("bad_nonce", {"session": 0}),
        ("bad_ack_timeout", {"ack_timeout": 32})]
    for fate, said in hellos:
        frame = forged(host, 0, other._replace(msg=digest, root=0)._replace(**said), qp=0x999)
        network.inject("spine0", frame, "drop." + fate)
    begin(network)
    send(network, *SOME)
    message = host.header(msg=4, flags=PARTIAL, session=session_of(network, "spine0"), collective=BARRIER)
    for fate, said in (("raw_from_switch", {"flags": 0}), ("result_flag", {"flags": RESULT}),
                       ("reserved_bits", {"flags": PARTIAL | 0x80}), ("wrong_session", {"session": session_of(network, "rack0")}),
                       ("wrong_epoch", {"epoch": 6})):
        network.inject("spine0", forged(host, next_place(host), message._replace(**said)), "drop." + fate)
    for fate, said in hellos[:1]:
        network.inject("spine0", forged(host, 0, other._replace(msg=digest)._replace(**said), qp=0x999), "drop." + fate)
    send(network, *SOME)
    frame = forged(network.hosts[0], next_place(host), message)  # a rank that the child covers, but not its last one
    network.inject("spine0", frame, "drop.partial_of_unknown_ring")
    send(network, *SOME)


def rogue_rank(network: Network) -> None:
    """A rank sends what only switches may send, and a stranger sends as others"""
    host = network.hosts[0]
    network.inject("rack0", forged(host, 0, host.hello_header()._replace(qp=0)), "drop.queue_pair_untold")
    network.inject("rack0", forged(host, 0, host.hello_header()._replace(flags=PARTIAL)), "drop.partial_flag")
    begin(network)
    send(network, *SOME)
    own, above = session_of(network, "rack0"), session_of(network, "spine0")
    message = host.header(msg=4, session=own, collective=BARRIER)
    for fate, said in (("partial_flag", {"flags": PARTIAL}), ("result_flag", {"flags": RESULT}),
                       ("wrong_session", {"session": above})):
        network.inject("rack0", forged(host, next_place(host), message._replace(**said)), "drop." + fate)
    entering = network.hosts[network.ring.world - 1]
    total = entering.header(msg=4, flags=RESULT, session=above, collective=BARRIER)
    for stranger in (forged(entering, next_place(entering), total), forged(host, next_place(host), message)):
        network.inject("rack0", from_stranger(stranger), "drop.wrong_port")
    send(network, *SOME)


def rogue_parent(network: Network) -> None:
    """The parent sends what is no total, totals of other incarnations, and one too early"""
    entering, rack = network.hosts[3], network.members["rack0"].switch
    result = entering.hello_header()._replace(flags=RESULT, msg=network.nonce, session=0xBAD)
    network.inject("rack0", forged(entering, 0, result), "drop.total_without_set")
    network.inject("rack0", forged(entering, 1, entering.header(msg=1, flags=RESULT, session=5)), "drop.no_connection")
    network.say_hello([0])
    network.wait(MS)
    network.inject("rack0", forged(entering, 0, result), "drop.total_without_set")
    network.say_hello([1, 2])
    network.wait(MS)
    for fate, said in (("total_without_set", {"msg": 0xBAD}), ("total_without_set", {"epoch": 4}),
                       ("raw_from_parent", {"flags": 0}), ("raw_from_parent", {"flags": RESULT | PARTIAL}),
                       ("disagree_type", {"dtype": I32}), ("queue_pair_untold", {"qp": 0}), ("bad_root", {"root": 1}),
                       ("bad_nonce", {"msg": 0})):
        network.inject("rack0", forged(entering, 0, result._replace(**said)), "drop." + fate)
    network.say_hello([3])
    network.run()
    send(network, *SOME)
    above = session_of(network, "spine0")
    for fate, said in (("hello_elsewhere", {"session": above}), ("total_without_set", {"msg": 0xBAD})):
        network.inject("rack0", forged(entering, 0, result._replace(**said), qp=0x999), "drop." + fate)
    for fate, said in (("wrong_session", {}), ("history_conflict", {"session": above})):
        network.inject("rack0", forged(entering, next_place(entering), result._replace(**said)), "drop." + fate)
    total = entering.header(msg=4, flags=RESULT, session=above, collective=BARRIER)
    for fate, said in (("raw_from_parent", {"flags": 0}), ("raw_from_parent", {"flags": PARTIAL}),
                       ("raw_from_parent", {"flags": RESULT | PARTIAL}), ("reserved_bits", {"flags": RESULT | 4}),
                       ("wrong_session", {"session": session_of(network, "rack0")}), ("wrong_epoch", {"epoch": 6}),
                       ("total_early", {})):
        network.inject("rack0", forged(entering, next_place(entering), total._replace(**said)), "drop." + fate)
    assert rack.incarnation and rack.incarnation.parents_session == above
    network.post([Message(0, collective=BARRIER)], [0])
    network.wait(10_000)
    network.inject("rack0", forged(entering, next_place(entering), total), "drop.total_early")  # the slot is filling
    network.post([Message(0, collective=BARRIER)], [1, 2, 3])
    network.run()
    send(network, *SOME)


def rogue_operators(network: Network) -> None:
    """Tables of switches that differ, or name what has not gone up; and messages by what the table lacks"""
    own, low = entries(network.ring.table), entry(CLIPPED - 1, "clipped-i8-sum")
    other, other_last = entry(CLIPPED, "maxloc"), entry(MXFP8, "maxloc")
    network.say_hello([2, 3])
    network.wait(MS)
    above = network.hosts[1]  # whose results come to rack1 from the spine
    result = above.hello_header()._replace(flags=RESULT, msg=network.nonce, session=0xBAD)
    for fate, rows in (("operator_tables_differ", own), ("operator_tables_differ", [other, EMPTY, EMPTY, EMPTY]),
                       ("operator_tables_differ", [own[0], EMPTY, EMPTY]), ("operator_tables_differ", []),
                       ("bad_hello", [low, EMPTY, EMPTY, EMPTY])):
        network.inject("rack1", with_table(above, result, rows), "drop." + fate)
    last = network.hosts[1]  # of rack0
    digest = network.members["rack0"].switch.climbing_header(last.hello_header()).msg
    climbing = last.hello_header()._replace(flags=PARTIAL, msg=digest, root=0)
    for fate, rows in (("operator_tables_differ", [other, *own[1:]]), ("operator_tables_differ", [*own[:3], other_last]),
                       ("operator_tables_differ", own[:3]), ("operator_tables_differ", []),
                       ("bad_hello", [low, *own[1:]]), ("bad_hello", [own[0], own[0], EMPTY, EMPTY])):
        network.inject("spine0", with_table(last, climbing, rows), "drop." + fate)
    network.say_hello([0, 1])
    network.run()
    send(network, *BY_OPERATORS)
    for number in (MAXLOC, VALID, MXFP8 + 1):  # rack0 has the first two
        for name, host, said in (("rack0", network.hosts[0], {"session": session_of(network, "rack0")}),
                                 ("spine0", last, {"session": session_of(network, "spine0"), "flags": PARTIAL}),
                                 ("rack0", network.hosts[3], {"session": session_of(network, "spine0"), "flags": RESULT})):
            message = host.header(msg=5, **said, **fields_by(number))
            network.inject(name, forged(host, next_place(host), message), "drop.operator_not_granted")
    send(network, *BY_OPERATORS)


def with_table(host: Host, hello: Ina, rows: list[bytes]) -> bytes:
    """A hello, or its result, with other operators."""
    return forged(host, 0, hello._replace(msg_len=sum(map(len, rows))), b"".join(rows), qp=0x999)


def partial_of_unknown_ring(network: Network) -> None:
    """Partial sums and climbing hellos of a ring that this switch does not know are never passed on"""
    begin(network)
    send(network, *SOME)
    unknown = {"ring": 9, "flags": PARTIAL}
    for host in (network.hosts[1], network.hosts[3]):  # to and from the parent
        hello = host.hello_header()._replace(**unknown)
        network.inject("rack0", forged(host, 0, hello, qp=0x777), "drop.partial_of_unknown_ring")
        network.inject("rack0", forged(host, 1, None, bytes(8), SEND_LAST_IMM, qp=0x777), "drop.unannounced")
        message = host.header(msg=1, msg_len=400)._replace(**unknown)
        network.inject("rack0", forged(host, 1, message, bytes(216), SEND_FIRST, qp=0x778), "drop.partial_of_unknown_ring")
        network.inject("rack0", forged(host, 2, None, bytes(8), SEND_MIDDLE, qp=0x778), "drop.unannounced")
    frame = forged(network.hosts[2], 0, network.hosts[2].hello_header()._replace(**unknown), qp=0x777)
    network.inject("rack0", frame, "drop.partial_of_unknown_ring")  # no neighbours of this switch
    send(network, *SOME)


# -- cases


@dataclass(frozen=True)
class TreeJob:
    """What a network does, and what its links do to it."""

    ring: Ring
    play: Play
    rules: Callable[[Ring], list[Rule]] = nothing

    @property
    def name(self) -> str:
        return f"the job {self.play.__name__} of tree_jobs.py"

    @property
    def about(self) -> str:
        return (self.play.__doc__ or "").split("\n")[0]

    @cache
    def network(self) -> Network:
        network = Network(self.ring, self.rules(self.ring))
        watch = Watch(network)
        self.play(network)
        watch.check_end()
        return network


class NetworkJob(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    def network(self) -> Network: ...


@dataclass(frozen=True)
class TreeCase:
    """One switch of a tree in a job: Configuration and Case in one."""

    name: str
    job: NetworkJob
    place: Place

    @property
    def source(self) -> str:
        return f"what came to {self.place.name} in {self.job.name}"

    def frames(self) -> list[Stamped]:
        return self.job.network().members[self.place.name].came

    def steps(self) -> list[Step]:
        """Their outcomes are compared while the network runs."""
        return []

    @property
    def ring(self) -> int:
        return self.place.ring

    @property
    def operators(self) -> tuple[str, ...]:
        return self.place.operators

    @property
    def mtu(self) -> int:
        return self.place.mtu

    @property
    def window(self) -> int:
        return self.place.window

    @property
    def members(self) -> tuple[str, ...]:
        return self.place.members

    @property
    def world(self) -> int:
        return self.place.world

    @property
    def max_message_bytes(self) -> int:
        return self.place.max_message_bytes

    @property
    def packets_per_message(self) -> int:
        return self.place.packets_per_message

    @property
    def children(self) -> tuple[Child, ...]:
        return self.place.children

    @property
    def parent(self) -> Parent | None:
        return self.place.parent

    @property
    def stations(self) -> list[tuple[str, ...]]:
        return self.place.stations

    @property
    def first_session(self) -> int:
        return self.place.first_session


TREES = {"two-racks": TWO_RACKS, "three-and-one": THREE_AND_ONE, "three-levels": THREE_LEVELS}
JOBS = {f"{name}-{tree}": TreeJob(ring, play, rules) for tree, ring in TREES.items()
        for name, play, rules in (
            ("types", types, nothing), ("collectives", collectives, nothing), ("late-rank", late_rank, nothing),
            ("losses", some_rounds, on_each_link("lose")), ("lost-answers", some_rounds, lost_answers),
            ("lost-twice", some_rounds, lost_twice), ("lost-hellos", some_rounds, lost_hellos),
            ("damage", some_rounds, on_each_link("damage")), ("repeats", some_rounds, on_each_link("repeat")),
            ("no-buffer", receiver_without_buffer, nothing), ("run-after-run", run_after_run, nothing))}
JOBS |= {"rogue-child": TreeJob(TWO_RACKS, rogue_child), "rogue-rank": TreeJob(TWO_RACKS, rogue_rank),
         "rogue-parent": TreeJob(TWO_RACKS, rogue_parent),
         "partial-of-unknown-ring": TreeJob(TWO_RACKS, partial_of_unknown_ring),
         "operators-two-racks": TreeJob(OPERATORS["two-racks"], operators, lost_hellos),
         "operators-three-levels": TreeJob(OPERATORS["three-levels"], operators, on_each_link("lose")),
         "rogue-operators": TreeJob(OPERATORS["two-racks"], rogue_operators)}
TREE_CASES = {case.name: case for name, job in JOBS.items() for place in places(job.ring)
              for case in (TreeCase(f"tree-{name}-{place.name}", job, place),)}


def tree_yaml(case: TreeCase) -> str:
    """The configuration for weir-replay."""
    place = case.place
    macs = (", ".join(f'"{mac}"' for mac in stations) for stations in case.stations)
    ports = "".join(f'  - {{ name: p{i}, device: "net_null{i}", macs: [{listed}] }}\n' for i, listed in enumerate(macs))
    parent = f"    parent: {{ switch: {place.parent.switch}, port: p{place.parent.port} }}\n" if place.parent else ""
    children = "    children:\n" + "".join(f"      - {child_yaml(child)}\n" for child in case.children)
    members = "".join(f"      - {{ ip: {ip} }}\n" for ip in case.members)
    if not Tree(place).has_switches:
        children = ""
        members = "".join(f"      - {{ ip: {ip}{port_yaml(child)} }}\n" for ip, child in zip(case.members, case.children))
    return ("# SPDX-License-Identifier: BSD-3-Clause\n"
            f"# {case.source}: {case.job.about}.\n"
            'eal:\n  options: ["--no-huge", "-m", "512", "--no-pci", "--no-shconf"]\n'
            f"ports:\n{ports}"
            "lcores:\n  - { id: 0, roles: [control, rx, worker, tx] }\n"
            "l2: { aging_s: 300 }\n"
            f"{operators_yaml([Loaded(name) for name in case.operators])}"
            f"rings:\n  - id: {case.ring}\n    window: {case.window}\n    max_message_bytes: {case.max_message_bytes}\n"
            f"    mtu: {case.mtu}\n    members:\n{members}{parent}{children}")


def child_yaml(child: Child) -> str:
    if child.switch:
        return f"{{ switch: {child.switch}, ranks: [{child.lo}, {child.hi}]{port_yaml(child)} }}"
    return f"{{ rank: {child.lo}{port_yaml(child)} }}"


def port_yaml(child: Child) -> str:
    return "" if child.port is None else f", port: p{child.port}"
