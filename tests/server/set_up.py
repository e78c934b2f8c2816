# SPDX-License-Identifier: BSD-3-Clause
"""docs/deployment.md from the kernel's command line to the first all-reduce, and again after a boot."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/guest")]

import disk  # noqa: E402
import packages  # noqa: E402
from day import CONFIGURATION, Day, check_workers  # noqa: E402
from install import expect, output_of  # noqa: E402
from page import changed  # noqa: E402
from server import NICS  # noqa: E402

# What the page's reader has, and this server.
HERE = {
    "default_hugepagesz=1G hugepagesz=1G hugepages=4": "default_hugepagesz=2M hugepagesz=2M hugepages=16",
    "isolcpus=2-7 nohz_full=2-7 rcu_nocbs=2-7": "isolcpus=1 nohz_full=1 rcu_nocbs=1",
    "0000:17:00.0": NICS[0].slot,
    "nr_hugepages - - - - 1024": "nr_hugepages - - - - 160",
}
# A command for the page's last NIC is one for each further NIC too.
LAST_NIC = "driverctl set-override 0000:17:00.1 vfio-pci"
FILE_HERE = {
    '"--socket-mem", "2048,0"': '"--socket-mem", "300"',
    # An emulated processor that spins would take a real one.
    "- { id: 2, roles: [rx, worker, tx] }": "- { id: 1, roles: [rx, worker, tx], idle: sleep }",
    'device: "0000:17:00.0"': f'device: "{NICS[0].slot}"',
    '  - { name: p1, device: "0000:17:00.1", mtu: 9000 }\n':
        f'  - {{ name: p1, device: "{NICS[1].slot}", mtu: 9000 }}\n  - {{ name: p2, device: "{NICS[2].slot}", mtu: 9000 }}\n',
    "      - { ip: 192.168.100.2, port: p1 }\n":
        "      - { ip: 192.168.100.2, port: p1 }\n      - { ip: 192.168.100.3, port: p2 }\n",
}
# The page's worker has an RDMA NIC, and a server that is no emulator.
WORKER_HERE = {
    "--world 2": f"--world {len(NICS)}",
    "--transport verbs --device mlx5_0 --gid-index 3": "--device host0",
    "--size 1GiB --repeat 10": "--size 256KiB --repeat 2 --timeout 240 --ack-timeout-ms 1000",
}
# Commands of the sections below that are not run, and why.
FROM_A_CLONE = "tools/prepare, tools/demo and tests/install.py are stages of their own"
FOR_RDMA = "it needs an RDMA NIC: tests/guest"
LEFT_OUT = {
    "reboot": "the boot loader is the test",
    "tools/prepare build": FROM_A_CLONE,
    "tools/demo": FROM_A_CLONE,
    "meson install -C build && systemd-sysusers": FROM_A_CLONE,
    "apt install rdma-core ibverbs-providers ibverbs-utils perftest": FOR_RDMA,
    "rdma link": FOR_RDMA,
    "ibv_devinfo -v -d mlx5_0 | grep -E 'active_mtu|GID'": FOR_RDMA,
}


SECTIONS = ("2. Server: BIOS and kernel", "Install", "Give Weir its NICs", "Start", "What survives a reboot", "4. Hosts")


def check_page(day: Day) -> None:
    """All that is told here of the page is so."""
    for words in (*HERE, *FILE_HERE, *WORKER_HERE):
        expect(words in day.page.text, f"docs/deployment.md does not say {words!r} any more")
    there = {command.text for heading in SECTIONS for command in day.page.commands(heading)}
    for command in (LAST_NIC, *LEFT_OUT):
        expect(command in there, f"docs/deployment.md has no command {command!r} any more in {SECTIONS}")


def check_packages(day: Day) -> None:
    day.packages = packages.kept_or_built()


def check_disk(day: Day) -> None:
    day.disk = disk.make(day.folder, day.packages)
    day.image = disk.starter()


def run_on_disk(day: Day, heading: str) -> None:
    """What root types there, before the first boot, as from an installer's shell: an emulated processor would take a minute."""
    commands = [changed(command.text, HERE) for command in day.page.commands(heading)
                if command.by_root and command.text not in LEFT_OUT]
    disk.run_on(day.disk, "\n".join(["cd /root", *commands]))


def check_command_line(day: Day) -> None:
    run_on_disk(day, "2. Server: BIOS and kernel")


def check_install(day: Day) -> None:
    run_on_disk(day, "Install")


def check_boot(day: Day) -> None:
    """With the command line that the boot loader would take; then the page's own look at it. The switch is not started."""
    day.boot(disk.command_line(day.disk))
    looks = [command for command in day.page.commands("2. Server: BIOS and kernel") if not command.by_root]
    groups, hugepages, isolated = (day.run_as_user(look.text).output for look in looks)
    expect(len(groups.split()) >= len(NICS), f"IOMMU groups: {groups}")
    expect(re.search(r"HugePages_Total: +16\n", hugepages) is not None, hugepages)
    expect(isolated == "1\n", f"isolated CPUs: {isolated}")
    expect(day.run("systemctl is-enabled weir", status=1).output == "disabled\n", "an installation enables the switch")


def check_binding(day: Day) -> None:
    """Each NIC leaves its kernel driver."""
    said = day.carry_out("Give Weir its NICs", HERE, LEFT_OUT | {LAST_NIC: "for each of the others"})
    listed = said["lspci -D | grep Ethernet"]
    expect(all(nic.slot in listed for nic in NICS), f"lspci lists {listed}")
    for nic in NICS[1:]:
        day.run(changed(LAST_NIC, {"0000:17:00.1": nic.slot}))
    expect(overridden(day) == {nic.slot for nic in NICS}, f"overridden: {overridden(day)}")


def overridden(day: Day) -> set[str]:
    listed = day.run("driverctl list-overrides").output
    return {line.split()[0] for line in listed.splitlines() if line.split()[1:] == ["vfio-pci"]}


def asked_server(day: Day) -> dict[str, list[dict[str, str]]]:
    """By rank, what `--check-server` finds."""
    said = json.loads(day.run(f"weir --config {CONFIGURATION} --check-server --json", status=None).output)
    return {rank: [finding for finding in said["findings"] if finding["rank"] == rank]
            for rank in ("wrong", "warning", "unknown", "fine")}


def check_configuration(day: Day) -> None:
    """Before there are enough hugepages, that is the only thing that is wrong."""
    text = changed(day.page.block("Configure", "yaml", "0000:17:00.0"), FILE_HERE)
    (day.logs / "weir.yaml").write_text(text)
    day.server.put(CONFIGURATION, text.encode())
    wrong = asked_server(day)["wrong"]
    expect([finding["question"] for finding in wrong] == ["hugepages"] and "needed 300" in wrong[0]["found"], f"wrong: {wrong}")


def check_hugepages(day: Day) -> None:
    day.carry_out("What survives a reboot", HERE, LEFT_OUT)
    found = asked_server(day)
    expect(not found["wrong"], f"wrong: {found['wrong']}")


def check_start(day: Day) -> None:
    said = day.carry_out("Start", HERE, LEFT_OUT)
    check_runs(day, said["weirctl show port info all"], said["journalctl -u weir"])


def check_runs(day: Day, ports: str, journal: str) -> None:
    """The switch is not root, has all three NICs by DPDK's drivers, and the server suits its file."""
    process = day.run("systemctl show --value --property MainPID weir").output.strip()
    expect(day.run(f"stat -c %U /proc/{process}").output == "weir\n", "the switch is root")
    found = re.findall(r"^ *(p\d) +(\S+) +(\w+) +\S+ +(\w+)", ports, re.MULTILINE)
    expect(found == [(f"p{nic.number}", nic.slot, nic.driver, "up") for nic in NICS], f"found {found} in\n{ports}")
    expect("the switch would start: wrong 0, " in journal, f"the server is not checked:\n{journal}")


def check_hosts(day: Day) -> None:
    """The page's commands for addresses, and its ping, from each host to the next."""
    commands = [command.text for command in day.page.commands("4. Hosts") if command.text not in LEFT_OUT]
    for rank, host in enumerate(day.hosts.namespaces):
        for command in commands:
            host.ip(changed(command, {"enp1s0np0": f"host{rank}", "192.168.100.1": address_of(rank)}).removeprefix("ip "))
    ping = re.search(r"`(ping -M do -s 8972 192\.168\.100\.2)`", day.page.section("4. Hosts"))
    expect(ping is not None, "docs/deployment.md has another ping")
    for rank in range(len(NICS)):
        whom = address_of((rank + 1) % len(NICS))
        pinger = day.hosts.start(rank, *changed(ping[1], {"192.168.100.2": whom}).split(), "-c", "3", "-w", "60")
        said, _ = pinger.communicate()
        expect(pinger.returncode == 0, f"{NICS[rank].model}: {said}")


def address_of(rank: int) -> str:
    return f"192.168.100.{rank + 1}"


def worker_of(day: Day) -> str:
    """The page's command for rank 0, with the program of the packages."""
    text = changed(day.page.commands("8. The first all-reduce")[0].text, WORKER_HERE)
    program = day.folder / "tools/usr/bin/weir-worker"
    if not program.exists():
        output_of("dpkg-deb", "--extract", next(day.packages.glob("weir-tools_*.deb")), day.folder / "tools")
    return changed(text, {"build/app/weir-worker": str(program)})


def check_all_reduce(day: Day) -> None:
    """On three models of NICs, every element right."""
    check_workers(day.workers(worker_of(day)))


def check_reboot(day: Day) -> None:
    """Nobody does anything, and all is as before."""
    day.turn_off()
    day.boot(disk.command_line(day.disk))
    day.server.wait_until("systemctl is-active --quiet weir", 300.0)
    expect(overridden(day) == {nic.slot for nic in NICS}, f"overridden: {overridden(day)}")
    check_runs(day, day.run("weirctl show port info all").output, day.journal())
    check_all_reduce(day)


CHECKS = (check_page, check_packages, check_disk, check_command_line, check_install, check_boot, check_binding, check_configuration, check_hugepages,
          check_start, check_hosts, check_all_reduce, check_reboot)
