# SPDX-License-Identifier: BSD-3-Clause
"""Runs checks and counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Check = tuple[str, Callable[[], list[str]]]  # its name; what is wrong


def run(what: str, checks: Iterable[Check]) -> int:
    """Ends in "WHAT: N passed, N failed, 0 skipped". Returns the exit status."""
    passed = failed = 0
    for name, check in checks:
        if wrong := check():
            failed += 1
            print(f"FAIL {name}", *wrong[:4], sep="\n  ")
        else:
            passed += 1
    print(f"{what}: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0
