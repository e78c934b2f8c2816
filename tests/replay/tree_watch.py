# SPDX-License-Identifier: BSD-3-Clause
"""What must hold on every switch and link of a tree, looked at while a network of models runs. Sums are computed by
themselves, in exact arithmetic (tests/unit/kernel_vectors.py) and level by level."""
from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from fold import AS_OPERATOR, BF16, E4M3, E5M2, ELEMENT_BYTES, F16, F32, F64, INTEGERS, OPERATIONS
from operators import EMPTY, entry, fold_by
from roce import BARRIER, BROADCAST, HELLO, INA_LEN, PARTIAL, RC_DATA, RESULT, Ina, Roce, parse_roce, serial
from switch_model import Sent
from tree import PARENT, Kind, Line, digest_of
from tree_network import EPOCH, Host, Member, Message, Network, Node, Ring, Wrong, ranks_below

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "unit"))
from kernel_vectors import reduce_floats, reduce_integers  # noqa: E402

FLOAT_NAMES = {F32: "f32", F64: "f64", F16: "f16", BF16: "bf16", E4M3: "f8e4m3", E5M2: "f8e5m2"}
INTEGER_NAMES = {dtype: f"{'u' if letter.isupper() else 'i'}{8 * ELEMENT_BYTES[dtype]}" for dtype, letter in INTEGERS.items()}
OPERATION_NAMES = ("sum", "min", "max", "product", "bitwise_and", "bitwise_or", "bitwise_xor")
assert len(OPERATION_NAMES) == OPERATIONS


@cache
def reduced(op: int, dtype: int, codes: tuple[int, ...]) -> int:
    name = OPERATION_NAMES[op]
    return int(reduce_floats(FLOAT_NAMES[dtype], name, codes) if dtype in FLOAT_NAMES
               else reduce_integers(INTEGER_NAMES[dtype], name, codes))


def folded(message: Message, parts: list[bytes], mtu: int) -> bytes:
    if message.dtype == AS_OPERATOR:
        return b"".join(fold_by(message.by, packets) for packets in zip(*(packets_of(part, mtu) for part in parts)))
    size = ELEMENT_BYTES[message.dtype]
    columns = zip(*([int.from_bytes(part[at:at + size], "little") for at in range(0, len(part), size)] for part in parts))
    return b"".join(reduced(message.op, message.dtype, column).to_bytes(size, "little") for column in columns)


def packets_of(data: bytes, mtu: int) -> list[bytes]:
    """A message's data as its packets have them."""
    return [data[max(at - INA_LEN, 0):at - INA_LEN + mtu] for at in range(0, INA_LEN + len(data), mtu)]


@cache
def sum_of(node: Node | int, lo: int, message: Message, number: int, mtu: int) -> bytes:
    """What the switch `node`, whose first rank is `lo`, makes of a message."""
    parts, at, chosen = [], lo, None
    assert isinstance(node, Node)
    for below in node.below:
        for child in [1] * below if isinstance(below, int) else [below]:
            parts.append(message.data(at, number) if child == 1 else sum_of(child, at, message, number, mtu))
            chosen = parts[-1] if at <= message.root < at + ranks_below(child) else chosen
            at += ranks_below(child)
    if message.collective == BROADCAST:
        return parts[-1] if chosen is None else chosen
    return b"" if message.collective == BARRIER else folded(message, parts, mtu)


def operators_of(ring: Ring, name: str) -> bytes:
    """The table that the switch and all below it have in common."""
    loaded = [dict(ring.loaded).get(below, ()) for below in names_in(node_named(ring.tree, name))]
    return b"".join(entry(number, operator) if all(operator in one for one in loaded) else EMPTY
                    for number, operator in ring.numbers)


def node_named(tree: Node, name: str) -> Node:
    if tree.name == name:
        return tree
    for below in tree.below:
        if isinstance(below, Node) and name in names_in(below):
            return node_named(below, name)
    raise KeyError(name)


def names_in(tree: Node) -> list[str]:
    return [tree.name] + [name for below in tree.below if isinstance(below, Node) for name in names_in(below)]


def without_changes(frame: bytes, roce: Roce) -> bytes:
    """What may differ between two frames of one PSN is left out: AckReq, IP identification, checksums."""
    masked = bytearray(frame[:roce.end])
    masked[roce.ip_at + 4:roce.ip_at + 6] = masked[roce.ip_at + 10:roce.ip_at + 12] = b"\0\0"
    masked[roce.bth_at - 2:roce.bth_at] = b"\0\0"
    masked[roce.bth_at + 8] &= 0x7F
    return bytes(masked)


class Watch:
    """Raises Wrong."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.ring: Ring = network.ring
        self.said: dict[tuple[object, ...], bytes] = {}  # by switch, its incarnation, connection and PSN
        network.observer = self.look
        network.checks.append(self.compare_flows)
        network.says_data = self.check_total

    # -- what leaves

    def look(self, member: Member, sent: Sent) -> None:
        roce = parse_roce(sent.frame)
        if sent.kind in ("forward", "flood") or roce is None or roce.opcode not in RC_DATA:
            return
        if not roce.icrc_is_right():
            raise Wrong(f"{member.place.name}: a wrong ICRC")
        line = member.switch.line(member.switch.neighbours[roce.src, roce.dst])
        self.check_port(member, sent, line)
        self.check_equal(member, sent, roce)
        self.check_packet(member, roce, line)

    def check_port(self, member: Member, sent: Sent, line: Line) -> None:
        place = member.place
        port = place.parent.port if line.receiver == PARENT and place.parent else line.receiver
        if sent.port != port:
            raise Wrong(f"{place.name}: {sent.kind} leaves by p{sent.port}, its way is p{port}")

    def check_equal(self, member: Member, sent: Sent, roce: Roce) -> None:
        now = member.switch.incarnation
        life = (now.parents_session, now.session) if now and sent.kind != "climb" else None
        key = member.place.name, id(member.switch), life, roce.connection, roce.psn
        first = self.said.setdefault(key, without_changes(sent.frame, roce))
        if first != without_changes(sent.frame, roce):
            raise Wrong(f"{member.place.name}: {sent.kind} differs from the first packet with its PSN")

    def check_packet(self, member: Member, roce: Roce, line: Line) -> None:
        host = self.network.sender_to(roce.qp, line.rank)
        number, k = self.message_at(host, roce.psn)
        goes_up = line.kind is Kind.OUTGOING
        ina = roce.ina() if k == 0 else None
        if k == 0:
            self.check_header(member, ina, number, goes_up, host.nonce)
        name = member.place.name if goes_up else self.network.root
        lo = member.place.children[0].lo if goes_up else 0
        data = (sum_of(node_named(self.ring.tree, name), lo, host.messages[number - 1], number, self.ring.mtu) if number
                else operators_of(self.ring, name))
        start = 0 if k == 0 else k * self.ring.mtu - INA_LEN
        want = data[start:(k + 1) * self.ring.mtu - INA_LEN]
        if roce.payload[INA_LEN if k == 0 else 0:] != want:
            raise Wrong(f"{member.place.name}: message {number} packet {k} goes {'up' if goes_up else 'down'} with "
                        f"other data than that of {name}")

    def message_at(self, host: Host, psn: int) -> tuple[int, int]:
        number, start = max(((n, s) for n, s in host.starts.items() if serial(psn, s, 24) >= 0), default=(0, psn))
        return number, serial(psn, start, 24)

    def check_header(self, member: Member, ina: Ina | None, number: int, goes_up: bool, nonce: int) -> None:
        now = member.switch.incarnation
        if ina is None or ina.flags != (PARTIAL if goes_up else RESULT) or ina.epoch != EPOCH:
            raise Wrong(f"{member.place.name}: message {number} leaves with the header {ina}")
        if ina.collective == HELLO and goes_up:
            want = digest_of(self.ring), member.place.children[0].lo, nonce
        elif ina.collective == HELLO:
            assert now
            want = nonce, 0, now.session
        else:
            assert now
            want = number, ina.root, now.parents_session if goes_up else now.session
        if (ina.msg, ina.root, ina.session) != want:
            raise Wrong(f"{member.place.name}: message {number} leaves with the header {ina}")

    # -- what hosts see

    def check_total(self, host: Host, number: int, _: Ina, data: bytes) -> None:
        if number and data != sum_of(self.ring.tree, 0, host.messages[number - 1], number, self.ring.mtu):
            raise Wrong(f"rank {host.rank} gets another total of message {number}")

    # -- along each connection

    def compare_flows(self) -> None:
        for rank in range(self.ring.world):
            way = self.way_of(rank)
            flows = [(name, f.a, f.s, f.e) for name, f in way]
            for name, a, s, e in flows:
                if not serial(a, s, 24) <= 0 or not serial(s, e, 24) <= 0:
                    raise Wrong(f"{name}: C_{rank} has a {a:#x}, s {s:#x}, e {e:#x}")
            for (name, a, s, _), (further, next_a, next_s, _) in zip(flows, flows[1:]):
                if not self.are_of_one_life(name, further):
                    continue
                if serial(next_s, s, 24) > 0:
                    raise Wrong(f"C_{rank}: s grows from {name}, {s:#x}, to {further}, {next_s:#x}")
                if serial(next_a, a, 24) < 0:
                    raise Wrong(f"C_{rank}: a shrinks from {name}, {a:#x}, to {further}, {next_a:#x}")
            for name, a, _, _ in flows:
                if serial(a, self.network.hosts[(rank + 1) % self.ring.world].expected, 24) > 0:
                    raise Wrong(f"{name}: C_{rank} has an a above what rank {rank + 1} has")

    def are_of_one_life(self, one: str, other: str) -> bool:
        """Neither has forgotten what the other has begun with it."""
        near, far = self.network.members[one].switch.incarnation, self.network.members[other].switch.incarnation
        assert near and far
        return near.parents_session == far.session or far.parents_session == near.session

    def way_of(self, rank: int) -> list[tuple[str, "object"]]:
        """The switches from a rank to its successor that have begun, and what they know of the connection."""
        up, down = [], []
        for name, member in self.network.members.items():
            line = next((line for line in member.switch.tree.lines if line.rank == rank), None)
            now = member.switch.incarnation
            if line is None or now is None or now.nonce != self.network.nonce:
                continue
            (up if line.kind is Kind.OUTGOING else down).append((line, name, now.connections[line.number].the_flow))
        # from the leaf up to the turn, which is the one inner line, and down again
        members = list(self.network.members)
        up.sort(key=lambda item: -members.index(item[1]))
        down.sort(key=lambda item: members.index(item[1]))
        return [(name, flow) for _, name, flow in up + down]

    # -- at the end

    def check_end(self) -> None:
        for member in self.network.members.values():
            if len(member.switch.fate) != len(member.came):
                raise Wrong(f"{member.place.name}: {len(member.came)} frames came, {len(member.switch.fate)} have a fate")

    def check_uplinks(self) -> None:
        """Without loss: one packet for each packet of one rank, each way."""
        sent = len(self.network.hosts[0].packets)
        for member in self.network.members.values():
            for child in member.place.children:
                if child.switch:
                    both = [self.network.frames_on[child.switch, member.place.name],
                            self.network.frames_on[member.place.name, child.switch]]
                    if both != [sent, sent]:
                        raise Wrong(f"between {member.place.name} and {child.switch} {both} packets, of a rank {sent}")
