# SPDX-License-Identifier: BSD-3-Clause
"""weir-plan: what it prints, draws and rejects."""
from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from pathlib import Path

from lab import Lab, smoke_test
from weir import BUILD, ROOT, WEIR, Ended, expect, run_to_end

PLAN = BUILD / "app" / "weir-plan"
RACKS = ROOT / "config/topologies/two-racks.yaml"
TORUS = ROOT / "config/topologies/torus-8x8.yaml"


def plan(*arguments: object) -> Ended:
    return run_to_end([PLAN, *map(str, arguments)])


def refused(arguments: list[object], complaint: str) -> None:
    answer = plan(*arguments)
    expect(answer.status == 2 and answer.errors == f"weir-plan: {complaint}\n", f"{arguments}: {answer}")


@smoke_test("plan-usage")
def usage(_: Lab) -> None:
    answer = plan("--help")
    expect(answer.status == 0 and answer.output.startswith("usage: weir-plan"), f"{answer}")
    refused([], "missing: make, fabric, draw or compare; see weir-plan --help")
    refused(["sketch"], "found 'sketch'; allowed: make, fabric, draw or compare; see weir-plan --help")
    refused(["make"], "missing: --topology; see weir-plan --help")
    refused(["make", "--topology", TORUS, "--algorithm", "tree"],
            "--algorithm: found 'tree'; allowed: multitree, ring, ring-across, dbtree, 2d-ring, hdrm")
    refused(["compare", "--topology", TORUS, "--sizes", "1M:32K"],
            "--sizes: found '1M:32K'; allowed: bytes as 1M, or a range as 32K:1G (K, M, G are powers of 1024)")
    for option in ("--switch-packet-time", "--switch-latency", "--host-latency"):
        refused(["compare", "--topology", RACKS, option, "75"],
                f"{option}: found '75'; allowed: a time up to a minute, such as 600ns or 1.5us")
    refused(["compare", "--topology", RACKS, "--switch-lcores", "0"], "--switch-lcores: found '0'; allowed: 1 .. 1024")
    refused(["compare", "--topology", RACKS, "--host-addition", "0GB/s"],
            "--host-addition: found '0GB/s'; allowed: a rate of at least 1 bit/s, such as 100Gbit/s or 12.5GB/s")
    refused(["make", "--topology", RACKS, "--nodes", "hsot1"],
            "--nodes: found 'hsot1'; allowed: a node of the topology; did you mean host1?")
    refused(["make", "--topology", RACKS, "--nodes", "host0"], "--nodes: found 'host0'; allowed: two nodes at least")
    refused(["fabric", "--topology", RACKS, "--nodes", "host[0-2],host1"], "--nodes: found 'host1' twice; allowed: each node once")
    for command, option, value, others in (("fabric", "--plot", "x.svg", "compare"), ("fabric", "--tree", "host0", "draw"),
                                           ("make", "--mtu", "1024", "fabric, compare"), ("draw", "--algorithm", "ring", "make"),
                                           ("compare", "--configs", "x", "fabric")):
        refused([command, "--topology", RACKS, "--sizes" if command == "compare" else "--out", "1M", option, value],
                f"{option}: found with {command}; allowed: with {others}")
    refused(["fabric", "--topology", RACKS, "--first-address", "10.0.0.1"],
            "--first-address: found without --configs; allowed: with --configs DIR, whose files it is for")


@smoke_test("plan-own-files")
def own_files(lab: Lab) -> None:
    """--out and --plot are neither each other nor the topology."""
    topology = lab.file("racks.yaml", RACKS.read_text())
    (lab.directory / "link.yaml").symlink_to("racks.yaml")
    compare = ["compare", "--topology", topology, "--sizes", "32K"]
    for arguments in (["make", "--topology", topology, "--out", lab.directory / "link.yaml"],
                      [*compare, "--plot", topology],
                      [*compare, "--out", lab.directory / "x", "--plot", lab.directory / "x"]):
        answer = plan(*arguments)
        expect(answer.status == 2 and "which are the same file; allowed: a file of its own" in answer.errors, f"{answer}")
        expect(topology.read_text() == RACKS.read_text(), f"{arguments}: the topology was changed")


@smoke_test("plan-topologies-with-mistakes")
def mistakes(lab: Lab) -> None:
    file = lab.directory / "broken.yaml"
    file.write_text("nodes: [a, b]\nlinks:\n  - {between: [a, b], rate: 0Gbit/s, latency: 1us}\n")
    refused(["make", "--topology", file], f"{file}:3: links[0].rate: found \"0Gbit/s\"; allowed: "
            "a rate of at least 1 bit/s, such as 100Gbit/s or 12.5GB/s")
    file.write_text("generator: {kind: star, nodes: 65536, rate: 1Gbit/s, latency: 1us}\n")
    for arguments in (["make"], ["compare", "--sizes", "1M"]):
        answer = plan(*arguments, "--topology", file)
        expect(answer.status == 1 and "65536 nodes take part; allowed: 8192 at most" in answer.errors, f"{answer}")


@smoke_test("plan-drawings")
def drawings(lab: Lab) -> None:
    for name, arguments, shapes in (("topology", [RACKS], 20), ("tree", [TORUS, "--tree", "n5"], 64),
                                    ("ring", [RACKS, "--ring", "2"], 19)):
        file = lab.directory / f"{name}.svg"
        answer = plan("draw", "--topology", *arguments, "--out", file)
        expect(answer.status == 0, f"{name}: {answer}")
        titles = [node.findtext("{*}title") for node in xml.parse(file).iterfind(".//{*}g[@class='node']")]
        expect(sum(title.startswith("v") for title in titles) == shapes, f"{name}: {titles}")
    refused(["draw", "--topology", RACKS, "--ring", "3", "--out", lab.directory / "none.svg"],
            "--ring: found 3; allowed: 1 .. 2, the rings of this fabric")


@smoke_test("plan-compare")
def compare(lab: Lab) -> None:
    """No method is faster than the hosts' links, large tensors come closer to them, and a switch that adds is nearly twice as fast."""
    plot = lab.directory / "times.svg"
    answer = plan("compare", "--topology", RACKS, "--sizes", "64K:1M", "--plot", plot)
    expect(answer.status == 0 and not answer.errors, f"{answer}")
    rows = re.findall(r"^ *(\S+)  (\S+) +([\d.]+) +([\d.]+) +([\d.]+)%", answer.output, re.MULTILINE)
    shares = {(algorithm, size): float(share) for size, algorithm, _, _, share in rows}
    times = {(algorithm, size): float(time) for size, algorithm, time, _, _ in rows}
    expect(len(rows) == 5 * 5, answer.output)
    expect(all(share <= 100 for share in shares.values()), answer.output)
    expect(all(shares[name, "64KiB"] < shares[name, "1MiB"] for name in ("ring", "multitree", "weir")), answer.output)
    expect(1.6 < times["ring", "1MiB"] / times["weir", "1MiB"] < 2.1, answer.output)
    expect(len(xml.parse(plot).findall(".//{*}polyline")) == 5, plot.read_text())


@smoke_test("plan-own-costs")
def own_costs(_: Lab) -> None:
    """Processing times are added where they occur: the hosts' for a ring, the lcores' only for Weir."""
    def times(*costs: str) -> dict[str, float]:
        answer = plan("compare", "--topology", RACKS, "--sizes", "1M", *costs)
        expect(answer.status == 0, f"{costs}: {answer}")
        return {name: float(time) for name, time in re.findall(r"1MiB  (\S+) +([\d.]+)", answer.output)}

    free = times()
    late = times("--host-latency", "10us")
    expect(all(late[name] > free[name] + 10 for name in free), f"{free} {late}")
    adding = times("--host-addition", "1GB/s")
    expect(adding["ring"] > free["ring"] + 0.9 * 1000 and adding["weir"] == free["weir"], f"{free} {adding}")
    slow, fast = (times("--switch-packet-time", "500ns", "--switch-lcores", lcores) for lcores in ("1", "64"))
    expect(slow["weir"] > 2 * fast["weir"] > 2 * free["weir"] and slow["ring"] == free["ring"], f"{slow} {fast} {free}")
    far = times("--switch-latency", "20us")
    expect(abs(far["weir"] - free["weir"] - 3 * 20) < 1 and far["ring"] == free["ring"], f"{far} {free}")


@smoke_test("plan-configuration-mistakes")
def configuration_mistakes(lab: Lab) -> None:
    """Nothing is written when an option cannot be followed. A switch without a ring is told."""
    folder = lab.directory / "configs"
    fabric = ["fabric", "--topology", RACKS, "--configs", folder]
    for address, node, reached in (("255.255.255.253", 0, "255.255.255.253"), ("0.0.0.0", 0, "0.0.0.0"),
                                   ("223.255.255.253", 3, "224.0.0.0"), ("ff02::1", 0, "ff02::1"),
                                   ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 0, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")):
        refused([*fabric, "--first-address", address],
                f"--first-address: found '{address}'; allowed: the first of 16 in a row that hosts may have; node {node} would have {reached}")
    refused([*fabric, "--device", "x{foo}"],
            "--device: found '{foo}'; allowed: {port}, {number}, {switch}, {cable}, {role}, {server}")
    refused([*fabric, "--eal", "--no-pci,-l{port}"], "--eal: found '{port}'; allowed: {switch}")
    for device in ("same", "", "same,id={cable}"):
        refused([*fabric, "--device", device], f"--device: found '{device}'; allowed: a device of its own for each port: "
                "{port} or {number} or {cable} before the first comma")
    for eal, line, found in (("--no-pci,-l,1", 5, '"-l"'), ("-l{switch}", 4, '"-lrack0"')):
        refused([*fabric, "--eal", eal], f"weir would refuse what is to be written: {folder}/rack0.yaml:{line}: eal.options[{line - 4}]: found {found}; "
                "allowed: any EAL option but those that set CPUs; these are set under lcores:")
    for address in ("10.0.0.0", "10.0.3.255"):
        refused([*fabric, "--first-address", address],
                f"--first-address: found '{address}'; allowed: a host's; one that ends in .0 or .255 is a network's or for all its hosts")
    refused([*fabric, "--first-address", "2001:db8::"],
            "--first-address: found '2001:db8::'; allowed: a host's; one that ends in 64 zero bits is a network's")
    star = lab.file("wide.yaml", "generator: {kind: star, nodes: 40, rate: 1Gbit/s, latency: 1us}\n")
    refused(["fabric", "--topology", star, "--configs", folder],
            f"{star}: hub has 40 cables, each on a port of its own; allowed: switches of 1 to 32 ports")
    refused([*fabric, "--mtu", "1500"], "--mtu: found '1500'; allowed: 256, 512, 1024, 2048, 4096")
    refused([*fabric, "--window", "0"], "--window: found '0'; allowed: 1 .. 1024")
    expect(not folder.exists(), "files were written")
    file = lab.file("file", "")
    for place, why in ((file, "Not a directory"), (file / "below", "Not a directory"), ("/proc/none", "No such file or directory")):
        refused(["fabric", "--topology", RACKS, "--configs", place],
                f"--configs: found '{place}'; allowed: a folder, or a place for one; it cannot be made: {why}")
    answer = plan(*fabric, "--rings", "1", "--out", lab.directory / "rings.yaml")
    expect(answer.status == 0 and answer.errors == "weir-plan: spine1 has no part of any ring: it only forwards\n", f"{answer}")


@smoke_test("plan-own-numbers")
def own_numbers(_: Lab) -> None:
    """What a comparison says of its numbers; short packets have more headers."""
    def compared(*options: str) -> tuple[float, str]:
        answer = plan("compare", "--topology", RACKS, "--sizes", "1M", *options)
        expect(answer.status == 0, f"{options}: {answer}")
        found = re.search(r"1MiB  weir +([\d.]+)", answer.output)
        assert found
        return float(found[1]), answer.output.splitlines()[-1]

    usual, said = compared()
    expect(said == "path MTU 4096; weir: window 8, messages of 65536 bytes", said)
    short, said = compared("--mtu", "1024", "--window", "16", "--message-bytes", "32KiB")
    expect(said == "path MTU 1024; weir: window 16, messages of 32768 bytes", said)
    expect(1.03 < short / usual < 1.2, f"{usual} {short}")


@smoke_test("plan-configurations")
def configurations(lab: Lab) -> None:
    """Each switch of a fabric has a file; that of one switch runs as it is."""
    folder = lab.directory / "configs"
    answer = plan("fabric", "--topology", RACKS, "--configs", folder, "--out", lab.directory / "rings.yaml")
    expect(answer.status == 0 and not answer.output and not answer.errors, f"{answer}")
    expect(sorted(file.name for file in folder.iterdir()) == ["rack0.yaml", "rack1.yaml", "spine0.yaml", "spine1.yaml"],
           f"{list(folder.iterdir())}")
    expect("{rank: 8, port: \"host8\"}" in (folder / "rack1.yaml").read_text(), (folder / "rack1.yaml").read_text())
    expect('{ip: "2001:db8::1:0", port: "n1"}' in configured(lab, "--first-address", "2001:db8::ffff").read_text(), "the next address")
    refused(["fabric", "--topology", RACKS, "--first-address", "10.0.0"],
            "--first-address: found '10.0.0'; allowed: an address such as 10.0.0.1 or 2001:db8::1")
    file = configured(lab, "--eal", "--no-huge,-m,256,--no-pci,--file-prefix=weir-plan-{switch}", "--device",
                      f"net_memif{{number}},role={{role}},id={{cable}},socket={lab.directory}/{{server}}.sock,socket-abstract=no")
    switch = lab.ready_weir(lab.namespace(), file)
    expect([row["driver"] for row in switch.ask("/weir/port/info")["port_info"].values()] == ["net_memif"] * 2, "ports")
    switch.stop()


@smoke_test("plan-edited-files")
def edited_files(lab: Lab) -> None:
    """What somebody has written into a file stays there, unless it is asked otherwise; and then nothing else is written either."""
    folder = lab.directory / "configs"
    fabric = ["fabric", "--topology", RACKS, "--configs", folder, "--out", lab.directory / "rings.yaml"]
    for attempt in ("to make them", "to find the same"):
        expect(plan(*fabric).status == 0, attempt)
    edited = folder / "rack1.yaml"
    written = edited.read_text()
    edited.write_text(written + "lcores: [{id: 0, roles: [rx, worker, tx]}]\n")
    (folder / "spine0.yaml").unlink()
    (folder / "spine1.yaml").unlink()
    (folder / "spine1.yaml").mkdir()
    refused(fabric, f"--configs: found {edited}, {folder}/spine1.yaml with other text than would be written, so nothing is; "
            "allowed: another folder, or --force, which writes over them")
    expect("lcores" in edited.read_text() and not (folder / "spine0.yaml").exists(), "something was written")
    (folder / "spine1.yaml").rmdir()
    answer = plan(*fabric, "--force")
    expect(answer.status == 0 and edited.read_text() == written and (folder / "spine0.yaml").exists(), f"{answer}")


@smoke_test("plan-checked-files")
def checked_files(lab: Lab) -> None:
    """`weir --check` finds the files of a fabric in order, with their placeholder devices, and says what somebody has changed since."""
    folder = lab.directory / "configs"
    answer = plan("fabric", "--topology", RACKS, "--configs", folder, "--mtu", "2048", "--out", lab.directory / "rings.yaml")
    expect(answer.status == 0, f"{answer}")
    files = sorted(folder.iterdir())
    answer = run_to_end([WEIR, "--check", *files])
    said = "".join(f"{file}: in order: ports {2 if 'spine' in file.name else 10}, rings {1 if 'spine' in file.name else 2}; EAL needs at least N MiB\n"
                   for file in files) + "".join(f"ring {ring}: 16 ranks, root spine{ring - 1}, the same on all its switches (3)\n" for ring in (1, 2))
    expect(answer.status == 0 and re.sub(r"\d+ MiB", "N MiB", answer.output) == said and not answer.errors, f"{answer}\n{said}")
    changed = folder / "rack1.yaml"
    usual = changed.read_text()
    changed.write_text(usual.replace("window: 8", "window: 16", 1))
    answer = run_to_end([WEIR, "--check", *files])
    at = [f"{file}:{1 + file.read_text()[:file.read_text().index('window: ')].count(chr(10))}" for file in (changed, files[0], files[2])]
    expect(answer.status == 2 and answer.errors == f"weir: ring 1: found window 16 in {at[0]}, and window 8 in {at[1]}, {at[2]}; "
           "allowed: the same in the files of all its switches\n", f"{answer}")
    expect(re.sub(r"\d+ MiB", "N MiB", answer.output) == f"{files[3]}: in order: ports 2, rings 1; EAL needs at least N MiB\n", f"{answer}")
    changed.write_text(usual.replace("children:", "childs:", 1))
    line = 1 + usual[:usual.index("children:")].count("\n")
    answer = run_to_end([WEIR, "--check", *files])
    expect(answer.status == 2 and f"weir: {changed}:{line}: rings[0].childs: found an unknown key; allowed: " in answer.errors
           and f"{files[0]}: in order by itself" in answer.output, f"{answer}")
    answer = run_to_end([WEIR, "--check", files[0]])
    expect(answer.status == 0 and not answer.errors and f"{files[0]}: in order by itself: ports 10, rings 2" in answer.output
           and answer.output.endswith("ring 1: its tree is not checked: no file of spine0\nring 2: its tree is not checked: no file of spine1\n"),
           f"{answer}")
    copy = lab.file("rack0.yaml", files[0].read_text())
    answer = run_to_end([WEIR, "--check", files[0], copy])
    expect(answer.status == 2 and "allowed: files of different names" in answer.errors, f"{answer}")


def configured(lab: Lab, *options: str) -> Path:
    """The configuration of one switch with two hosts."""
    star = lab.file("star.yaml", "generator: {kind: star, nodes: 2, rate: 1Gbit/s, latency: 1us}\n")
    answer = plan("fabric", "--topology", star, "--configs", lab.directory / "star", "--force", *options)
    expect(answer.status == 0, f"{answer}")
    return lab.directory / "star" / "hub.yaml"
