# SPDX-License-Identifier: BSD-3-Clause
"""What Prometheus sees: the endpoint beside the prompt's answers, promtool's opinion, and a Prometheus that scrapes a
running switch, evaluates the alerts and answers the board's queries."""
from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hosts import RANKS, Hosts, Job, ring_of_hosts
from lab import Lab, smoke_test
from netns import Namespace
from terminal import Terminal
from weir import KILLED_WITH_US, NO_HUGEPAGES, QUIET_PORT, ROOT, Failed, configuration, expect, wait_for

UNPACKED = ROOT / "build/prometheus/usr/bin"  # by tools/prepare
PROMTOOL = str(UNPACKED / "promtool")
LISTEN = "127.0.0.1:9464"
PROMETHEUS = "127.0.0.1:9090"
RULES = ROOT / "config/prometheus/weir.rules.yaml"
BOARD = ROOT / "config/grafana/weir.json"
SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")
SCRAPED_EVERY_S = 1
HALF_REQUESTS = 150  # and as many answers that nobody reads
PATIENCE_S = 4  # less than the five seconds for which such a client held a thread


def promtool(*words: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """`text` is what it reads."""
    return subprocess.run([PROMTOOL, *map(str, words)], input=text, text=True, capture_output=True)


def expect_well_formed(metrics: str) -> None:
    checked = promtool("check", "metrics", text=metrics)
    expect(checked.returncode == 0, f"promtool: {checked.stdout}{checked.stderr}")


def with_metrics() -> str:
    return (ROOT / "config/af_packet.yaml").read_text() + f"\nmetrics: {{ listen: \"{LISTEN}\" }}\n"


def scrape(fabric: Namespace) -> str:
    with fabric.entered(), urllib.request.urlopen(f"http://{LISTEN}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def samples(text: str) -> dict[tuple[str, frozenset[str]], float]:
    """By name and the set of its label="value" texts."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            sample = SAMPLE.match(line)
            assert sample is not None, line
            found[sample[1], frozenset(filter(None, (sample[2] or "").split(",")))] = float(sample[3])
    return found


def values_of(fabric: Namespace) -> Callable[..., float]:
    """value(name, label="value", …) of one scrape."""
    found = samples(scrape(fabric))

    def value(name: str, **labels: object) -> float:
        key = name, frozenset(f'{label}="{value}"' for label, value in labels.items())
        expect(key in found, f"no {key} in the scrape")
        return found[key]
    return value


def loaded(lab: Lab) -> tuple[Namespace, Hosts, Terminal]:
    """A switch with metrics that a job has used. Then rank 3 is late, and a frame was dropped."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, with_metrics())
    hosts.say_hello()
    Job(hosts, last=2).run()
    for rank in (0, 0, 1, 2):
        hosts.send(rank, 33)
    wait_for(lambda: int(terminal.switch.ask("/weir/ring,7")["rings"]["0"]["held"]) == 3, 5, "three frames are not held")
    return fabric, hosts, terminal


@smoke_test("metrics")
def metrics(lab: Lab) -> None:
    """Each number beside what the hosts know or the prompt says."""
    fabric, _, terminal = loaded(lab)
    value = values_of(fabric)
    expect(value("weir_up") == 1, "not up")
    expect(value("weir_ring_ranks", ring=7) == RANKS == value("weir_ring_connected_ranks", ring=7), "ranks")
    expect(value("weir_ring_slots_completed_total", ring=7) == 33, "the hello and two messages of 16 packets")
    expect(value("weir_ring_results_total", ring=7) == RANKS * 33, "results")
    expect(value("weir_ring_slots_filling", ring=7) == 1, "one packet waits for rank 3")
    expect([value("weir_rank_packets_total", ring=7, rank=rank) for rank in range(RANKS)] == [35, 34, 34, 33], "packets")
    expect(value("weir_port_receive_packets_total", port="p0") == 35, "packets by p0")
    expect(value("weir_ring_dropped_frames_total", ring=7, reason="repeat_held") == 1, "the frame that was sent twice")
    expect(value("weir_dropped_frames_total", reason="repeat_held") == 1, "the same of the switch")
    expect(value("weir_dropped_frames_total", reason="bad_icrc") == 0, "a reason that has not counted is 0, not absent")
    expect(value("weir_ring_slot_seconds_count", ring=7) == 33, "slots' times")
    waited = [value("weir_rank_waited_for_seconds", ring=7, rank=rank) for rank in range(RANKS)]
    expect(waited[:3] == [0, 0, 0] and waited[3] > 0, f"it waits for rank 3: {waited}")
    memory = json.loads(terminal.ask("show memory json"))["memory"][0]
    expect(value("weir_mbufs") == memory["mbufs"], "mbufs")
    ports = {row["port"]: row for row in json.loads(terminal.ask("show port stats all json"))["port_stats"]}
    for port, row in ports.items():
        expect(value("weir_port_transmit_bytes_total", port=port) == row["tx_bytes"], f"bytes by {port}")
        expect(value("weir_port_transmit_packets_total", port=port, **{"class": "ring"}) == row["tx_ring_packets"], port)
    terminal.quit()


@smoke_test("metrics-are-well-formed")
def well_formed(lab: Lab) -> None:
    """promtool reads the scrape and has nothing to say; HEAD has the scrape's header; other paths get nothing; a switch whose
    address is taken forwards, and takes it when it is free."""
    fabric, _, terminal = loaded(lab)
    expect_well_formed(scrape(fabric))
    with fabric.entered():
        with urllib.request.urlopen(urllib.request.Request(f"http://{LISTEN}/metrics", method="HEAD"), timeout=5) as answer:
            expect(int(answer.headers["Content-Length"]) > 1000 and answer.read() == b""
                   and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), f"{answer.headers}")
        try:
            urllib.request.urlopen(f"http://{LISTEN}/quit", timeout=30)
            raise Failed("an unknown path has an answer")
        except urllib.error.HTTPError as error:
            expect(error.code == 404, f"an unknown path: {error.code}")
    second = lab.ready_weir(fabric, configuration([QUIET_PORT], eal=NO_HUGEPAGES)
                            + f"metrics: {{ listen: \"{LISTEN}\" }}\n")
    expect(f"metrics.listen: cannot listen at {LISTEN}" in second.output(), second.output())
    terminal.quit()
    wait_for(lambda: answers(fabric), 20, "the second switch does not take the address that is free now")
    second.stop()


@smoke_test("metrics-half-requests")
def half_requests(lab: Lab) -> None:
    """Clients that send half a header, or do not read their answer, keep no scrape out, not even by the scraper's address."""
    fabric = lab.namespace()
    switch = lab.ready_weir(fabric, configuration([QUIET_PORT], eal=NO_HUGEPAGES)
                            + f"metrics: {{ listen: \"{LISTEN}\" }}\n")
    tasks = Path(f"/proc/{switch.process.pid}/task")
    before = len(list(tasks.iterdir()))
    host, port = LISTEN.split(":")
    with fabric.entered(), contextlib.ExitStack() as silent:
        for number in range(HALF_REQUESTS):
            for said in (b"GET /metrics HTTP/1.1\r\nHo", b"GET /metrics HTTP/1.1\r\n\r\n"):
                client = silent.enter_context(socket.create_connection((host, int(port)), 5, (f"127.0.0.{1 + number % 4}", 0)))
                with contextlib.suppress(OSError):  # a newcomer has taken its place
                    client.sendall(said)
        for _ in range(10):
            with urllib.request.urlopen(f"http://{LISTEN}/metrics", timeout=PATIENCE_S) as answer:
                expect(b"weir_up 1" in answer.read(), "no scrape")
    after = len(list(tasks.iterdir()))
    expect(after <= before + 1, f"{before} threads, then {after}: the monitor's may begin behind \"ready\", and no other")
    switch.stop()


def answers(fabric: Namespace) -> bool:
    try:
        return 'weir_port_receive_packets_total{port="p0"}' in scrape(fabric)
    except OSError:
        return False


class Prometheus:
    """Debian's, in the switch's namespace, with the rules of config/prometheus."""

    def __init__(self, lab: Lab, fabric: Namespace) -> None:
        self._fabric = fabric
        shutil.copy(RULES, lab.directory)
        config = (ROOT / "config/prometheus/prometheus.yaml").read_text().replace("15s", f"{SCRAPED_EVERY_S}s")
        command = [*KILLED_WITH_US, str(UNPACKED / "prometheus"), f"--config.file={lab.file('prometheus.yaml', config)}",
                   f"--web.listen-address={PROMETHEUS}", f"--storage.tsdb.path={lab.directory}/tsdb"]
        with fabric.entered(), (lab.directory / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        lab.on_end(self.close)
        wait_for(self._is_up, 30, "Prometheus has not scraped the switch twice")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _is_up(self) -> bool:
        try:
            return float((self.query("count_over_time(weir_up[1m])") or [{"value": [0, 0]}])[0]["value"][1]) >= 3
        except OSError:
            return False

    def get(self, path: str, **parameters: str) -> Any:
        with self._fabric.entered(), urllib.request.urlopen(
                f"http://{PROMETHEUS}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        return list(self.get("query", query=expression)["result"])


def board_queries() -> list[tuple[str, str]]:
    """Each panel's title and query; a rate takes as long as the test has."""
    panels = json.loads(BOARD.read_text())["panels"]
    return [(panel["title"], target["expr"].replace("$__rate_interval", "1m"))
            for panel in panels for target in panel["targets"]]


@smoke_test("metrics-in-prometheus")
def in_prometheus(lab: Lab) -> None:
    fabric, _, terminal = loaded(lab)
    prometheus = Prometheus(lab, fabric)
    for title, expression in board_queries():
        expect(bool(prometheus.query(expression)), f"the board's panel {title!r} shows nothing: {expression}")
    rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    expect(len(rules) == 10, f"{len(rules)} rules")
    wait_for(lambda: all(rule["health"] == "ok" for group in prometheus.get("rules")["groups"] for rule in group["rules"]),
             20, "not every rule can be evaluated")
    # Rank 3 is late: the ring's rule would fire in a minute. With a limit of a second its expression has an answer.
    stuck = prometheus.query("weir_rank_waited_for_seconds > 1")
    expect([row["metric"]["rank"] for row in stuck] == ["3"], f"stuck: {stuck}")
    terminal.quit()
    wait_for(lambda: bool(prometheus.query('up{job="weir"} == 0')), 20, "Prometheus does not see that the switch is gone")


@smoke_test("metrics-alerts")
def alerts(lab: Lab) -> None:
    """When each alert fires and when not, in simulated time; and a rule that is changed fails."""
    def tested(rules: Path) -> subprocess.CompletedProcess[str]:
        tests = (ROOT / "tests/metrics/rules_test.yaml").read_text().replace("../../config/prometheus/weir.rules.yaml", json.dumps(str(rules)))
        return promtool("test", "rules", lab.file("rules_test.yaml", tests))
    passed = tested(RULES)
    expect(passed.returncode == 0, passed.stdout + passed.stderr)
    for limit in re.findall(r"[<>] ([0-9.e-]+)$", RULES.read_text(), re.MULTILINE):
        if limit != "0":
            changed = lab.file("changed.yaml", RULES.read_text().replace(f" {limit}\n", f" {float(limit) / 1000}\n")
                               if limit.startswith("0.0") else RULES.read_text().replace(f" {limit}\n", f" {float(limit) * 1000}\n"))
            expect(tested(changed).returncode != 0, f"nobody notices another limit than {limit}")
