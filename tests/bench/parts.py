# SPDX-License-Identifier: BSD-3-Clause
"""The parts of tools/bench: the program of each, and its tables and plots.

A part without tables gets one of all its cases; one without plots gets a line chart of each figure that has a baseline,
over the numeric parameter with the most values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from plot import Scale
from rounds import Parameters


@dataclass(frozen=True)
class Table:
    """One figure with a row for each value of one parameter and a column for each of another."""
    title: str
    figure: str
    rows: str
    columns: str
    where: Parameters
    shows_ratio: bool = False  # to the figure's baseline
    beside: str = ""  # another figure for each cell, which then has the two medians alone


@dataclass(frozen=True)
class Plot:
    """One figure over parameter `x`, a series for each combination of the parameters named in `series`."""
    name: str
    title: str
    figure: str
    x: str
    series: tuple[str, ...]
    where: Parameters = field(default_factory=dict)
    shows_ratio: bool = False
    x_scale: Scale = Scale.LINEAR
    y_scale: Scale = Scale.LINEAR
    beside: str = ""  # another figure, dashed


@dataclass(frozen=True)
class Part:
    name: str
    about: str
    program: str
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    script: str = ""  # of this folder: runs the program, and others that it compares
    more_targets: tuple[str, ...] = ()  # of the build folder: what the script runs besides

    @property
    def targets(self) -> tuple[str, ...]:
        return (f"tests/bench/{self.program}", *self.more_targets)


KERNELS = Part(
    "kernels", "reduction kernels and ICRC beside plain reading of the same frames", "kernels_bench",
    tables=(
        Table("Payload reduced of 8 ranks, from cache, GB/s", "rate", "type", "work",
              {"ranks": 8, "from": "cache", "level": "best"}),
        Table("The same as a share of plain reading", "rate", "type", "work",
              {"ranks": 8, "from": "cache", "level": "best"}, shows_ratio=True),
        Table("Payload reduced of 8 ranks, from memory, as a share of plain reading", "rate", "type", "work",
              {"ranks": 8, "from": "memory", "level": "best"}, shows_ratio=True),
        Table("Sum by instruction set, 8 ranks, from cache, GB/s", "rate", "type", "level",
              {"work": "sum", "ranks": 8, "from": "cache"}),
        Table("Sum by ranks, from cache, GB/s", "rate", "type", "ranks",
              {"work": "sum", "from": "cache", "level": "best"}),
        Table("ICRC check, and check + sum + new ICRCs (f32), from cache, GB/s", "rate", "work", "ranks",
              {"about": "icrc", "from": "cache"}),
        Table("The same from memory, GB/s", "rate", "work", "ranks", {"about": "icrc", "from": "memory"}),
        Table("The same from memory, as a share of plain reading", "rate", "work", "ranks",
              {"about": "icrc", "from": "memory"}, shows_ratio=True),
    ),
    plots=(
        Plot("types-cache", "Payload reduced of 8 ranks, from cache", "rate", "type", ("work",),
             {"ranks": 8, "from": "cache", "level": "best"}),
        Plot("types-memory", "Payload reduced of 8 ranks, from memory, over plain reading", "rate", "type", ("work",),
             {"ranks": 8, "from": "memory", "level": "best"}, shows_ratio=True),
        Plot("ranks", "Sum by ranks, from cache", "rate", "ranks", ("type",),
             {"work": "sum", "from": "cache", "level": "best"}, x_scale=Scale.LOGARITHMIC),
        Plot("icrc-memory", "ICRC check and slot arithmetic, from memory, over plain reading", "rate", "ranks",
             ("work",), {"about": "icrc", "from": "memory"}, shows_ratio=True, x_scale=Scale.LOGARITHMIC),
    ),
)

SIZE = {"about": "size"}
SWITCH_AND_RING = "switch / ring"

# What besides equal loss disturbs the network: the case's `about`, its parameter, and a title.
TROUBLES = (
    ("one link", "loss ppm", "loss on rank 0's link alone"),
    ("bursts", "loss ppm", "loss in bursts of 8 frames on average"),
    ("reordering", "late ppm", "frames that come up to 5 us late"),
    ("flapping", "down us", "rank 0's link is down once in 2 ms"),
    ("delay", "delay ns", "links of other delays, which lose 100 frames of a million"),
    ("incast", "foreign percent", "four other stations send to rank 0, in percent of its link"),
)


def link_times(about: str, parameter: str, title: str, where: Parameters) -> Table:
    """Link times of switch and ring, by what disturbs them and by ranks."""
    return Table(f"Link times, {SWITCH_AND_RING}: {title}", "switch", parameter, "ranks", {"about": about, **where},
                 shows_ratio=True, beside="ring")


def plot_of_link_times(name: str, about: str, parameter: str, title: str, where: Parameters) -> Plot:
    scale = Scale.LOGARITHMIC if parameter.endswith("ppm") else Scale.LINEAR
    return Plot(name, f"Link times: {title}", "switch", parameter, ("ranks",), {"about": about, **where},
                shows_ratio=True, x_scale=scale, y_scale=Scale.LOGARITHMIC, beside="ring")


LOSS = ("loss", "loss ppm", "equal loss on all links")
SIZES_UNDER_LOSS = (2048, 1024, 64)  # tensor KiB

ALLREDUCE = Part(
    "allreduce", "switch against ring all-reduce in a simulated fabric, in virtual time", "allreduce_bench",
    tables=(
        Table("Ring all-reduce over switch all-reduce, no loss (the bound is 2(n-1)/n)", "gain", "ranks", "tensor KiB",
              SIZE),
        Table("Time through the switch, no loss, as a multiple of the tensor's time on the link", "switch", "ranks",
              "tensor KiB", SIZE, shows_ratio=True),
        Table("Time of the ring, no loss, as a multiple of the tensor's time on the link", "ring", "ranks",
              "tensor KiB", SIZE, shows_ratio=True),
        *(link_times(*LOSS[:2], f"{LOSS[2]}, tensor of {kib} KiB", {"tensor KiB": kib}) for kib in SIZES_UNDER_LOSS),
        *(Table(f"Time of the {figure} by loss rate, tensor of 2048 KiB, as a multiple of its time on the link", figure,
                "loss ppm", "ranks", {"about": "loss", "tensor KiB": 2048}, shows_ratio=True)
          for figure in ("switch", "ring")),
        *(link_times(about, parameter, title, {}) for about, parameter, title in TROUBLES),
    ),
    plots=(
        Plot("ranks", "Ring all-reduce over switch all-reduce", "gain", "ranks", ("tensor KiB",), SIZE),
        *(plot_of_link_times(f"loss-{kib}", *LOSS[:2], f"{LOSS[2]}, {kib} KiB", {"tensor KiB": kib})
          for kib in SIZES_UNDER_LOSS),
        *(plot_of_link_times(about, about, parameter, title, {}) for about, parameter, title in TROUBLES),
    ),
)

MANY_HOSTS = {"hosts": "64 in 8"}
FEW_A_RACK = {"hosts": "8 in 4"}

TREES = Part(
    "trees", "all-reduces over racks in virtual time: a tree of switches, one switch, and the hosts alone", "trees_bench",
    tables=tuple(
        Table(f"Link times / over the tree's, {oversubscription}:1, {loss} frames of a million lost", "time", "hosts", "way",
              {"oversubscription": oversubscription, "loss ppm": loss}, beside="lead")
        for loss in (0, 100, 1000) for oversubscription in (1, 2, 4)),
    plots=(
        Plot("oversubscription", "64 hosts in 8 racks, no loss", "time", "oversubscription", ("way",),
             {**MANY_HOSTS, "loss ppm": 0}),
        Plot("few", "8 hosts in 4 racks, no loss", "time", "oversubscription", ("way",), {**FEW_A_RACK, "loss ppm": 0}),
        Plot("loss", "64 hosts in 8 racks, 4:1", "time", "loss ppm", ("way",), {**MANY_HOSTS, "oversubscription": 4},
             x_scale=Scale.LOGARITHMIC, y_scale=Scale.LOGARITHMIC),
    ),
)

SMALL_MESSAGES = Part(
    "small-messages", "what the host library adds to its transport in a small all-reduce", "host_bench",
    tables=(
        Table("CPU time that the library adds to a call of one rank, ns", "library", "bytes", "queued", {}),
        Table("The transport's own, ns", "transport", "bytes", "queued", {}),
        Table("The library's in the call that starts, ns", "start", "bytes", "queued", {}),
        Table("In the call that waits, while it does not sleep, ns", "wait", "bytes", "queued", {}),
        Table("In what the transport reports, ns", "results", "bytes", "queued", {}),
        Table("In the group's own thread, ns", "own threads", "bytes", "queued", {}),
    ),
)

PARALLEL_RINGS = Part(
    "parallel-rings", "what a tensor costs the hosts that is split among several rings, and a small one that is not", "host_bench",
)

SHARED_NIC = Part(
    "shared-nic", "all-reduces of ranks behind one NIC, beside plain copying by all of them", "host_bench",
)

BESIDE = Part(
    "beside", "small calls beside large ones of another group, in one process of each rank or in two", "beside_rank",
    script="beside.py", more_targets=("app/weir",),
    tables=tuple(
        Table(f"{title}, calls that end in a {way}" if way == "callback" else f"{title}, calls that are waited for", name, "bytes",
              "processes", {"way": way}, beside=beside, shows_ratio=shows_ratio)
        for way in ("callback", "wait")
        for title, name, beside, shows_ratio in (
            ("Median of a small call: beside / alone, us", "beside", "alone", False),
            ("The same as a ratio", "beside", "", True),
            ("99th percentile: beside / alone, us", "beside p99", "alone p99", False),
            ("A large call beside small ones, over one alone", "large beside", "", True))),
)

SPARSE_FIGURES = {"weir": "Weir", "flare": "Flare's pairs", "omnireduce": "OmniReduce's blocks of 256"}

SPARSE = Part(
    "sparse", "sparse all-reduces of 16 MiB of f32 by density: bytes on a rank's link beside dense, and a host's computing",
    "sparse_bench",
    tables=(
        *(Table(f"{name}: bytes on a rank's link as a share of dense, {pattern}", figure, "density ppm", "ranks",
                {"pattern": pattern}, shows_ratio=True)
          for pattern in ("scattered", "clustered") for figure, name in SPARSE_FIGURES.items()),
        *(Table(f"A host's computing, ms, {pattern}", "host", "density ppm", "ranks", {"pattern": pattern})
          for pattern in ("scattered", "clustered")),
    ),
    plots=tuple(
        Plot(pattern, f"Bytes on a rank's link as a share of dense, {pattern}; dashed: OmniReduce", "weir", "density ppm",
             ("ranks",), {"pattern": pattern}, shows_ratio=True, x_scale=Scale.LOGARITHMIC, y_scale=Scale.LOGARITHMIC,
             beside="omnireduce")
        for pattern in ("scattered", "clustered")),
)

CHECKS = {"about": "check"}
FORWARDING = {"about": "forwarding"}
WHOLE = {"about": "all-reduce"}
MPI = {"about": "mpi"}

RIVALS = Part(
    "rivals", "what others would use for the same bytes", "rivals_bench", script="rivals.py",
    more_targets=("app/weir", "app/weir-worker"),
    tables=(
        Table("Weir's check of a frame / ISA-L's CRC alone, GB/s of payload", "weir", "work", "from", CHECKS,
              beside="rival"),
        Table("The same as a ratio", "weir", "work", "from", CHECKS, shows_ratio=True),
        *(entry for work in ("sum", "verify+sum+recompute") for entry in (
            Table(f"Weir's {work} of 8 ranks on one core / a parameter server's loop, GB/s of payload", "weir",
                  "rival", "from", {"about": "sum", "work": work}, beside="rival"),
            Table("The same as a ratio", "weir", "rival", "from", {"about": "sum", "work": work}, shows_ratio=True))),
        Table("Frames of no ring: Weir / testpmd on the same ports, Mpps for each second of the lcore's computing",
              "weir", "rival", "payload", FORWARDING, beside="rival"),
        Table("The same as a ratio", "weir", "rival", "payload", FORWARDING, shows_ratio=True),
        Table("Shortest all-reduce: Weir / Open MPI, us", "weir", "bytes", "ranks", WHOLE, beside="rival"),
        Table("The same as a ratio: below 1, Weir is faster", "weir", "bytes", "ranks", WHOLE, shows_ratio=True),
        Table("MPI over cables of one rate: with libweir_mpi.so / without, us", "weir", "bytes", "call", MPI, beside="rival"),
        Table("The same as a ratio: below 1, Weir is faster", "weir", "bytes", "call", MPI, shows_ratio=True),
    ),
    plots=(
        Plot("sum", "Weir's sum on one core over a parameter server's", "weir", "from", ("work", "rival"),
             {"about": "sum"}, shows_ratio=True),
        Plot("forwarding", "Frames of no ring: Weir over testpmd", "weir", "payload", ("rival",), FORWARDING,
             shows_ratio=True, x_scale=Scale.LOGARITHMIC),
        Plot("all-reduce", "Shortest all-reduce: Weir over Open MPI", "weir", "bytes", ("rival",), WHOLE,
             shows_ratio=True, x_scale=Scale.LOGARITHMIC, y_scale=Scale.LOGARITHMIC),
    ),
)

# On one core, hosts and switch work in turn; on two, the switch has one of its own.
LINK_CASES = tuple({"payload": 1024, "cores": cores} for cores in (1, 2))

LINKS = Part(
    "links", "links that need no driver of a NIC: AF_PACKET, AF_XDP, taps, memif, vhost-user", "links_bench",
    tables=(
        *(Table(f"Frames of 1 KiB through the switch, {title}, {where['cores']} core(s)", "rate", "link", "work", where,
                shows_ratio=shows_ratio)
          for where in LINK_CASES for title, shows_ratio in (("Mpps", False), ("over af_packet", True))),
        Table("Frames of 64 bytes on one core, over af_packet", "rate", "link", "work", {"payload": 64, "cores": 1},
              shows_ratio=True),
        Table("Frames that wait in a link while the switch does not look", "kept", "link", "work",
              {"payload": 1024, "cores": 1, "work": "forward"}),
    ),
    plots=tuple(Plot(f"cores-{where['cores']}", f"Frames of 1 KiB over af_packet, {where['cores']} core(s)", "rate",
                     "link", ("work",), where, shows_ratio=True) for where in LINK_CASES),
)

PLACES_OF_REGIONS = tuple((frames, payload) for frames in ("cache", "memory") for payload in (1024, 4096))

REGION = Part(
    "region", "a region's multicast and pull beside a ring's calls, and a ring beside a region that floods", "pipeline_bench",
    tables=(
        *(Table(f"{title}, {payload} bytes a packet, from {frames}", figure, "about", "members",
                {"frames": frames, "payload": payload}, beside=beside, shows_ratio=shows_ratio)
          for frames, payload in PLACES_OF_REGIONS for title, figure, beside, shows_ratio in (
              ("The lcore's work: region / ring, ns for each KiB of the tensor", "region", "ring", False),
              ("The same as a ratio", "region", "", True),
              ("Frames that come and leave in a second of that work: region / ring, Mpps", "frames", "ring frames", False))),
        *(Table(f"Bytes {way} the busiest link for each byte of the tensor: region / ring, {payload} bytes a packet", way,
                "about", "members", {"frames": "cache", "payload": payload}, beside=f"ring {way}")
          for payload in (1024, 4096) for way in ("up", "down")),
        *(Table(f"A ring beside {neighbour}, until it is done, over the same alone", figure, "about", "served by",
                {"about": "flood"}, shows_ratio=True)
          for figure, neighbour in (("flooding", "a region that floods"), ("ring", "another ring"),
                                    ("silent", "a silent region"))),
    ),
)

PARTS = (
    KERNELS,
    Part("pipeline", "one core, run to completion: packets and bits per second beside macswap", "pipeline_bench"),
    Part("stages", "where a packet's time goes, stage by stage", "pipeline_bench"),
    Part("emission", "results written by the summation beside results that share the payload", "pipeline_bench"),
    Part("latency", "last contribution in to result out", "pipeline_bench"),
    Part("forwarding", "other traffic alone and beside a busy ring", "pipeline_bench"),
    Part("overload", "more frames of several rings than one core serves: fair turns beside the order of arrival",
         "pipeline_bench"),
    Part("neighbours", "a ring of sums beside one that folds by a slow operator: until its frames are done", "pipeline_bench"),
    REGION,
    Part("scaling", "several lcores beside as many times one, in every sensible placement of the roles",
         "pipeline_bench"),
    Part("job", "one job on several lcores: parallel rings beside one ring, and beside as many separate jobs",
         "pipeline_bench"),
    ALLREDUCE,
    TREES,
    SMALL_MESSAGES,
    PARALLEL_RINGS,
    SHARED_NIC,
    BESIDE,
    SPARSE,
    Part("lookup", "whose a RoCE frame's addresses are: the pair table beside one whose hash has no key", "lookup_bench"),
    RIVALS,
    LINKS,
)
