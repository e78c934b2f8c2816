# SPDX-License-Identifier: BSD-3-Clause
"""The first seconds of tools/soak, in a hurry."""
from __future__ import annotations

import sys

from lab import Lab, smoke_test
from weir import ROOT, expect

sys.path.insert(0, str(ROOT / "tests" / "soak"))
from soak import Soak  # noqa: E402
from watch import Watched  # noqa: E402

SECONDS = 10.0
PACE = 0.3  # of the pauses


@smoke_test("soak")
def soak(lab: Lab) -> None:
    """Each kind of act has happened, with what must come of it, and nothing is left or has grown."""
    found = Soak(lab, SECONDS, seed=1, pace=PACE)
    found.run()
    expect(not found.wrong, "\n".join(found.wrong))
    expect(all(count.done for count in found.counts.values()), found.table())


@smoke_test("soak-watches")
def watches(_: Lab) -> None:
    """What grows all the time is seen, and what only comes once, or goes up and down, is not."""
    for values, has_grown in (
            ([100 + 0.1 * look for look in range(200)], True),
            ([50] * 20 + [100] * 180, False),
            ([100 + look % 7 for look in range(200)], False),
            ([100] * 150 + [130] * 50, True),
            ([100], False)):
        thing = Watched("memory", "MiB", lambda: 0.0, 4.0, 0.03, list(map(float, values)))
        expect(thing.has_grown() == has_grown, f"{thing}")
