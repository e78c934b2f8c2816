# SPDX-License-Identifier: BSD-3-Clause
"""Four hosts of a ring without Weir's code: they send the frames of a soft-RoCE capture and know the expected results.

A live switch draws a session for each incarnation, so a host reads it from its hello's result and writes it into its
later frames. A job that runs again has a new nonce and new queue pairs. Expected results are computed here, with
tests/replay's second implementation of docs/protocol.md: the rank's own headers, RESULT, the f32 sum in rank order, a
new ICRC.
"""
from __future__ import annotations

import random
import select
import socket
import sys
import time
from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cache

from lab import Lab
from netns import Namespace, veth
from weir import CAPTURES, ROOT, Failed, Weir, expect

sys.path.insert(0, str(ROOT / "tests" / "replay"))
import roce as model  # noqa: E402
from fold import F32, SUM, fold  # noqa: E402

RANKS = 4
WINDOW = 4  # of config/af_packet.yaml
MESSAGES = 24
STALL_S = 0.1  # a sender's timeout
TIMEOUT_S = 20.0

SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
ETH_P_ALL = 3
ACK_REQUEST_AT, ACK_REQUEST = 8, 0x80  # in the BTH (IBTA §9.2)
SO_RCVBUFFORCE = 33


@dataclass(frozen=True)
class Contribution:
    """A captured data packet of a rank."""

    roce: model.Roce
    ina: model.Ina | None
    message: int

    @property
    def data(self) -> bytes:
        return self.roce.payload[model.INA_LEN if self.ina else 0:]


@dataclass(frozen=True)
class Incarnation:
    """One run of the job: the fields in which its frames differ from those of other runs."""

    epoch: int
    nonce: int
    queue_pair: int  # the destination of every rank's frames
    session: int = 0  # known after the hello's result

    def again(self, epoch: int | None = None) -> Incarnation:
        """The job once more, with a new nonce and new queue pairs."""
        return Incarnation(self.epoch if epoch is None else epoch, self.nonce + 1, self.queue_pair + 1)

    def header(self, ina: model.Ina) -> model.Ina:
        """Without a queue pair number: these hosts acknowledge nothing, so the switch must not expect it of them."""
        session = self.nonce if ina.collective == model.HELLO else self.session
        return ina._replace(epoch=self.epoch, session=session, qp=0)


@cache
def captured_incarnation() -> Incarnation:
    hello = contributions()[0][0]
    assert hello.ina
    return Incarnation(hello.ina.epoch, hello.ina.session, hello.roce.qp)


@cache
def frame_of(rank: int, place: int, incarnation: Incarnation) -> bytes:
    """A rank's contribution."""
    own = contributions()[rank][place]
    frame, payload_at = own.roce.frame, own.roce.payload_at
    if own.ina:
        header = model.Ina.LAYOUT.pack(*incarnation.header(own.ina))
        frame = frame[:payload_at] + header + frame[payload_at + model.INA_LEN:]
    return model.resigned(frame, own.roce.bth_at + 5, incarnation.queue_pair.to_bytes(3, "big"))


@cache
def contributions() -> tuple[list[Contribution], ...]:
    """By rank and place: place 0 is the hello, then the messages' packets in the order of their PSNs."""
    ranks: tuple[list[Contribution], ...] = ([], [], [], [])
    for frame in captured():
        roce = model.parse_roce(frame)
        if roce and roce.opcode in model.RC_DATA:
            rank, ina = int(roce.src[-1]) - 1, roce.ina()
            message = ina.msg if ina else ranks[rank][-1].message
            ranks[rank].append(Contribution(roce, ina, message))
    for packets in ranks:
        assert all(model.serial(p.roce.psn, packets[0].roce.psn, 24) == place for place, p in enumerate(packets))
        assert packets[-1].message == MESSAGES
    return ranks


@cache
def captured() -> list[bytes]:
    return model.read_pcap(CAPTURES / "ring4-f32-mtu1024-psnwrap.pcap")


@cache
def acknowledgements() -> list[tuple[int, bytes]]:
    """Sender's rank and frame of all packets without data; the switch forwards them unchanged."""
    frames = [frame for frame in captured() if (roce := model.parse_roce(frame)) and roce.opcode not in model.RC_DATA]
    return [(frame[11] - 1, frame) for frame in frames]


@cache
def sums() -> list[bytes]:
    """By place."""
    return [fold(SUM, F32, [packets[place].data for packets in contributions()])
            for place in range(len(contributions()[0]))]


@cache
def result(rank: int, place: int, incarnation: Incarnation) -> bytes:
    """The frame that the successor of `rank` must get."""
    return result_of(frame_of(rank, place, incarnation), sums()[place], incarnation.session)


def result_of(frame: bytes, data: bytes, session: int) -> bytes:
    """The result of a contribution when `data` is the collective's result."""
    roce = model.parse_roce(frame)
    assert roce
    header, ina = b"", roce.ina()
    if ina:
        said = ina._replace(flags=model.RESULT, session=session)
        if ina.collective == model.HELLO:
            said = said._replace(msg=ina.session)  # the nonce tells whose result it is
        header = model.Ina.LAYOUT.pack(*said)
    changed = frame[:roce.payload_at] + header + data + frame[roce.payload_end:roce.end]
    return changed + model.icrc(changed, roce.ip_at, roce.bth_at, roce.end)


@dataclass
class Seen:
    """Counts of a whole job."""

    results: int = 0
    repeats: int = 0  # results that came a second time
    gaps: int = 0  # results that came before a missing one
    timeouts: int = 0


def raw_link(namespace: Namespace, interface: str) -> socket.socket:
    """All frames that come in by an interface; what is sent leaves by it."""
    with namespace.entered():
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    link.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    link.bind((interface, ETH_P_ALL))
    link.setblocking(False)
    return link


class Hosts:
    """Rank r's frames go to and come from the interface `host<r>` of a namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._sockets = [raw_link(namespace, f"host{rank}") for rank in range(RANKS)]
        self.incarnation = captured_incarnation()

    def close(self) -> None:
        for link in self._sockets:
            link.close()

    def replace_link(self, rank: int, link: socket.socket) -> None:
        """The rank's host is behind another link from now on."""
        self._sockets[rank].close()
        self._sockets[rank] = link

    def send_raw(self, rank: int, frame: bytes) -> None:
        self._sockets[rank].send(frame)

    def send(self, rank: int, place: int) -> None:
        self.send_raw(rank, frame_of(rank, place, self.incarnation))

    def received(self, seconds: float) -> list[tuple[int, bytes]]:
        """The frames that have come, by host; waits for at least one."""
        frames = []
        for link in select.select(self._sockets, [], [], seconds)[0]:
            try:
                for _ in range(64):
                    frames.append((self._sockets.index(link), link.recv(65535)))
            except BlockingIOError:
                pass
        return frames

    def collect(self, count: int) -> list[tuple[int, bytes]]:
        """Waits for exactly `count` frames, and checks that no more come for some time."""
        frames: list[tuple[int, bytes]] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(frames) < count and time.monotonic() < deadline:
            frames += self.received(0.1)
        frames += self.received(0.02)
        expect(len(frames) == count, f"{len(frames)} frames came, {count} should have")
        return frames

    def say_hello(self) -> None:
        for rank in range(RANKS):
            self.send(rank, 0)
        self.read_hello_results()

    def read_hello_results(self) -> None:
        frames = self.collect(RANKS)
        first = model.parse_roce(frames[0][1])
        ina = first.ina() if first else None
        expect(ina, f"no result of a hello: {model.describe(frames[0][1])}")
        assert ina is not None
        expect(ina.session != 0, "the switch's session is 0")
        self.incarnation = replace(self.incarnation, session=ina.session)
        wanted = [((rank + 1) % RANKS, result(rank, 0, self.incarnation)) for rank in range(RANKS)]
        expect(sorted(frames) == sorted(wanted), "the hellos' results are others than expected")

    def pass_acknowledgements(self) -> None:
        """Checks that each comes to its destination unchanged and in order."""
        for rank, frame in acknowledgements():
            self.send_raw(rank, frame)
        got = self.collect(len(acknowledgements()))
        for host in range(RANKS):
            sent = [frame for _, frame in acknowledgements() if frame[5] - 1 == host]
            came = [frame for where, frame in got if where == host]
            for sender in range(RANKS):
                def from_sender(frames: list[bytes]) -> list[bytes]:
                    return [frame for frame in frames if frame[11] - 1 == sender]
                expect(from_sender(sent) == from_sender(came), f"ACKs from {sender} to {host} changed on their way")


class Job:
    """Sends the places from `first` on, within the window and with losses if wanted. Earlier places are done."""

    def __init__(self, hosts: Hosts, lost_on_way_in: Set[tuple[int, int]] = frozenset(),
                 lost_on_way_out: Set[tuple[int, int]] = frozenset(), seed: int = 1, first: int = 1,
                 last: int = MESSAGES) -> None:
        self._hosts, self._random = hosts, random.Random(seed)
        self._lost_in, self._lost_out = set(lost_on_way_in), set(lost_on_way_out)
        self._lossy = bool(self._lost_in or self._lost_out)
        self._places = sum(packet.message <= last for packet in contributions()[0])
        self._next = [first] * RANKS  # by rank, the next place to send
        self._progress = [first] * RANKS  # by rank, the places that its successor has received without a gap
        self.seen = Seen()

    def run(self) -> Seen:
        quiet_since = began = time.monotonic()
        while min(self._progress) < self._places:
            sent = sum(self._send_burst(rank) for rank in self._random.sample(range(RANKS), RANKS))
            frames = self._hosts.received(0 if sent else 0.02)
            for host, frame in frames:
                self._take(host, frame)
            now = time.monotonic()
            if sent or frames:
                quiet_since = now
            elif self._lossy and now - quiet_since > STALL_S:
                self.seen.timeouts += 1
                self._next = list(self._progress)  # every sender goes back to the first packet that its receiver lacks
            if now - began > TIMEOUT_S:
                raise Failed(f"places received: {self._progress}, sent: {self._next}, of {self._places}; {self.seen}")
        expect(not self._lost_in and not self._lost_out, "not every frame that was to be lost was met")
        return self.seen

    def _send_burst(self, rank: int) -> int:
        """Sends a few packets if the window allows it: message m only after all of result m-N has come."""
        burst = 0
        for _ in range(self._random.randint(1, 8)):
            place = self._next[rank]
            if place >= self._places or contributions()[rank][place].message > self._whole(rank) + WINDOW:
                break
            self._next[rank] += 1
            if (rank, place) in self._lost_in:
                self._lost_in.remove((rank, place))
            else:
                self._hosts.send(rank, place)
            burst += 1
        return burst

    def _whole(self, host: int) -> int:
        """The newest message whose whole result has come to a host."""
        predecessor = (host - 1) % RANKS
        got = self._progress[predecessor]
        packets = contributions()[predecessor]
        return packets[got].message - 1 if got < len(packets) else MESSAGES

    def _take(self, host: int, frame: bytes) -> None:
        roce = model.parse_roce(frame)
        if roce is None or roce.opcode not in model.RC_DATA:
            raise Failed(f"host {host} got what nobody sent: {model.describe(frame)}")
        rank = int(roce.src[-1]) - 1
        place = model.serial(roce.psn, contributions()[rank][0].roce.psn, 24)
        wanted = result(rank, place, self._hosts.incarnation)
        if self._lossy and frame[roce.bth_at + ACK_REQUEST_AT] == ACK_REQUEST:  # before a stall the switch asks
            wanted = model.resigned(wanted, roce.bth_at + ACK_REQUEST_AT, bytes([ACK_REQUEST]))
        if frame != wanted or host != (rank + 1) % RANKS:
            raise Failed(f"host {host} got for rank {rank}, place {place}: {model.describe(frame)}\n"
                         + model.hex_rows(wanted, frame))
        if (rank, place) in self._lost_out:
            self._lost_out.remove((rank, place))
            return
        self._count(rank, place)

    def _count(self, rank: int, place: int) -> None:
        self.seen.results += 1
        if place == self._progress[rank]:
            self._progress[rank] += 1
            return
        expect(self._lossy, f"rank {rank}'s connection: place {place} came when {self._progress[rank]} was next")
        if place < self._progress[rank]:
            self.seen.repeats += 1
        else:
            self.seen.gaps += 1


def ring_of_hosts(lab: Lab, interface: str = "tap") -> tuple[Namespace, Hosts]:
    """The switch's namespace with tap0..tap3, or other names, and hosts behind them."""
    fabric, outside = lab.namespace(), lab.namespace()
    for rank in range(RANKS):
        veth(fabric, f"{interface}{rank}", outside, f"host{rank}")
    hosts = Hosts(outside)
    lab.on_end(hosts.close)
    return fabric, hosts


def ring_ports() -> list[str]:
    return [f'name: p{rank}, device: "net_af_packet{rank},iface=tap{rank}"' for rank in range(RANKS)]


def ring_7(window: int = WINDOW, max_message_bytes: int = 16384) -> str:
    members = "".join(f"      - {{ ip: 10.77.0.{rank + 1}, port: p{rank} }}\n" for rank in range(RANKS))
    return (f"  - id: 7\n    window: {window}\n    max_message_bytes: {max_message_bytes}\n    mtu: 1024\n"
            f"    members:\n{members}")


def ring_row(switch: Weir) -> dict[str, int]:
    """Telemetry's row of ring 7."""
    return dict(switch.ask("/weir/ring,7")["rings"]["0"])
