#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests the comparison of captures: `tests/guest/capture_test.py`. Needs neither root nor guests."""

from __future__ import annotations

import struct
import tempfile
import unittest
from pathlib import Path

from capture import ETHERTYPE_IPV4, Captured, differences, mac_bytes, read_capture

MACS = ("52:54:00:00:00:01", "52:54:00:00:00:02", "52:54:00:00:00:03")
BROADCAST = "ff:ff:ff:ff:ff:ff"


def frame(target: str, source: str, text: str) -> bytes:
    return mac_bytes(target) + mac_bytes(source) + ETHERTYPE_IPV4 + text.encode()


def roce(opcode: int, psn: int) -> bytes:
    """A RoCE v2 frame from station 0 to station 1, down to its BTH."""
    ip = b"\x45" + bytes(8) + b"\x11" + bytes(10)
    udp = b"\xc0\x00" + (4791).to_bytes(2, "big") + bytes(4)
    return mac_bytes(MACS[1]) + mac_bytes(MACS[0]) + ETHERTYPE_IPV4 + ip + udp + bytes([opcode]) + bytes(8) + psn.to_bytes(3, "big")


SEND_1, SEND_2 = roce(0x04, 1), roce(0x04, 2)
ACK_1, ACK_2 = roce(0x11, 1), roce(0x11, 2)
ONE = frame(MACS[1], MACS[0], "one")
TWO = frame(MACS[1], MACS[0], "two")
BACK = frame(MACS[0], MACS[1], "back")
CALL = frame(BROADCAST, MACS[0], "call")
CAME = ([ONE, CALL, TWO], [BACK], [])

# What left through ports 0, 1 and 2, and the words that must be among the differences; none means no difference.
TABLE: tuple[tuple[str, tuple[list[bytes], ...], str | None], ...] = (
    ("as it came", ([BACK], [ONE, CALL, TWO], [CALL]), None),
    ("one lost", ([BACK], [ONE, CALL], [CALL]), "port 0 to port 1: 3 frames came, 2 left"),
    ("one twice", ([BACK], [ONE, CALL, TWO, TWO], [CALL]), "port 0 to port 1: 3 frames came, 4 left"),
    ("two swapped", ([BACK], [TWO, CALL, ONE], [CALL]), "frame 0 came as"),
    ("a bit changed", ([BACK], [ONE, CALL, TWO[:-1] + b"n"], [CALL]), "frame 2 came as"),
    ("shortened", ([BACK], [ONE, CALL, TWO[:-1]], [CALL]), "frame 2 came as"),
    ("broadcast not to all", ([BACK], [ONE, CALL, TWO], []), "port 0 to port 2: 1 frames came, 0 left"),
    ("back out of its port", ([BACK, CALL], [ONE, CALL, TWO], [CALL]), "came back out of its own port"),
    ("shown to a bystander", ([BACK], [ONE, CALL, TWO], [CALL, ONE]), "for another station left through port 2"),
)


class Differences(unittest.TestCase):
    def test_table(self) -> None:
        for description, left, words in TABLE:
            with self.subTest(description):
                found = differences(CAME, left, MACS)
                if words is None:
                    self.assertEqual(found, [])
                else:
                    self.assertIn(words, "\n".join(found))


    def test_answers_may_overtake_requests(self) -> None:
        came = ([SEND_1, ACK_1, SEND_2, ACK_2], [], [])
        self.assertEqual(differences(came, ([], [ACK_1, SEND_1, ACK_2, SEND_2], []), MACS), [])
        for wrong in ([SEND_1, ACK_2, SEND_2, ACK_1], [SEND_2, ACK_1, SEND_1, ACK_2], [SEND_1, ACK_1, SEND_2]):
            self.assertNotEqual(differences(came, ([], wrong, []), MACS), [])

    def test_what_is_no_roce_may_overtake_it_and_nothing_else(self) -> None:
        came = ([SEND_1, ONE, SEND_2, TWO], [], [])
        self.assertEqual(differences(came, ([], [ONE, TWO, SEND_1, SEND_2], []), MACS), [])
        for wrong in ([SEND_2, ONE, SEND_1, TWO], [SEND_1, TWO, SEND_2, ONE], [SEND_1, ONE, SEND_2]):
            self.assertNotEqual(differences(came, ([], wrong, []), MACS), [])

    def test_times_of_a_capture(self) -> None:
        for magic, fraction in ((0xA1B2C3D4, 250_000), (0xA1B23C4D, 250_000_000)):
            with self.subTest(f"{magic:#x}"), tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "one.pcap"
                file.write_bytes(struct.pack("=I20xIIII", magic, 7, fraction, len(ONE), len(ONE)) + ONE)
                self.assertEqual(read_capture(file), [Captured(7.25, ONE)])


if __name__ == "__main__":
    unittest.main()
