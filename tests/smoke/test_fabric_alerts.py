# SPDX-License-Identifier: BSD-3-Clause
"""The alerts and the board for a fabric's manager: promtool's opinion, and whether the manager has the numbers that they name."""
from __future__ import annotations

import json
import re

from fabric_lab import HOSTILE, Fabric
from lab import Lab, smoke_test
from test_metrics import promtool
from weir import ROOT, expect

RULES = ROOT / "config/prometheus/weir-fabric.rules.yaml"
TESTS = ROOT / "tests/metrics/fabric_rules_test.yaml"
WITH_ETCD = {"weir_fabric_standbys"}  # test_fabric_etcd.py has it
WITH_TLS = {"weir_fabric_certificate_seconds_left"}  # test_fabric_gate.py has it
BOARD = ROOT / "config/grafana/weir-fabric.json"


@smoke_test("fabric-alerts")
def alerts(lab: Lab) -> None:
    """When each alert fires and when not, in simulated time; and the test of each alert notices another time, and a missing condition."""
    text = RULES.read_text()

    def failed(rules: str) -> set[str]:
        """The alerts that do not fire as they should."""
        test = re.sub(r"(?<=rule_files: \[).*(?=\])", json.dumps(str(lab.file("rules.yaml", rules))), TESTS.read_text())
        done = promtool("test", "rules", lab.file("test.yaml", test))
        names = set(re.findall(r"alertname: (\w+),", done.stdout + done.stderr))
        expect(bool(names) == (done.returncode != 0), done.stdout + done.stderr)
        return names

    alerts = dict(re.findall(r"- alert: (\w+)(.*?)annotations:", text, re.DOTALL))
    expect(failed(text) == set(), f"{failed(text)} do not fire as their tests say")
    for other in ("for: 0s", "for: 1h"):
        due = {name for name, rule in alerts.items() if "for: " in rule}
        expect(failed(re.sub(r"for: \d+[sm]", other, text)) == due, f"not all of {due} notice {other}")
    condition = r" unless .*|\{what=~[^}]*\}|\{state=[^}]*\}|(?<=weir_fabric_leader) == 1"
    due = {name for name, rule in alerts.items() if re.search(condition, rule)}
    expect(failed(re.sub(condition, "", text)) == due, f"not all of {due} notice that a condition is missing")


@smoke_test("fabric-metrics-are-there")
def are_there(lab: Lab) -> None:
    """Each metric of the alerts and of the board is one of a manager's, and so are its labels' values; promtool can read the board's queries."""
    fabric = Fabric(lab)
    fabric.say(waits=[HOSTILE])
    fabric.wait_until(lambda metrics: "weir_fabric_job_waits_for{" in metrics, "no job waits")
    metrics = fabric.metrics_or_nothing()
    queries = [target["expr"] for panel in json.loads(BOARD.read_text())["panels"] for target in panel["targets"]]
    named = "\n".join([RULES.read_text(), *queries])
    for name in set(re.findall(r"weir_fabric_\w+", named)) - WITH_ETCD - WITH_TLS:
        expect(re.search(rf"^{name}[ {{]", metrics, re.MULTILINE), f"the manager has no {name}")
    for label, values in re.findall(r'\{(\w+)=~?"([^"]*)"\}', named):
        for value in values.split("|"):
            expect(f'{label}="{value}"' in metrics, f"the manager has no {label}={value!r}")
    rules = [{"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "1m")} for number, query in enumerate(queries)]
    checked = promtool("check", "rules", lab.file("board.yaml", json.dumps({"groups": [{"name": "board", "rules": rules}]})))
    expect(checked.returncode == 0, checked.stdout + checked.stderr)
