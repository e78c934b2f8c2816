# SPDX-License-Identifier: BSD-3-Clause
"""Certificates of a fabric's switch that try what is not theirs: each call, with each name."""
from __future__ import annotations

import json

from lab import Lab, smoke_test
from test_control import CLIENT, NULL_PORTS, PYTHON, TCP, Authority
from weir import expect, run_to_end

MANAGERS_CALLS = {"ClaimFabric", "ApplyRings", "RemoveRings", "WatchSwitch"}
DENIED = "PERMISSION_DENIED"


@smoke_test("fabric-rogues")
def rogues(lab: Lab) -> None:
    """A manager may manage rings, and nothing else of the service; tenants may do anything but that; strangers nothing."""
    authority = Authority(lab, "fabric")
    certificate, key = authority.sign("switch")
    namespace = lab.namespace()
    switch = lab.ready_weir(namespace, (
        f'{NULL_PORTS}spare: {{ rings: 2, members: 4, frames: 64 }}\nstate_directory: {lab.directory / "state"}\ntenants: [{{ name: red }}]\n'
        f'control:\n  listen: ["{TCP}"]\n  fabric: lab\n  managers: [mgr]\n  operators: [ann]\n'
        f'  tls: {{ certificate: "{certificate}", key: "{key}", client_authority: "{authority.certificate}" }}\n'))

    def denied(name: str) -> tuple[set[str], set[str]]:
        """The methods that are, and those that are not."""
        with namespace.entered():
            ended = run_to_end([PYTHON, str(CLIENT), "--tls", *authority.sign(name), authority.certificate, TCP, "try"])
        expect(ended.status == 0, f"{name}: {ended}")
        codes = json.loads(ended.output)
        return {method for method in codes if codes[method] == DENIED}, {method for method in codes if codes[method] != DENIED}

    expect(denied("mgr")[1] == MANAGERS_CALLS, f"a manager may: {denied('mgr')}")
    of_a_tenant, of_an_operator, of_a_stranger = denied("red"), denied("ann"), denied("stranger")
    expect(of_a_tenant[0] >= MANAGERS_CALLS, f"a tenant may not: {of_a_tenant[0]}")
    expect(of_an_operator[0] == set(), f"an operator may not: {of_an_operator[0]}")
    expect(of_a_stranger[1] == set() and of_a_stranger[0] > MANAGERS_CALLS, f"a stranger may: {of_a_stranger[1]}")
    switch.stop()
