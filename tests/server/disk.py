# SPDX-License-Identifier: BSD-3-Clause
"""The server's disk: a Debian with the kernel of this machine, and the packages to install in root's home."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/guest")]

import bare_debian  # noqa: E402
from image import AGENT, Image, cached_image, entries_of, loaded_modules, modules_in_order, newest_kernel  # noqa: E402
from install import expect, output_of  # noqa: E402
from machine import CHANNELS  # noqa: E402

SIZE = "1200M"
INSTALLED = ("weir", "weir-tools")  # as the page says
# What a server has that somebody has installed Debian on, so far as the page speaks of it; and what the page installs from
# Debian, since the server has no mirror.
OF_DEBIAN = ("systemd-sysv", "udev", "kmod", "iproute2", "pciutils", "driverctl", "grub-pc")
# Of the kernel: for the machine itself, and the NICs' own drivers.
EARLY_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
MODULES = (*EARLY_MODULES, "virtio_console", "vfio_pci", "vfio_iommu_type1", "e1000e", "vmxnet3", "virtio_net", "autofs4")
# Units of a server that neither Weir nor the page needs. An emulated processor takes seconds for each.
MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "console-getty.service", "dbus.service", "dbus.socket", "dev-mqueue.mount",
    "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "getty-static.service", "getty.target",
    "grub-common.service", "kmod-static-nodes.service", "ldconfig.service", "modprobe@configfs.service",
    "modprobe@dm_mod.service", "modprobe@drm.service", "modprobe@efi_pstore.service", "modprobe@fuse.service",
    "modprobe@loop.service", "networking.service", "proc-sys-fs-binfmt_misc.automount", "remote-fs.target",
    "sys-fs-fuse-connections.mount", "sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
    "systemd-ask-password-console.path", "systemd-ask-password-wall.path", "systemd-binfmt.service", "systemd-firstboot.service",
    "systemd-hwdb-update.service", "systemd-initctl.socket", "systemd-journal-flush.service", "systemd-logind.service",
    "systemd-machine-id-commit.service", "systemd-pcrphase.service", "systemd-pcrphase-sysinit.service", "systemd-pstore.service",
    "systemd-random-seed.service", "systemd-remount-fs.service", "systemd-repart.service", "systemd-timesyncd.service",
    "systemd-tmpfiles-clean.timer", "systemd-update-utmp-runlevel.service", "systemd-update-utmp.service",
    "systemd-user-sessions.service",
)
# Of the devices that there are at the start: consoles, disks and memory need none of udev's rules here.
FEW_DEVICES = """[Service]
ExecStart=
ExecStart=-udevadm trigger --type=devices --action=add --subsystem-match=pci --subsystem-match=net --subsystem-match=virtio
"""
AGENT_UNIT = f"""[Unit]
DefaultDependencies=no
After=systemd-modules-load.service
[Service]
ExecStart=/bin/sh -c 'for n in $(seq {CHANNELS}); do until port=$(echo /dev/vport*p$n) && [ -c "$port" ]; do sleep 0.05; done; /usr/bin/weir-agent "$port" & done; wait'
KillMode=process
"""
INIT = """#!/bin/sh
mount -t devtmpfs devtmpfs /dev
while read -r module; do insmod "/lib/modules/$module"; done < /etc/modules.list
until mount -t ext4 /dev/vda /root; do sleep 0.05; done
exec switch_root /root /sbin/init
"""


def starter() -> Image:
    """The kernel, and what mounts the disk."""
    kernel, modules = newest_kernel()
    return cached_image(kernel, entries_of({**loaded_modules(modules, EARLY_MODULES), "init": INIT.encode()}))


def needs_of(packages: Path) -> list[str]:
    """Names of Debian's packages that those need which are installed."""
    found = set()
    for name in INSTALLED:
        file = next(packages.glob(f"{name}_*.deb"))
        for need in output_of("dpkg-deb", "--field", file, "Depends").strip().split(","):
            found.add(re.match(r"\s*([\w.+-]+)", need)[1])
    return sorted(found - set(INSTALLED))


def make(folder: Path, packages: Path) -> Path:
    """The disk's file."""
    root = folder / "root"
    bare_debian.make(root, [*OF_DEBIAN, *needs_of(packages)])
    add_kernel(root)
    add_agent(root)
    for name in MASKED:
        (root / "etc/systemd/system" / name).symlink_to("/dev/null")
    own = root / "etc/systemd/system/systemd-udev-trigger.service.d/few-devices.conf"
    own.parent.mkdir()
    own.write_text(FEW_DEVICES)
    for name in INSTALLED:
        shutil.copy2(next(packages.glob(f"{name}_*.deb")), root / "root")
    (root / "etc/hostname").write_text("server\n")
    shutil.rmtree(root / "var/lib/apt/lists", ignore_errors=True)
    disk = folder / "disk.img"
    output_of("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", root, disk, SIZE)
    shutil.rmtree(root)
    return disk


def add_kernel(root: Path) -> None:
    kernel, modules = newest_kernel()
    version = modules.name
    shutil.copy2(kernel, root / "boot")
    for file in modules_in_order(modules, MODULES):
        target = root / "lib/modules" / version / file.relative_to(modules)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy2(modules / name, root / "lib/modules" / version)
    output_of("depmod", "--basedir", root, version)


def add_agent(root: Path) -> None:
    agent = root / "usr/bin/weir-agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    units = root / "etc/systemd/system"
    (units / "weir-agent.service").write_text(AGENT_UNIT)
    wanted = units / "sysinit.target.wants"
    wanted.mkdir(exist_ok=True)
    (wanted / "weir-agent.service").symlink_to("/etc/systemd/system/weir-agent.service")
    (root / "etc/modules-load.d/agent.conf").write_text("virtio_console\n")


# The disk is a loop device here, which GRUB does not take for one; the server has another name for it.
GRUB_PROBE = """#!/bin/sh
case "$*" in
  *--target=device*) echo /dev/vda ;;
  *--target=fs_uuid*) echo %s ;;
  *--target=fs*) echo ext2 ;;
  *--target=abstraction*) ;;
  *) exit 1 ;;
esac
"""


def run_on(disk: Path, script: str) -> str:
    """Runs a shell script in the disk's system, which is not booted: the machine around it is this one."""
    mount, probe = disk.with_suffix(".mount"), disk.with_suffix(".grub-probe")
    mount.mkdir(exist_ok=True)
    probe.write_text(GRUB_PROBE % output_of("blkid", "-s", "UUID", "-o", "value", disk).strip())
    probe.chmod(0o755)
    enter = ('mount -o loop "$0" "$1"; for tree in dev proc sys; do mount --rbind "/$tree" "$1/$tree"; done; '
             'mount --bind "$2" "$1/usr/sbin/grub-probe"; exec chroot "$1" sh -exc "$3"')
    return output_of(*bare_debian.ALONE, "sh", "-ec", enter, disk, mount, probe, script, environment=bare_debian.QUIETLY)


def command_line(disk: Path) -> str:
    """What the boot loader would give to the first kernel of its menu."""
    menu = output_of("debugfs", "-R", "cat /boot/grub/grub.cfg", disk)
    entry = re.search(r"^\s*linux\s+/boot/vmlinuz\S+ (.*)$", menu, re.MULTILINE)
    expect(entry is not None, f"update-grub has written no kernel:\n{menu}")
    assert entry is not None
    return entry[1]
