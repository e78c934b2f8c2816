# SPDX-License-Identifier: BSD-3-Clause
"""What a page tells a newcomer to type, as a script of this build."""
from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from weir import BUILD, ROOT, expect

INSTALLS = ("# apt install ", "# python3 -m venv ", "# pip install ")  # what the tests have already


def first_sum(page: str, folder: Path, places: Mapping[str, str]) -> str:
    """The commands of the page's first listing, with this build's programs and the folder for /run and /tmp. `places` has others
    that the page names, and what is in their place here."""
    folder.mkdir(exist_ok=True)
    (folder / "mpi.yaml").write_text((ROOT / "config/mpi.yaml").read_text().replace("/run/weir", str(folder)))
    listing = (ROOT / page).read_text().split("## A counted sum in five minutes")[1].split("```\n")[1]
    script = "\n".join(line.removeprefix("# ") for line in listing.splitlines() if not line.startswith(INSTALLS))
    for named, here in ({"/usr/share/doc/weir/examples/": "", "/tmp/": "", "/run/weir": str(folder)} | dict(places)).items():
        expect(named in script, f"{page} has no {named} among its first commands: {script}")
        script = script.replace(named, here)
    programs = f"PATH={shlex.quote(str(BUILD / 'app'))}:$PATH\nexport WEIR_SERVER=unix:{folder}/control.sock"
    return f"trap 'kill $(jobs -p); wait' EXIT\n{programs}\ncd {folder}\n{script}\n"
