# SPDX-License-Identifier: BSD-3-Clause
"""A bare Debian in a folder: the smallest that has apt, from the same mirror as this machine's, and packages that are named.

It is made once a week for the same names and sources, and kept as an archive. Needs root.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from install import ROOT, expect, output_of

SUITE = "bookworm"
CACHE = ROOT / "build/bare-debian"
FRESH_S = 7 * 24 * 3600.0  # then Debian has other versions of some
QUIETLY = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
KILLED_WITH_US = ("setpriv", "--pdeathsig", "KILL")
# Nothing that such a command mounts or starts outlives it.
ALONE = (*KILLED_WITH_US, "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")


def _sources() -> list[Path]:
    folder = Path("/etc/apt")
    found = [file for pattern in ("sources.list", "sources.list.d/debian*") for file in folder.glob(pattern)]
    expect(bool(found), "there is no source of Debian's packages in /etc/apt")
    return found


def _archive(packages: Sequence[str]) -> Path:
    sources = _sources()
    content = "\0".join([*sorted(packages), *(file.read_text() for file in sources)])
    archive = CACHE / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.tar"
    if archive.exists() and time.time() - archive.stat().st_mtime < FRESH_S:
        return archive
    CACHE.mkdir(parents=True, exist_ok=True)
    partial = CACHE / f"partial-{os.getpid()}.tar"
    include = [f"--include={','.join(packages)}"] if packages else []
    output_of(*ALONE, "mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", *include, SUITE, partial, *sources,
              environment=QUIETLY)
    partial.rename(archive)  # two runs at once may both get here: each writes its own
    return archive


def make(root: Path, packages: Sequence[str] = ()) -> None:
    """A folder with it, for the caller to change."""
    root.mkdir()
    output_of("tar", "--extract", "--numeric-owner", "--xattrs", "--xattrs-include=*", "--file", _archive(packages), "--directory", root)


@contextlib.contextmanager
def folder_of_our_own(stage: str) -> Iterator[Path]:
    """Not below /tmp, which may be too small; and removed also when a signal ends the run."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix=f"weir-{stage}-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


def run_in(root: Path, *command: object) -> str:
    """Runs a command in the folder, where nothing else runs."""
    enter = ("sh", "-ec", 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"', root)
    return output_of(*ALONE, *enter, *command, environment=QUIETLY)
