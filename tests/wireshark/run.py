#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds what tools/wireshark/weir.lua shows of captures and of frames made here to a parser of its own in Python.

Needs tshark. Ends in "wireshark: N passed, N failed, 0 skipped".
"""
from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "replay"))
from jobs import rebuilt  # noqa: E402
from roce import (HELLO, INA_LEN, MAGIC, PARTIAL, RC_DATA, RESULT, Ina, Roce, internet_checksum, parse_roce,  # noqa: E402
                  pcap_bytes, read_pcap)

DISSECTOR = ROOT / "tools" / "wireshark" / "weir.lua"
OWN_CAPTURES = ROOT / "tests" / "wireshark" / "captures"
CAPTURES = ROOT / "tests" / "replay" / "captures"
FIELDS = ("version", "op", "dtype", "flags", "ring", "rank", "world", "msg", "len", "epoch", "session", "nonce",
          "digest", "collective", "ack_timeout", "root", "lo", "kind", "qp", "packet", "packets", "begins_in", "repeats", "value")
SEND_ONLY, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY = 0x04, 0x06, 0x07, 0x08, 0x0A
QP, PSN = 0x12, 100

# By whether it is a hello, and whether RESULT is set: what a single switch and its hosts send.
KINDS = {(False, False): "contribution", (False, True): "total", (True, False): "hello", (True, True): "hello's result"}

Row = dict[str, list[str]]


def dissected(frames: list[bytes], columns: list[str] | None = None) -> list[Row]:
    """What tshark says of each frame: each field's values as text."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(pcap_bytes(frames))
        file.flush()
        return dissected_file(Path(file.name), columns)


def dissected_cut(frames: list[tuple[int, bytes]], columns: list[str] | None = None) -> list[Row]:
    """The same for a capture that has so many first bytes of each frame."""
    records = (struct.pack("<IIII", 0, i, min(snap, len(frame)), len(frame)) + frame[:snap]
               for i, (snap, frame) in enumerate(frames))
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + b"".join(records))
        file.flush()
        return dissected_file(Path(file.name), columns)


def dissected_file(file: Path, columns: list[str] | None = None) -> list[Row]:
    names = columns or [f"weir.{name}" for name in FIELDS]
    command = ["tshark", "-X", f"lua_script:{DISSECTOR}", "-r", str(file), "-T", "fields", "-E", "separator=|",
               "-E", "aggregator=;", *(option for name in names for option in ("-e", name))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    if "lua" in done.stderr.lower():
        raise AssertionError(done.stderr)
    keys = columns or list(FIELDS)
    return [{key: cell.split(";") if cell else [] for key, cell in zip(keys, line.split("|"))}
            for line in done.stdout.splitlines()]


def shown_in_full(frame: bytes) -> str:
    """What tshark prints of a frame with all its lines."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(pcap_bytes([frame]))
        file.flush()
        return subprocess.run(["tshark", "-X", f"lua_script:{DISSECTOR}", "-r", file.name, "-O", "weir"],
                              capture_output=True, text=True, timeout=60, check=True).stdout


def header_row(header: Ina) -> Row:
    """The fields of a header, as tshark writes them."""
    is_hello, is_result = header.collective == HELLO, bool(header.flags & RESULT)
    row = {"version": header.version, "op": header.op, "dtype": header.dtype, "ring": header.ring, "rank": header.rank,
           "world": header.world, "len": header.msg_len, "epoch": header.epoch, "collective": header.collective,
           "ack_timeout": header.ack_timeout, "root": header.root}
    texts = {key: [str(value)] for key, value in row.items()}
    texts["kind"] = [KINDS[is_hello, is_result]]
    texts["flags"], texts["qp"] = [f"0x{header.flags:02x}"], [f"0x{header.qp:08x}"]
    texts["nonce" if is_hello and not is_result else "session"] = [f"0x{header.session:08x}"]
    texts["nonce" if is_hello and is_result else "msg"] = \
        [f"0x{header.msg:08x}" if is_hello and is_result else str(header.msg)]
    return texts


def place_rows(frames: list[bytes]) -> list[Row | None]:
    """The packets' places by a walk of its own: the newest FIRST or ONLY of a connection before each packet that is not
    beyond its message. None: no packet of a message."""
    begun: dict[tuple[str, str, int], list[tuple[int, int, int]]] = {}
    seen: dict[tuple[tuple[str, str, int], int], int] = {}
    rows: list[Row | None] = []
    for number, frame in enumerate(frames, 1):
        rows.append(None)
        packet = parse_roce(frame)
        if packet is None or packet.opcode not in RC_DATA:
            continue
        header = packet.ina()
        messages = begun.setdefault(packet.connection, [])
        if header is not None and not any(packet.psn == psn for psn, _, _ in messages):
            messages.append((packet.psn, -(-(INA_LEN + header.msg_len) // len(packet.payload)), number))
        for psn, packets, first in messages:
            if (packet.psn - psn) % (1 << 24) < packets:
                row: Row = {"packet": [str((packet.psn - psn) % (1 << 24))], "packets": [str(packets)]}
                if first != number:
                    row["begins_in"] = [str(first)]
                before = seen.setdefault((packet.connection, packet.psn), number)
                if before != number:
                    row["repeats"] = [str(before)]
                rows[-1] = row
    return rows


class Captures(unittest.TestCase):
    """Soft-RoCE frames that other programs sent."""

    def hold_alike(self, name: str) -> None:
        frames = read_pcap(CAPTURES / f"{name}.pcap")
        places = place_rows(frames)
        self.assertTrue(any(places), "the capture has no message")
        for number, (frame, place, row) in enumerate(zip(frames, places, dissected(frames)), 1):
            row.pop("value")
            found = {key: value for key, value in row.items() if value}
            packet = parse_roce(frame)
            header = packet.ina() if packet is not None and packet.opcode in RC_DATA else None
            self.assertEqual(found, {**(header_row(header) if header else {}), **(place or {})}, f"{name}: frame {number}")

    def test_write(self) -> None:
        self.hold_alike("ring3-i32-mtu256-noimm")

    def test_broadcast(self) -> None:
        self.hold_alike("ring3-i32-mtu1024-broadcast")

    def test_losses_and_repeats(self) -> None:
        self.hold_alike("ring4-f32-mtu1024-loss2pct")

    def test_psn_wraps(self) -> None:
        self.hold_alike("ring4-f32-mtu1024-psnwrap")

    def test_other_rdma_is_left_alone(self) -> None:
        frames = read_pcap(CAPTURES / "roce-mix.pcap")
        for row in dissected(frames):
            self.assertEqual([value for value in row.values() if value], [])


def first_hello() -> Roce:
    for frame in read_pcap(CAPTURES / "ring3-i32-mtu256-noimm.pcap"):
        packet = parse_roce(frame)
        if packet is not None and packet.opcode in RC_DATA and packet.ina() is not None:
            return packet
    raise AssertionError("no hello in the capture")


def header(**said: int) -> Ina:
    plain = Ina(magic=MAGIC, version=2, op=0, dtype=1, flags=0, ring=7, rank=1, world=3, msg=5, msg_len=8, epoch=9,
                session=0xABCD, collective=0, ack_timeout=14, root=0, qp=0x11)
    return plain._replace(**said)


def packet(opcode: int, psn: int, payload: bytes) -> bytes:
    return rebuilt(first_hello(), opcode, QP, psn, payload, 4096)


def message(data: bytes, **said: int) -> bytes:
    return Ina.LAYOUT.pack(*header(msg_len=len(data), **said)) + data


# Type number, elements as Python packs them, and what a person expects to read. The bit patterns of f16, bf16 and f8
# are from the types' definitions: IEEE 754 binary16; bfloat16; Micikevicius et al., "FP8 Formats for Deep Learning".
ELEMENTS: tuple[tuple[int, bytes, list[str]], ...] = (
    (0, struct.pack("<3f", 1.5, -0.25, float("inf")), ["1.5", "-0.25", "inf"]),
    (1, struct.pack("<2i", -7, 2**31 - 1), ["-7", "2147483647"]),
    (2, struct.pack("<4e", 1.5, -65504, 2**-24, float("-inf")), ["1.5", "-65504", "5.96046448e-08", "-inf"]),
    (2, b"\x01\x7e\x00\x00", ["NaN", "0"]),
    (3, b"\xc0\x3f\x80\xbe\x80\x7f\xc0\x7f", ["1.5", "-0.25", "inf", "NaN"]),
    (4, struct.pack("<d", -0.1), ["-0.10000000000000001"]),
    (5, b"\x80\x7f\x00\xff", ["-128", "127", "0", "-1"]),
    (6, b"\x80\x7f\x00\xff", ["128", "127", "0", "255"]),
    (7, struct.pack("<2h", -32768, 32767), ["-32768", "32767"]),
    (8, struct.pack("<2H", 32768, 65535), ["32768", "65535"]),
    (9, struct.pack("<I", 2**32 - 1), ["4294967295"]),
    (10, struct.pack("<q", -2**63), ["-9223372036854775808"]),
    (11, struct.pack("<Q", 2**64 - 1), ["18446744073709551615"]),
    (12, b"\x38\xb8\x7e\x7f", ["1", "-1", "448", "NaN"]),
    (13, b"\x3c\x7b\x7c\x01", ["1", "57344", "inf", "1.52587891e-05"]),
)


class MadeFrames(unittest.TestCase):
    def test_elements_of_every_type(self) -> None:
        frames = [packet(WRITE_ONLY, PSN + i, message(data + bytes(-len(data) % 4), dtype=number, msg=i + 1))
                  for i, (number, data, _) in enumerate(ELEMENTS)]
        for (number, _, texts), row in zip(ELEMENTS, dissected(frames)):
            self.assertEqual(row["value"][:len(texts)], texts, f"type {number}")
        self.assertEqual({number for number, _, _ in ELEMENTS}, set(range(14)))

    def test_four_elements_at_most(self) -> None:
        row, = dissected([packet(SEND_ONLY, PSN, message(struct.pack("<6i", *range(6))))])
        self.assertEqual(row["value"], ["0", "1", "2", "3"])

    def test_elements_of_later_packets(self) -> None:
        frames = [packet(WRITE_FIRST, PSN, Ina.LAYOUT.pack(*header(msg_len=92)) + bytes(88)),
                  packet(WRITE_LAST, PSN + 1, struct.pack("<i", 77))]
        self.assertEqual(dissected(frames)[1]["value"], ["77"])

    def test_results_beside_contributions(self) -> None:
        """A capture at the switch has each packet twice. A result is no repeat of the contribution."""
        contribution = [packet(WRITE_FIRST, PSN, Ina.LAYOUT.pack(*header(msg_len=92)) + bytes(88)),
                        packet(WRITE_LAST, PSN + 1, bytes(4))]
        result = [packet(WRITE_FIRST, PSN, Ina.LAYOUT.pack(*header(msg_len=92, flags=RESULT)) + bytes(88)),
                  packet(WRITE_LAST, PSN + 1, bytes(4))]
        rows = dissected(contribution + result + result[1:])
        self.assertEqual([row["begins_in"] for row in rows], [[], ["1"], [], ["3"], ["3"]])
        self.assertEqual([row["repeats"] for row in rows], [[], [], [], [], ["4"]])

    def test_hellos_result_has_the_nonce_for_a_number(self) -> None:
        row, = dissected([packet(WRITE_ONLY, PSN, message(b"", collective=HELLO, flags=RESULT, msg=0xFEED))])
        self.assertEqual((row["nonce"], row["session"], row["msg"]), (["0x0000feed"], ["0x0000abcd"], []))

    def test_another_version(self) -> None:
        row, = dissected([packet(WRITE_ONLY, PSN, message(bytes(8), version=4))],
                         ["weir.version", "weir.ring", "weir.value", "_ws.expert.message"])
        self.assertEqual((row["weir.version"], row["weir.ring"], row["weir.value"]), (["4"], [], []))
        self.assertEqual(row["_ws.expert.message"], ["version 4: this dissector knows 2 and 3"])

    def test_operators(self) -> None:
        """A hello's table, in which a switch has left an entry empty, and a message by an operator."""
        table = bytes([129, *bytes(7), *range(32)]) + bytes(40)
        frames = [packet(WRITE_ONLY, PSN, message(table, version=3, collective=HELLO, flags=RESULT)),
                  packet(WRITE_ONLY, PSN + 1, message(bytes(8), version=3, op=129, dtype=255))]
        columns = ["weir.operator", "weir.operator.digest", "weir.len", "weir.value", "_ws.expert.message", "_ws.col.Info"]
        hello, sum_ = dissected(frames, columns)
        self.assertEqual((hello["weir.operator"], hello["weir.operator.digest"], hello["weir.len"], hello["_ws.expert.message"]),
                         (["129", "0"], [bytes(range(32)).hex()], ["80"], []))
        self.assertEqual((sum_["weir.value"], sum_["_ws.expert.message"]), ([], []))
        self.assertEqual(sum_["_ws.col.Info"], ["ring 7 rank 1/3 message 5: operator 1"])

    def test_values_without_a_meaning(self) -> None:
        row, = dissected([packet(WRITE_ONLY, PSN, message(bytes(8), op=9, dtype=14, collective=4))],
                         ["_ws.expert.message", "weir.value", "_ws.col.Info"])
        self.assertEqual([text.split(":")[0] for text in row["_ws.expert.message"]], ["9", "14", "4"])
        self.assertEqual(row["weir.value"], [])
        self.assertEqual(row["_ws.col.Info"], ["ring 7 rank 1/3 message 5: collective 4"])

    def test_what_is_no_header(self) -> None:
        whole = message(bytes(8))
        frames = [packet(WRITE_ONLY, PSN, whole[:36]), packet(WRITE_ONLY, PSN + 1, b"\0" + whole[1:]),
                  packet(WRITE_MIDDLE, PSN + 2, whole)]
        for row in dissected(frames):
            self.assertEqual([value for value in row.values() if value], [])

    def test_lines_for_people(self) -> None:
        rows = dissected([packet(WRITE_ONLY, PSN, message(bytes(8), op=1, dtype=3)),
                          packet(WRITE_ONLY, PSN, message(bytes(8), op=1, dtype=3)),
                          packet(WRITE_ONLY, PSN + 1, message(bytes(8), msg=6, collective=2, root=2, flags=RESULT))],
                         ["_ws.col.Protocol", "_ws.col.Info"])
        self.assertEqual([row["_ws.col.Info"][0] for row in rows],
                         ["ring 7 rank 1/3 message 5: min of bf16", "ring 7 rank 1/3 message 5: min of bf16 [repeat]",
                          "ring 7 rank 1/3 message 6: broadcast by rank 2 [RESULT]"])
        self.assertEqual({row["_ws.col.Protocol"][0] for row in rows}, {"WEIR"})

    def test_vlan_tag(self) -> None:
        frame = packet(WRITE_ONLY, PSN, message(bytes(8)))
        row, = dissected([frame[:12] + b"\x81\x00\x00\x2a" + frame[12:]])
        self.assertEqual(row["ring"], ["7"])


class TreeFrames(unittest.TestCase):
    """What travels between the switches of a tree: ranks 2 and 3 of 5 are below one that has a parent."""

    OWN, PARENTS = 0xABCD, 0xBEEF  # sessions
    COLUMNS = ["weir.kind", "weir.session", "weir.nonce", "weir.digest", "weir.msg", "weir.root", "weir.lo", "_ws.col.Info"]

    def row_of(self, data: bytes, **said: int) -> tuple[list[str], ...]:
        row, = dissected([packet(WRITE_ONLY, PSN, message(data, rank=3, world=5, **said))], self.COLUMNS)
        return tuple(row[column] for column in self.COLUMNS)

    def test_a_hello_that_climbs(self) -> None:
        """It has the digest for a number and the first rank of the range for a root. Its session is still the nonce."""
        self.assertEqual(self.row_of(b"", collective=HELLO, flags=PARTIAL, msg=0xD16E57, root=2, session=0xFEED),
                         (["climbing hello"], [], ["0x0000feed"], ["0x00d16e57"], [], [], ["2"],
                          ["ring 7 rank 3/5: hello of ranks 2 to 3 [PARTIAL]"]))

    def test_a_partial_sum(self) -> None:
        self.assertEqual(self.row_of(bytes(8), flags=PARTIAL, session=self.PARENTS),
                         (["partial sum"], ["0x0000beef"], [], [], ["5"], ["0"], [],
                          ["ring 7 rank 3/5 message 5: sum of i32 [PARTIAL]"]))

    def test_a_total(self) -> None:
        self.assertEqual(self.row_of(bytes(8), flags=RESULT, session=self.OWN),
                         (["total"], ["0x0000abcd"], [], [], ["5"], ["0"], [],
                          ["ring 7 rank 3/5 message 5: sum of i32 [RESULT]"]))

    def test_the_root_of_a_broadcast_is_a_rank_in_a_partial_sum_too(self) -> None:
        kind, *_, root, first, info = self.row_of(bytes(8), flags=PARTIAL, collective=2, root=1)
        self.assertEqual((kind, root, first), (["partial sum"], ["1"], []))
        self.assertEqual(info, ["ring 7 rank 3/5 message 5: broadcast by rank 1 [PARTIAL]"])

    def test_the_parents_session_is_marked(self) -> None:
        for flags, marks in ((PARTIAL, 1), (RESULT, 0), (0, 0)):
            shown = shown_in_full(packet(WRITE_ONLY, PSN, message(bytes(8), flags=flags, session=self.PARENTS)))
            self.assertEqual(shown.count("Session: 0x0000beef"), 1)
            self.assertEqual(shown.count("Session: 0x0000beef (the parent's)"), marks, flags)

    def test_no_packet_is_a_total_and_a_partial_sum(self) -> None:
        row, = dissected([packet(WRITE_ONLY, PSN, message(bytes(8), flags=RESULT | PARTIAL))], ["_ws.expert.message"])
        self.assertEqual(row["_ws.expert.message"], ["RESULT and PARTIAL: a total is no partial sum"])

    def test_what_comes_is_not_repeated_by_what_leaves(self) -> None:
        """A capture at a switch: contribution and partial sum on one connection; on another, two totals by their sessions."""
        for pair in (({}, {"flags": PARTIAL, "session": self.PARENTS}),
                     ({"flags": RESULT, "session": self.PARENTS}, {"flags": RESULT, "session": self.OWN})):
            frames = [frame for said in pair
                      for frame in (packet(WRITE_FIRST, PSN, Ina.LAYOUT.pack(*header(msg_len=92, **said)) + bytes(88)),
                                    packet(WRITE_LAST, PSN + 1, bytes(4)))]
            rows = dissected([*frames, *frames[2:]])
            self.assertEqual([row["begins_in"] for row in rows], [[], ["1"], [], ["3"], ["3"], ["3"]])
            self.assertEqual([row["repeats"] for row in rows], [[], [], [], [], ["3"], ["4"]])


def message_on(queue_pair: int) -> list[bytes]:
    """Two packets, the second one twice."""
    first, rest = Ina.LAYOUT.pack(*header(msg_len=440)) + bytes(200), bytes(240)
    return [rebuilt(first_hello(), opcode, queue_pair, psn, payload, 4096)
            for opcode, psn, payload in ((WRITE_FIRST, PSN, first), (WRITE_LAST, PSN + 1, rest), (WRITE_LAST, PSN + 1, rest))]


MESSAGE = message_on(QP)


class CutFrames(unittest.TestCase):
    """Captures that have the start of each frame (tcpdump -s)."""

    def test_a_capture_of_140_bytes_shows_what_the_whole_one_does(self) -> None:
        frames = read_pcap(CAPTURES / "ring4-f32-mtu1024-loss2pct.pcap")[:40]
        places = place_rows(frames)
        rows = dissected_file(OWN_CAPTURES / "snap140.pcap")
        self.assertEqual(len(rows), len(frames))
        for number, (frame, place, row) in enumerate(zip(frames, places, rows), 1):
            found = {key: value for key, value in row.items() if value}
            roce = parse_roce(frame)
            ina = roce.ina() if roce is not None and roce.opcode in RC_DATA else None
            self.assertEqual(found, {**(header_row(ina) if ina else {}), **(place or {})}, f"frame {number}")

    def test_every_snap_length(self) -> None:
        """110 bytes of a FIRST end with its header. The last four of a frame are its ICRC."""
        cut_in_data = (110, 111, 114, 127, 128, 200, len(MESSAGE[0]) - 5)
        snaps = (*cut_in_data, *(len(MESSAGE[0]) - cut for cut in (4, 3, 1)))
        frames = [(snap, frame) for snap in snaps for frame in message_on(snap)]
        for number, ((snap, _), row) in enumerate(zip(frames, dissected_cut(frames))):
            begins, at = number - number % 3 + 1, min(number % 3, 1)
            self.assertEqual((row["ring"], row["packet"], row["packets"]), (["7"] if at == 0 else [], [str(at)], ["2"]), snap)
            self.assertEqual(row["begins_in"], [str(begins)] if at else [], snap)
            self.assertEqual(row["repeats"], [str(begins + 1)] if number % 3 == 2 else [], snap)
            if at == 0:
                self.assertEqual(row["value"], [] if snap in cut_in_data else ["0"] * 4, snap)

    def test_says_that_the_data_is_cut(self) -> None:
        rows = dissected_cut([(114, frame) for frame in MESSAGE], ["weir.cut", "_ws.col.Info"])
        cut = "data cut by the capture: {} bytes are there"
        self.assertEqual([row["weir.cut"] for row in rows], [[cut.format("4 of 200")], *[[cut.format("60 of 240")]] * 2])
        self.assertEqual([row["_ws.col.Info"] for row in rows],
                         [["ring 7 rank 1/3 message 5: sum of i32, packet 1 of 2"],
                          ["ring 7 rank 1/3 message 5: sum of i32, packet 2 of 2"],
                          ["ring 7 rank 1/3 message 5: sum of i32, packet 2 of 2 [repeat]"]])

    def test_a_header_that_is_cut_is_none(self) -> None:
        frames = [(snap, frame) for snap in (42, 53, 54, 70, 109) for frame in message_on(snap)]
        for row in dissected_cut(frames):
            self.assertEqual([value for value in row.values() if value], [])


class QuotedFrames(unittest.TestCase):
    """An ICMP error quotes a frame that was on its way before."""

    def test_icmp_errors_are_no_packets(self) -> None:
        """Each quotes one of the first frames, some of them several times."""
        rows = dissected_file(OWN_CAPTURES / "icmp.pcap", ["weir.quoted", "weir.repeats", "weir.ring", "icmp.type"])
        self.assertTrue(any(row["weir.ring"] for row in rows), "a quote of a header is shown")
        for row in rows:
            self.assertTrue(row["icmp.type"], f"{row}: the capture has ICMP errors alone")
            self.assertEqual((row["weir.quoted"], row["weir.repeats"]), (["1"] if row["weir.ring"] else [], []))

    def test_a_quote_is_shown_and_not_learnt(self) -> None:
        for message, wrapped in ((MESSAGE, icmp_error), ([*map(over_ipv6, MESSAGE)], icmpv6_error)):
            frames = [wrapped(message[0]), message[0], wrapped(message[0]), message[1], wrapped(message[1])]
            rows = dissected(frames, ["weir.quoted", "weir.ring", "weir.packet", "weir.repeats", "weir.begins_in"])
            self.assertEqual([row["weir.packet"] for row in rows], [["0"], ["0"], ["0"], ["1"], ["1"]], wrapped.__name__)
            self.assertEqual([row["weir.quoted"] for row in rows], [["1"], [], ["1"], [], ["1"]], wrapped.__name__)
            self.assertEqual([row["weir.repeats"] for row in rows], [[]] * 5, wrapped.__name__)
            self.assertEqual([row["weir.begins_in"] for row in rows], [[], [], [], ["2"], ["2"]], wrapped.__name__)

    def test_a_quote_of_a_part_is_shown(self) -> None:
        row, = dissected([icmp_error(MESSAGE[0], 100)], ["weir.ring", "weir.cut"])
        self.assertEqual(row, {"weir.ring": ["7"], "weir.cut": ["data cut by the ICMP error: 4 of 200 bytes are there"]})


def icmp_error(frame: bytes, quoted_bytes: int = 548) -> bytes:
    """Port unreachable (RFC 792) for a frame, by its receiver."""
    quoted = frame[14:14 + quoted_bytes]
    icmp = b"\x03\x03" + internet_checksum(b"\x03\x03" + bytes(6) + quoted + bytes(len(quoted) % 2)).to_bytes(2, "big") \
        + bytes(4) + quoted
    ip = b"\x45\x00" + (20 + len(icmp)).to_bytes(2, "big") + bytes(4) + b"\x40\x01" + bytes(2) + frame[30:34] + frame[26:30]
    ip = ip[:10] + internet_checksum(ip).to_bytes(2, "big") + ip[12:]
    return frame[6:12] + frame[:6] + b"\x08\x00" + ip + icmp


V6_ADDRESSES = bytes(15) + b"\x01" + bytes(15) + b"\x02"


def over_ipv6(frame: bytes) -> bytes:
    """A frame over IPv4 without options. Its ICRC is wrong then, which the dissector does not look at."""
    ip = b"\x60" + bytes(3) + (len(frame) - 34).to_bytes(2, "big") + b"\x11\x40" + V6_ADDRESSES
    return frame[:12] + b"\x86\xdd" + ip + frame[34:]


def icmpv6_error(frame: bytes) -> bytes:
    """Port unreachable (RFC 4443) for a frame over IPv6."""
    icmp = b"\x01\x04" + bytes(6) + frame[14:]
    ip = b"\x60" + bytes(3) + len(icmp).to_bytes(2, "big") + b"\x3a\x40" + V6_ADDRESSES
    return frame[6:12] + frame[:6] + b"\x86\xdd" + ip + icmp


def main() -> int:
    result = unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    bad = len(result.failures) + len(result.errors)
    print(f"wireshark: {result.testsRun - bad} passed, {bad} failed, 0 skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
