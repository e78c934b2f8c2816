#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trees of model switches and hosts, against what must hold on every switch and link, and against exact sums.

    tree_check.py                       some seeds
    tree_check.py --seeds 1:500         these

A seed gives a tree, types, messages, and links that lose, damage and repeat packets. Ends in
"tree check: N passed, N failed, N skipped"; status 1 when one failed.
"""
from __future__ import annotations

import argparse
import random
import sys
import traceback

from dataclasses import dataclass
from functools import cache

from fold import FLOATS, BITWISE, OPERATIONS, SUM, TYPES, ELEMENT_BYTES, fold
from roce import ALL_REDUCE, BARRIER, BROADCAST, RC_DATA, parse_roce
from tree_network import Message, Network, Node, Ring
from tree_jobs import TreeCase
from tree_watch import FLOAT_NAMES, Watch, reduced

TREES = (
    Node("spine0", (Node("rack0", (2,)), Node("rack1", (2,)))),
    Node("spine0", (Node("rack0", (3,)), Node("rack1", (1,)))),
    Node("core0", (Node("spine0", (Node("rack0", (2,)), 1)), Node("rack1", (2,)))),
    Node("core0", (1, Node("spine0", (Node("rack0", (1,)),)), 1)),
    Node("core0", (Node("spine0", (1, Node("rack0", (2,)))), Node("rack1", (1,)), Node("rack2", (2,)))),
    Node("rack0", (3,)),
)


def some_message(rng: random.Random, world: int) -> Message:
    dtype = rng.randrange(TYPES)
    op = rng.choice([SUM, SUM, rng.randrange(OPERATIONS)])
    if op in BITWISE and dtype in FLOATS:
        op = SUM
    collective = rng.choice((ALL_REDUCE,) * 6 + (BARRIER, BROADCAST))
    elements = rng.randrange(0, 700 // ELEMENT_BYTES[dtype])
    return Message(elements, dtype, op, collective, rng.randrange(world) if collective == BROADCAST else 0)


class Noise:
    """What links do to frames. With `spares_hosts` only those between switches, to data alone, and never to all that a
    switch would know of a slot: who lacks the last answer to what it has sent repeats it, and so does who is not asked."""

    def __init__(self, network: Network, rng: random.Random, loss: float, spares_hosts: bool) -> None:
        self.network, self.rng, self.loss, self.spares_hosts = network, rng, loss, spares_hosts
        self.since_loss = 0  # frames

    def __call__(self, link: tuple[str, str], frame: bytes) -> str:
        self.since_loss += 1
        if self.spares_hosts and (self.since_loss < 30 or not self.is_data_between_switches(link, frame)):
            return ""
        chance = self.rng.random() / max(self.loss, 1e-9)
        fate = "lose" if chance < 1 else "damage" if chance < 1.2 else "repeat" if chance < 1.5 else ""
        self.since_loss *= not fate
        return fate

    def is_data_between_switches(self, link: tuple[str, str], frame: bytes) -> bool:
        roce = parse_roce(frame)
        return (all(end in self.network.members for end in link) and not self.brings_all_of_a_slot(link)
                and roce is not None and roce.opcode in RC_DATA)

    def brings_all_of_a_slot(self, link: tuple[str, str]) -> bool:
        """From the only child of a switch."""
        return [child.switch for child in self.network.members[link[1]].place.children] == [link[0]]


@dataclass(frozen=True)
class RandomJob:
    """A seed's, for weir-replay."""

    seed: int

    @property
    def name(self) -> str:
        return f"the network of seed {self.seed}"

    @property
    def about(self) -> str:
        return "a random tree, whose links lose, damage and repeat packets"

    @cache
    def network(self) -> Network:
        return network_of(self.seed)[0]

    def cases(self) -> list[TreeCase]:
        return [TreeCase(f"random-tree-{self.seed}-{name}", self, member.place)
                for name, member in self.network().members.items()]


def messages(network: Network, rng: random.Random) -> list[Message]:
    return [some_message(rng, network.ring.world) for _ in range(rng.randrange(1, 7))]


def plain_turn(network: Network, rng: random.Random) -> None:
    network.post(messages(network, rng))
    network.run()


def late_turn(network: Network, rng: random.Random) -> None:
    """Ranks come one after the other."""
    posted = messages(network, rng)
    for rank in rng.sample(range(network.ring.world), network.ring.world):
        network.post(posted, [rank])
        network.wait(rng.choice((100, 20_000, 3_000_000)))
    network.run()


def turn_without_buffers(network: Network, rng: random.Random) -> None:
    for host in rng.sample(network.hosts, 2):
        host.missing_buffers = rng.randrange(1, 3)
    plain_turn(network, rng)


def run_that_dies(network: Network, rng: random.Random) -> None:
    """In the middle of its messages; another takes its place, and some of its hellos come early."""
    network.post(messages(network, rng))
    network.wait(rng.randrange(20_000))
    begin_again(network, rng)


def switch_that_forgets(network: Network, rng: random.Random) -> None:
    """Who began with it cannot go on."""
    network.post(messages(network, rng))
    network.wait(rng.randrange(20_000))
    network.restart(rng.choice(list(network.members)))
    network.wait(rng.choice((1_000, 200_000)))
    begin_again(network, rng)


def begin_again(network: Network, rng: random.Random) -> None:
    network.start_run()
    for rank in rng.sample(range(network.ring.world), network.ring.world):
        network.say_hello([rank])
        network.wait(rng.choice((0, 0, 30_000_000)))
    network.run()
    plain_turn(network, rng)


def network_of(seed: int) -> tuple[Network, Watch]:
    rng = random.Random(seed)
    ring = Ring(rng.choice(TREES), window=rng.choice((1, 2, 4)), is_tied=rng.random() < 0.5,
                ack_timeout=rng.choice((12, 14)))
    network = Network(ring)
    loss, spares_hosts = rng.choice((0.0, 0.02, 0.1)), rng.random() < 0.3
    network.noise = Noise(network, rng, loss, spares_hosts)
    watch = Watch(network)
    network.say_hello()
    network.run()
    turns = (plain_turn, plain_turn, late_turn, turn_without_buffers, run_that_dies, switch_that_forgets)
    for turn in [plain_turn] * 3 if spares_hosts else rng.choices(turns, k=4):
        turn(network, rng)
    watch.check_end()
    if loss == 0 and not any(host.repeats for host in network.hosts) and len(network.all_hosts) == 1:
        watch.check_uplinks()
    if spares_hosts:
        assert not any(host.repeats for host in network.hosts), "a rank repeats what was lost between switches"
    return network, watch


def check_folds(seed: int) -> None:
    """The model's arithmetic is the exact one."""
    rng = random.Random(seed)
    for dtype in FLOAT_NAMES:
        size = ELEMENT_BYTES[dtype]
        for op in range(4):
            for _ in range(20):
                codes = tuple(rng.getrandbits(8 * size) for _ in range(rng.randrange(1, 5)))
                got = fold(op, dtype, [code.to_bytes(size, "little") for code in codes])
                assert int.from_bytes(got, "little") == reduced(op, dtype, codes), (op, dtype, list(map(hex, codes)))


def passes(seed: int) -> bool:
    try:
        check_folds(seed)
        network_of(seed)
    except AssertionError:
        print(f"  FAILED  seed {seed}")
        traceback.print_exc(limit=-4)
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1:30", metavar="FIRST:LAST")
    given = parser.parse_args()
    first, _, last = given.seeds.partition(":")
    results = [passes(seed) for seed in range(int(first), int(last or first) + 1)]
    print(f"tree check: {sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
