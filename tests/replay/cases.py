# SPDX-License-Identifier: BSD-3-Clause
"""The replays: captures, frames derived from them, and the switch's configurations."""
from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Callable, Iterator

from jobs import JOBS, TIED_TO_PORTS, WINDOW, Job, Step
from losses import LOSSES
from operator_jobs import LOADED, OPERATOR_JOBS, TENANT, TENANTS
from operators import Loaded, operators_yaml
from roce import HELLO, RC_DATA, Roce, Stamped, flipped, parse_roce, read_stamped, resigned
from tree import Child

HERE = Path(__file__).resolve().parent
STATIONS = tuple(f"52:54:00:00:00:{r + 1:02x}" for r in range(4))
UNHURRIED_NS = 10  # between derived frames: whole captures are over before a timer of the switch runs out
Derivation = Callable[[list[bytes]], Iterator[bytes]]


def hellos_first(frames: list[bytes]) -> Iterator[bytes]:
    """The frames of hosts that wait for their hello's result; only one capture has such hosts. These are the captured
    frames, with the first hello of each connection before all others."""
    hellos: dict[tuple[str, str, int], int] = {}
    for number, frame in enumerate(frames):
        roce = parse_roce(frame)
        ina = roce.ina() if roce and roce.opcode in RC_DATA else None
        if roce and ina and ina.collective == HELLO:
            hellos.setdefault(roce.connection, number)
    first = set(hellos.values())
    yield from (frames[number] for number in sorted(first))
    yield from (frame for number, frame in enumerate(frames) if number not in first)


def restart(frames: list[bytes]) -> Iterator[bytes]:
    """All but the three hellos and the ACKs between them."""
    yield from frames[5:]


def hurt(frames: list[bytes]) -> Iterator[bytes]:
    """Keeps every good packet in its order, so every slot must still complete with the right result."""
    for number, frame in enumerate(frames):
        roce = parse_roce(frame)
        assert roce
        if roce.opcode in RC_DATA and number % 7 == 0:
            yield flipped(frame, roce.payload_at + number % len(roce.payload))
        if (ina := roce.ina() if roce.opcode in RC_DATA else None) and ina.collective != HELLO:
            yield flipped(frame, roce.payload_at)  # the magic
            yield resigned(frame, roce.payload_at + 28, (ina.session + 1).to_bytes(4, "big"))
            yield frame
            other_psn = (roce.psn + 5) % (1 << 24)
            yield resigned(frame, roce.bth_at + 9, other_psn.to_bytes(3, "big"))  # of a known message
        else:
            yield frame


TRAILERS = (0, 4, 1, 8, 3, 2, 60, 4, 4, 250)  # bytes behind an ICRC: an FCS, a monitor's trailer, anything


def trailers(frames: list[bytes]) -> Iterator[bytes]:
    """Each frame with bytes behind it that belong to no packet."""
    for number, frame in enumerate(frames):
        yield frame + bytes(number + i & 0xFF for i in range(TRAILERS[number % len(TRAILERS)]))


@dataclass(frozen=True)
class Case:
    """One replay: the input frames and the switch's configuration. Port i is named p<i>."""

    name: str
    capture: str
    mtu: int
    max_message_bytes: int  # 40-byte header included
    window: int  # N
    members: tuple[str, ...]  # IPv4, in rank order
    port_macs: tuple[str, ...]  # one station per port
    member_ports: bool  # the configuration names each member's port (§3, Ports)
    note: str
    derivation: Derivation | None = None  # input frames from those of the capture; None: the capture unchanged
    job: Job | None = None  # instead of a derivation: frames made of the capture's hellos
    loaded: tuple[Loaded, ...] = ()  # operators of the users' own
    tenant: str = ""  # whose ring it is

    ring, first_session, parent = 7, 1, None

    @property
    def world(self) -> int:
        return len(self.members)

    @property
    def children(self) -> list[Child]:
        """The members: no ring of a capture is one of a tree."""
        return [Child(rank, rank, rank if self.member_ports else None) for rank in range(self.world)]

    @property
    def operators(self) -> list[str]:
        return [one.name for one in self.loaded if not one.tenants or self.tenant in one.tenants]

    @property
    def stations(self) -> list[tuple[str, ...]]:
        return [(mac,) for mac in self.port_macs]

    @property
    def packets_per_message(self) -> int:
        """L (§2)."""
        return -(-self.max_message_bytes // self.mtu)

    @property
    def source(self) -> str:
        """The input in words."""
        if self.job:
            return f"the job {self.job.__name__} of {self.job.__module__}.py"
        return f"captures/{self.capture}" + (f", {self.derivation.__name__}" if self.derivation else "")

    def captured(self) -> list[Stamped]:
        return read_stamped(HERE / "captures" / self.capture)

    def steps(self) -> list[Step]:
        """The steps of a job; other cases have none."""
        return list(self.job(hellos_of(self.captured()))) if self.job else []

    def frames(self) -> list[Stamped]:
        """The input frames with their times."""
        if self.job:
            times = accumulate(step.after_ns for step in self.steps())
            return [Stamped(ns, step.frame) for ns, step in zip(times, self.steps())]
        if self.derivation:
            derived = self.derivation([frame for _, frame in self.captured()])
            return [Stamped(UNHURRIED_NS * i, frame) for i, frame in enumerate(derived)]
        return self.captured()


def hellos_of(frames: list[Stamped]) -> list[Roce]:
    """The first one of each rank, in rank order."""
    found: dict[int, Roce] = {}
    for _, frame in frames:
        roce = parse_roce(frame)
        ina = roce.ina() if roce and roce.opcode in RC_DATA else None
        if roce and ina and ina.collective == HELLO:
            found.setdefault(ina.rank, roce)
    return [roce for _, roce in sorted(found.items())]


def ring_case(name: str, hosts: int, mtu: int, max_bytes: int, note: str, derivation: Derivation | None = None,
              capture: str = "", member_ports: bool = False, more_macs: tuple[str, ...] = ()) -> Case:
    members = tuple(f"10.77.0.{r + 1}" for r in range(hosts))
    return Case(name, (capture or name) + ".pcap", mtu, max_bytes, 32, members, STATIONS[:hosts] + more_macs,
                member_ports, note, derivation)


def job_case(name: str, job: Job) -> Case:
    about = (job.__doc__ or "").split(". ")[0].replace("\n   ", "").rstrip(".")
    case = ring_case("job-" + name, 3, 256, 4096, about, capture="ring3-i32-mtu256-noimm",
                     member_ports=name in TIED_TO_PORTS, more_macs=("52:54:00:00:00:fe",))
    return replace(case, window=WINDOW, job=job)


def operator_case(name: str, job: Job) -> Case:
    return replace(job_case(name, job), loaded=LOADED, tenant=TENANT)


WHOLE = (
    ring_case("ring4-f32-mtu1024-psnwrap", 4, 1024, 16384, "4 ranks, f32, PSN wrapping 2^24", hellos_first,
              member_ports=True),
    ring_case("ring3-i32-mtu256-noimm", 3, 256, 4096, "3 ranks, i32, plain WRITE"),
    ring_case("ring4-f32-mtu1024-loss2pct", 4, 1024, 16384, "4 ranks, f32, 2 % of frames lost at the senders",
              hellos_first),
    ring_case("ring3-i32-mtu1024-broadcast", 3, 1024, 8192, "3 ranks, i32, broadcasts of rank 1's data", hellos_first),
)
CASES = {c.name: c for c in WHOLE + (
    replace(WHOLE[0], name=WHOLE[0].name + "-window4", window=4,
            note="the window its hosts had: each slot is used three times over"),
    replace(WHOLE[2], name=WHOLE[2].name + "-window4", window=4,
            note="a window that its hosts, with no switch, did not keep: broken windows, stale repeats"),
    replace(WHOLE[0], name=WHOLE[0].name + "-impatient", derivation=None,
            note="as captured: hosts that waited for no answer, as there was no switch: data takes hellos out"),
    ring_case("roce-mix", 2, 1024, 16384,
              "two hosts that are ring neighbours, nothing to aggregate; the third MAC is the bridge the capture was "
              "taken on", more_macs=("b2:8f:94:f3:2b:bb",)),
    ring_case("ring3-i32-mtu256-restart", 3, 256, 4096,
              "a switch started after the hellos, which knows no connection and must not guess", restart,
              "ring3-i32-mtu256-noimm"),
    ring_case("ring3-i32-mtu256-hurt", 3, 256, 4096,
              "damaged, foreign-session and conflicting copies beside the good packets", hurt,
              "ring3-i32-mtu256-noimm", member_ports=True),
    ring_case("ring3-i32-mtu256-trailer", 3, 256, 4096,
              "the start of the job, with four bytes behind each ICRC, as a NIC that keeps the FCS leaves them"),
    ring_case("ring3-i32-mtu256-trailers", 3, 256, 4096, "bytes of all kinds behind the ICRCs", trailers,
              "ring3-i32-mtu256-noimm"),
    *(job_case(name, job) for name, job in (JOBS | LOSSES).items()),
    *(operator_case(name, job) for name, job in OPERATOR_JOBS.items()),
)}


def ring_yaml(case: Case) -> str:
    """The configuration for weir-replay."""
    ports = "".join(f'  - {{ name: p{i}, device: "net_null{i}", macs: ["{m}"] }}\n' for i, m in
                    enumerate(case.port_macs))
    members = "".join(f"      - {{ ip: {ip}{f', port: p{r}' if case.member_ports else ''} }}\n"
                      for r, ip in enumerate(case.members))
    tenants = "tenants:\n" + "".join(f"  - {{ name: {name} }}\n" for name in TENANTS) if case.tenant else ""
    owner = f"    tenant: {case.tenant}\n" if case.tenant else ""
    return ("# SPDX-License-Identifier: BSD-3-Clause\n"
            f"# {case.source}: {case.note}.\n"
            "# Written by tests/replay/expect.py --write; edit cases.py instead.\n"
            'eal:\n  options: ["--no-huge", "-m", "512", "--no-pci", "--no-shconf"]\n'
            f"ports:\n{ports}"
            "lcores:\n  - { id: 0, roles: [control, rx, worker, tx] }\n"
            "l2: { aging_s: 300 }\n"
            f"{tenants}{operators_yaml(case.loaded)}"
            f"rings:\n  - id: 7\n    window: {case.window}\n    max_message_bytes: {case.max_message_bytes}\n"
            f"    mtu: {case.mtu}\n{owner}    members:\n{members}")
