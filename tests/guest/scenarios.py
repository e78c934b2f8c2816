# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios. Each is a function of a Lab; it returns a few words for the results table or raises ScenarioFailed.

To add one, decorate a function with @scenario. All scenarios with an equal Setup share the lab. Between two of them all
commands in guests are killed and netem is removed, so a scenario need not clean up. With a Weir:

    FOUR = Setup(guests=4, rings=(Ring(guests=(0, 1, 2, 3)),))

    @scenario(FOUR, needs_weir=True, programs=("build/app/weir-worker",))
    def all_reduce_survives_loss(lab: Lab) -> str:
        for guest in lab.guests:
            guest.netem("loss 2%")
        lab.run_on_all(lambda guest: f"weir-worker … --rank {guest.who.rank}")
        return f"{lab.weir.telemetry('/weir/…')['completed']} slots"

`guest.start(…)` gives a Job: wait(), wait_for(pattern), kill(). `guest.power_off()` and `lab.reboot(rank)` end and
restart a machine; `lab.switch.stop()`, `.kill()` and `.start()` do so with the switch.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from capture import differences, is_rocev2, read_frames
from fabric import Setup
from guest import Guest
from lab import Lab, ScenarioFailed
from switch import Ring

# Plain traffic between members of these rings must pass like any other. All but the first ring are for single scenarios
# of allreduce.py.
RING = Ring(guests=(0, 1, 2))
SECOND_RING = Ring(guests=(0, 1, 2), ring_id=8)
C_RING = Ring(guests=(0, 1, 2), ring_id=9)
RING6 = Ring(guests=(0, 1, 2), ring_id=10, ip_version=6)
RING_OF_TWO = Ring(guests=(0, 2), ring_id=11)
# A window of 16 packets, which a soft-RoCE device sends whole, also when it goes back: of 64 it may send half, and then losses make
# it lose its way (docs/transports.md).
LOSSY_RING = Ring(guests=(0, 1, 2), ring_id=12, max_message_bytes=4096)
NCCL_RING = Ring(guests=(0, 1, 2), ring_id=13)
PLAIN = Setup(guests=3, link_mtu=1500, rings=(RING, SECOND_RING, C_RING, RING6, RING_OF_TWO, LOSSY_RING, NCCL_RING))
JUMBO = Setup(guests=2, link_mtu=9000, rings=(Ring(guests=(0, 1), mtu=4096),))

PINGPONG_PORT = PERFTEST_PORT = 18515
HTTP_PORT = 8080
NETCAT_PORT = 9000
FILE_BYTES = 8 << 20


class When(Enum):
    """When a scenario runs. The value is what --list adds to its line."""

    ALWAYS = ""
    BESIDE = "; takes minutes, beside other guests' scenarios"
    BY_NAME = "; only by its name: it takes minutes"


@dataclass(frozen=True)
class Scenario:
    name: str
    setup: Setup
    body: Callable[[Lab], str]
    needs_weir: bool = False
    programs: tuple[str, ...] = ()  # built ones that it runs in guests, relative to the repository
    when: When = When.ALWAYS


SCENARIOS: list[Scenario] = []


def scenario(*setups: Setup, needs_weir: bool = False, programs: tuple[str, ...] = (),
             when: When = When.ALWAYS) -> Callable[[Callable[[Lab], str]], Callable[[Lab], str]]:
    """Registers a function once per setup, as NAME@LINK_MTU."""
    def register(body: Callable[[Lab], str]) -> Callable[[Lab], str]:
        for setup in setups:
            name = f"{body.__name__.replace('_', '-')}@{setup.link_mtu}"
            if any(known.name == name for known in SCENARIOS):
                raise ValueError(f"two scenarios are called {name}")
            SCENARIOS.append(Scenario(name, setup, body, needs_weir, programs, when))
        return body
    return register


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ScenarioFailed(otherwise)


# -- devices and IP


@scenario(PLAIN, JUMBO)
def devices(lab: Lab) -> str:
    """What all other scenarios assume about the guests: link and path MTU; GID index 1 is the IPv4 one."""
    for guest in lab.guests:
        link = guest.run("ip link show eth0").output
        expect(f"mtu {lab.setup.link_mtu} " in link, f"{guest.who.name}: not of MTU {lab.setup.link_mtu}: {link}")
        device = guest.run("ibv_devinfo -v -d rxe0").output
        for pattern in (r"state:\s+PORT_ACTIVE", rf"active_mtu:\s+{lab.setup.path_mtu} ",
                        rf"GID\[\s*1\]:\s+::ffff:{re.escape(guest.who.ip)}"):
            expect(re.search(pattern, device) is not None, f"{guest.who.name}: no {pattern!r} in:\n{device}")
    return f"rxe0 active on {len(lab.guests)} guests, path MTU {lab.setup.path_mtu}"


@scenario(PLAIN, JUMBO)
def icmp_ping(lab: Lab) -> str:
    """Every pair, with the smallest packet and the largest that fits.

    No IP fragments: DPDK's net_af_packet lets the kernel reassemble them (PACKET_FANOUT_FLAG_DEFRAG, which cannot be
    switched off), so Weir gets one frame that is too long to leave.

    After its last echo ping waits for one interval or twice the slowest answer, whatever -W says. With an interval of
    20 ms a busy machine "lost" the last two of 20.
    """
    count, pairs = 10, 0
    for source in lab.guests:
        for target in lab.guests:
            if source is target:
                continue
            pairs += 1
            for size in (0, lab.setup.link_mtu - 28):
                output = source.run(f"ping -c {count} -i 0.2 -M do -s {size} {target.who.ip}").output
                expect(f"{count} received, 0% packet loss" in output and "duplicates" not in output
                       and "DUP!" not in output, f"{source.who.name} to {target.who.name}, {size} bytes:\n{output}")
    return f"{pairs} pairs, {pairs * 2 * count} echoes, none lost or doubled"


@scenario(PLAIN, JUMBO)
def tcp_files(lab: Lab) -> str:
    """A file each way over HTTP, at once, and one through a bare TCP connection; SHA-256 at both ends."""
    left, right = lab.guests[:2]
    sums = {}
    for guest in (left, right):
        sums[guest] = guest.run(f"head -c {FILE_BYTES} /dev/urandom > /srv/file; sha256sum < /srv/file").output
        guest.start(f"httpd -f -p {HTTP_PORT} -h /srv")
        guest.wait_listening(HTTP_PORT)
    fetch = "wget -q -O - http://{ip}:{port}/file | sha256sum"
    started = time.monotonic()
    jobs = {server: client.start(fetch.format(ip=server.who.ip, port=HTTP_PORT))
            for server, client in ((left, right), (right, left))}
    for server, job in jobs.items():
        got = job.wait(180.0).output
        expect(got == sums[server], f"file of {server.who.name}: SHA-256 {sums[server]!r} there, {got!r} here")
    seconds = time.monotonic() - started
    # The listener's input stays open. Otherwise it would half-close at once, and the sender would take that for the end.
    sink = right.start(f"mkfifo /tmp/open; exec 9<>/tmp/open; nc -l -p {NETCAT_PORT} <&9 | sha256sum")
    right.wait_listening(NETCAT_PORT)
    left.run(f"nc -w 60 {right.who.ip} {NETCAT_PORT} < /srv/file")
    got = sink.wait(60.0).output
    expect(got == sums[left], f"through nc: SHA-256 {sums[left]!r} there, {got!r} here")
    for guest in (left, right):
        guest.run("rm -f /srv/file /tmp/open")
    return f"3 files of {FILE_BYTES >> 20} MiB intact, {2 * FILE_BYTES / seconds / 1e6:.1f} MB/s both ways over HTTP"


# -- RDMA


def between_two(lab: Lab, command: str, tcp_port: int, timeout: float = 180.0) -> str:
    """A program whose server has no address argument and whose client has the server's; returns the client's output."""
    server, client = lab.guests[:2]
    serving = server.start(command)
    server.wait_listening(tcp_port)
    output = client.run(f"{command} {server.who.ip}", timeout).output
    at_server = serving.wait(timeout)
    expect(at_server.status == 0, f"at the server: {at_server.complaint}")
    return output


def pingpong(lab: Lab, command: str) -> str:
    """One of ibverbs' examples; -c makes both ends check every byte they receive."""
    output = between_two(lab, f"{command} -d rxe0 -g 1 -c", PINGPONG_PORT)
    speed = re.search(r"(\d+) iters in ([\d.]+) seconds = ([\d.]+) usec/iter", output)
    expect(speed is not None and "invalid data" not in output, output)
    assert speed is not None
    return f"{speed[1]} round trips, {float(speed[3]):.0f} us each, data checked"


@scenario(PLAIN, JUMBO)
def ibv_rc_pingpong(lab: Lab) -> str:
    return pingpong(lab, f"ibv_rc_pingpong -m {lab.setup.path_mtu} -s 16384 -n 200")


@scenario(PLAIN, JUMBO)
def ibv_uc_pingpong(lab: Lab) -> str:
    return pingpong(lab, f"ibv_uc_pingpong -m {lab.setup.path_mtu} -s 8192 -n 200")


@scenario(PLAIN, JUMBO)
def ibv_ud_pingpong(lab: Lab) -> str:
    return pingpong(lab, f"ibv_ud_pingpong -s {lab.setup.path_mtu} -n 200")


def perftest(lab: Lab, program: str, size: int, options: str) -> str:
    """One of the perftest programs, at the link's path MTU."""
    output = between_two(lab, f"{program} -d rxe0 -x 1 -F -s {size} {options}", PERFTEST_PORT)
    expect(re.search(rf"Mtu\s*:\s*{lab.setup.path_mtu}\[B\]", output) is not None, f"at another MTU:\n{output}")
    speed = re.search(rf"^\s*{size}\s+(\d+)\s+[\d.]+\s+([\d.]+)\s", output, re.MULTILINE)
    expect(speed is not None and int(speed[1]) > 0, output)
    assert speed is not None
    return f"{speed[1]} x {size} bytes at path MTU {lab.setup.path_mtu}, {float(speed[2]):.2f} MiB/s"


@scenario(PLAIN, JUMBO)
def ib_write_bw(lab: Lab) -> str:
    return perftest(lab, "ib_write_bw", 65536, f"-m {lab.setup.path_mtu} -n 100")


@scenario(PLAIN, JUMBO)
def ib_read_bw(lab: Lab) -> str:
    return perftest(lab, "ib_read_bw", 65536, f"-m {lab.setup.path_mtu} -n 100")


@scenario(PLAIN, JUMBO)
def ib_send_bw(lab: Lab) -> str:
    return perftest(lab, "ib_send_bw", 65536, f"-m {lab.setup.path_mtu} -n 100")


@scenario(PLAIN, JUMBO)
def ib_atomic_bw(lab: Lab) -> str:
    return perftest(lab, "ib_atomic_bw", 8, f"-m {lab.setup.path_mtu} -n 500 -A FETCH_AND_ADD")


def connected_by_cm(lab: Lab, server: Guest, client: Guest, rounds: int) -> None:
    """rping: a connection made by the RDMA CM, then READ and WRITE in turn, each round's data checked and printed.

    Its exit status is not reliable. It is 0 even when the connection is lost, so rounds are counted. It is 255 when its
    event thread, which rdma-core 44 never joins, wakes up on a channel that is already closed.
    """
    options = f"-C {rounds} -S 4000 -V"
    serving = server.start(f"rping -s -a {server.who.ip} {options}")
    server.wait_until("rdma resource show cm_id | grep -q LISTEN")
    at_client = client.run(f"rping -c -v -a {server.who.ip} {options}", check=False)
    at_server = serving.wait()
    for side in (at_client, at_server):
        late = side.status == 255 and "rdma_get_cm_event: Bad file descriptor" in side.output
        expect(side.status == 0 or late, side.complaint)
    done = re.findall(r"^ping data: rdma-ping-(\d+): ", at_client.output, re.MULTILINE)
    expect(done == [str(number) for number in range(rounds)] and "mismatch" not in at_client.output,
           f"{len(done)} of {rounds} rounds: {at_client.complaint}")


@scenario(PLAIN, JUMBO)
def rping(lab: Lab) -> str:
    """Connections made by the RDMA CM; READ and WRITE in turn, the data checked; both ways round."""
    left, right = lab.guests[:2]
    for server, client in ((left, right), (right, left)):
        connected_by_cm(lab, server, client, rounds=50)
    return "2 x 50 rounds of READ and WRITE over CM connections, data checked"


@scenario(PLAIN, JUMBO)
def untouched(lab: Lab) -> str:
    """Frame by frame: a guest's frames leave by the other's port unchanged, each class in order, once, and by no other port."""
    for guest in lab.guests:  # all know each other, so only broadcasts may be flooded
        for other in lab.guests:
            if other is not guest:
                guest.run(f"ping -c 1 -W 10 {other.who.ip}")
    # Captures begin and end one after the other, so frames in between would be in only some of them.
    for guest in lab.guests:
        guest.ask_nobody([other.who for other in lab.guests])
    time.sleep(2.0)
    came = [lab.fabric.capture(port, "in") for port in range(len(lab.guests))]
    left = [lab.fabric.capture(port, "out") for port in range(len(lab.guests))]
    time.sleep(1.0)
    mtu = lab.setup.path_mtu
    for command in (f"ibv_rc_pingpong -m {mtu} -s 16384 -n 50", f"ibv_uc_pingpong -m {mtu} -s 8192 -n 50",
                    f"ibv_ud_pingpong -s {mtu} -n 50"):
        pingpong(lab, command)
    perftest(lab, "ib_read_bw", 65536, f"-m {mtu} -n 20")
    perftest(lab, "ib_write_bw", 65536, f"-m {mtu} -n 20")
    perftest(lab, "ib_atomic_bw", 8, f"-m {mtu} -n 50 -A FETCH_AND_ADD")
    connected_by_cm(lab, lab.guests[0], lab.guests[1], rounds=5)
    time.sleep(1.0)
    for capture in (*came, *left):
        capture.stop()
    frames_in = [read_frames(capture.file) for capture in came]
    frames_out = [read_frames(capture.file) for capture in left]
    wrong = differences(frames_in, frames_out, [guest.who.mac for guest in lab.guests])
    expect(not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:10]))
    rdma = [sum(map(is_rocev2, frames)) for frames in frames_in]
    expect(rdma[0] > 0 and rdma[1] > 0, f"the captures hold no RoCE: {rdma}")
    return f"{sum(map(len, frames_in))} frames, {sum(rdma)} of them RoCE, bit-identical and in order"
