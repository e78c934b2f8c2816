# SPDX-License-Identifier: BSD-3-Clause
"""`weir --check-server` on this machine: what it says, and whether a start agrees."""
from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from lab import Lab, smoke_test
from weir import ONE_CORE, QUIET_PORT, WEIR, Ended, configuration, expect, run_to_end

RANKS = ("wrong", "warning", "unknown", "fine")
ABSENT_NIC = "0000:fe:1f.7"
# What each file asks of the machine, and the question that says that the machine has not got it.
IMPOSSIBLE = {
    "device": configuration([f'name: p0, device: "{ABSENT_NIC}"']),
    "CPUs": configuration([QUIET_PORT], ONE_CORE.replace("id: 1,", "id: 1000,")),
    "link": configuration(['name: p0, device: "net_af_packet0,iface=none9"']),
    "hugepages": configuration([QUIET_PORT], eal='["--no-huge", "-m", "1"]'),
}


def asked(file: Path) -> tuple[Ended, dict]:
    """The text, and the JSON that says the same."""
    text = run_to_end([WEIR, "--config", file, "--check-server"])
    answer = run_to_end([WEIR, "--config", file, "--check-server", "--json"])
    expect(answer.status == text.status and not text.errors and not answer.errors, f"{text}, {answer}")
    said = json.loads(answer.output)
    counted = Counter(finding["rank"] for finding in said["findings"])
    expect(all(said[rank] == counted[rank] for rank in RANKS) and set(counted) <= set(RANKS), f"{said}")
    expect(all(f"{finding['rank']:<9}{finding['question']:<18}{finding['found']}\n" in text.output for finding in said["findings"]),
           f"{text.output}: {said}")
    return text, said


@smoke_test("check-server")
def check_server(lab: Lab) -> None:
    """What starts is called possible, and what does not is called wrong, by the right question."""
    possible = lab.file("weir.yaml", configuration([QUIET_PORT]))
    text, said = asked(possible)
    expect(text.status == 0 and said["wrong"] == 0 and "\nthe switch would start: wrong 0, " in text.output, f"{text}")
    lab.ready_weir(lab.namespace(), possible).stop()
    for question, config in IMPOSSIBLE.items():
        file = lab.file("weir.yaml", config)
        text, said = asked(file)
        wrong = {finding["question"]: finding for finding in said["findings"] if finding["rank"] == "wrong"}
        expect(text.status == 2 and set(wrong) == {question} and wrong[question]["mend"], f"{question}: {text}")
        expect(f"mend: {wrong[question]['mend']}\n" in text.output and "the switch would not start: " in text.output, f"{text}")
        started = run_to_end([WEIR, "--config", file, "--no-interactive"])
        expect(started.status in (1, 2), f"{question}: it starts: {started}")


@smoke_test("check-server-errors")
def check_server_errors(lab: Lab) -> None:
    file = lab.file("weir.yaml", configuration([QUIET_PORT]))
    refused = run_to_end([WEIR, "--config", file, "--json"])
    expect(refused.status == 2 and "--json: found no --check-server" in refused.errors, f"{refused}")
    refused = run_to_end([WEIR, "--config", lab.file("wrong.yaml", "ports: []\n"), "--check-server", "--json"])
    expect(refused.status == 2 and "ports: found" in refused.errors and not refused.output, f"{refused}")
