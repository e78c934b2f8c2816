# SPDX-License-Identifier: BSD-3-Clause
"""The control service: weirctl beside the prompt, a foreign client, who may call, certificates, and clients that take
what they can."""
from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hosts import RANKS, Hosts, Job, ring_7, ring_of_hosts
from lab import Lab, smoke_test
from netns import KILLED_WITH_US, Namespace
from terminal import Terminal, lines_of
from test_process import TWO_CORES, FrozenThread, lcore_thread
from test_rings import spare
from test_telemetry import still
from torch_ranks import PYTHON
from weir import BUILD, NO_HUGEPAGES, QUIET_PORT, ROOT, Ended, Weir, configuration, expect, run_to_end, wait_for

WEIRCTL = BUILD / "app/weirctl"
CLIENT = ROOT / "tests/smoke/control_client.py"
TCP = "127.0.0.1:9465"
STRANGER = "65534"  # nobody
NULL_PORTS = configuration([QUIET_PORT], eal=NO_HUGEPAGES)
SILENT_CLIENTS = 200
MOST_WATCHERS = 32  # of a caller
FULL_S = 4  # so many watchers' answers fill a socket


def socket_of(lab: Lab) -> Path:
    return lab.directory / "control.sock"


def at_socket(lab: Lab, config: str) -> str:
    return f'{config}\ncontrol: {{ listen: ["unix:{socket_of(lab)}"] }}\n'


def weirctl(*words: object, server: object) -> Ended:
    return run_to_end([str(WEIRCTL), "--server", str(server), *map(str, words)])


def said(lab: Lab, line: str) -> str:
    ended = weirctl(*shlex.split(line), server=socket_of(lab))
    expect(ended.status == 0, f"weirctl {line}: {ended}")
    return ended.output


def foreign(lab: Lab, *arguments: str) -> Any:
    """What the client without Weir's code gets."""
    ended = run_to_end([PYTHON, str(CLIENT), f"unix:{socket_of(lab)}", *arguments])
    expect(ended.status == 0, f"{arguments}: {ended.errors[-1500:]}")
    return json.loads(ended.output)


def execute(lab: Lab, *words: str) -> Any:
    return foreign(lab, "call", "Execute", json.dumps({"words": words}))


def used(lab: Lab) -> tuple[Hosts, Terminal]:
    """A switch with a prompt and a socket that a job has used."""
    fabric, hosts = ring_of_hosts(lab)
    terminal = Terminal(lab, fabric, at_socket(lab, (ROOT / "config/af_packet.yaml").read_text()))
    hosts.say_hello()
    Job(hosts, last=2).run()
    return hosts, terminal


def end(terminal: Terminal) -> None:
    terminal.press("quit\n")
    expect(terminal.end().status == 0, "quit")


@smoke_test("control-says-what-the-prompt-says")
def same_answers(lab: Lab) -> None:
    _, terminal = used(lab)
    for grammar in terminal.questions():
        for line, _value in lines_of(grammar):
            by_prompt = still(json.loads(terminal.ask(f"{line} json")))
            expect(still(json.loads(said(lab, f"{line} json"))) == by_prompt, f"weirctl {line} json")
            answer = execute(lab, *line.split())["tables"].get("tables", [])
            expect({table["name"] for table in answer} >= set(by_prompt), f"{line}: {answer}")
    for line in ("show ring 7", "show port info all", "set trace on", "clear port stats p1"):
        expect(said(lab, line) == terminal.ask(line).replace("0.00", "0.00"), f"weirctl {line}")
    prompt_help = [line for line in terminal.ask("help").splitlines() if not line.startswith("  quit ")]
    expect(said(lab, "help").splitlines() == prompt_help, "help differs by more than `quit`")
    rows = foreign(lab, "call", "ListRings", "{}")["rings"]
    expect(len(rows) == 1 and rows[0]["ring"]["id"] == 7 and rows[0]["connected"] == RANKS, f"{rows}")
    expect([member["ip"] for member in rows[0]["ring"]["members"]] == [f"10.77.0.{rank + 1}" for rank in range(RANKS)], f"{rows}")
    expect(said(lab, "withdraw ring 7") == "ring 7: withdrawn\n", "withdraw")
    expect(foreign(lab, "call", "ListRings", "{}") == {}, "a withdrawn ring is listed")
    end(terminal)


@smoke_test("control-rings")
def rings(lab: Lab) -> None:
    """A ring is made and removed by a program, and hosts reduce on it meanwhile."""
    fabric, hosts = ring_of_hosts(lab)
    switch = lab.ready_weir(fabric, at_socket(lab, spare(lab.directory / "state")))
    members = [{"ip": f"10.77.0.{rank + 1}", "port": f"p{rank}"} for rank in range(RANKS)]
    ring = {"id": 7, "window": 4, "max_message_bytes": 16 * 1024, "mtu": 1024, "members": members}

    def add(**changes: object) -> Any:
        return foreign(lab, "call", "AddRing", json.dumps({"ring": ring | changes}))

    def listed() -> list[dict[str, Any]]:
        return list(foreign(lab, "call", "ListRings", "{}").get("rings", []))
    for changes, code, message in (
            ({"window": 0}, "INVALID_ARGUMENT", "ring:1: window: found 0; allowed: a whole number, 1 to 1024"),
            ({"members": members[:1]}, "INVALID_ARGUMENT", "ring:1: members: found a list of 1; allowed: a list of 2 to 256"),
            ({"members": [*members[:3], members[0]]}, "INVALID_ARGUMENT", "each address once per ring"),
            ({"window": 5}, "RESOURCE_EXHAUSTED", f"needs {2 * 5 * 16 * (RANKS - 1) + 4 * RANKS} frames")):
        answer = add(**changes)
        expect(answer.get("code") == code and message in answer["message"], f"{changes}: {answer}")
    expect(listed() == [], "a refused ring is there")
    for _ in range(2):
        expect(add() == {}, "AddRing")
        answer = add()
        expect(answer == {"code": "ALREADY_EXISTS", "message": "id: found 7, which a ring has; allowed: any but 7"}, f"{answer}")
        hosts.incarnation = hosts.incarnation.again()
        hosts.say_hello()
        Job(hosts, last=2).run()
        [row] = listed()
        expect(row["ring"] == ring | {"patience": "600", "keep_alive": "KEEP_ALIVE_ACK", "lease": "3600"} and row["connected"] == RANKS
               and row["slots_completed"] == "33", f"{row}")
        expect(foreign(lab, "call", "RemoveRing", '{"id": 7}') == {}, "RemoveRing")
        expect(listed() == [], "a removed ring is there")
    answer = foreign(lab, "call", "RemoveRing", '{"id": 7}')
    expect(answer["code"] == "NOT_FOUND", f"{answer}")
    expect(said(lab, f"add ring {lab.file('ring.yaml', ring_7())}") == "added: ring 7\n", "weirctl add ring")
    switch.stop()


@smoke_test("control-errors")
def errors(lab: Lab) -> None:
    """The prompt's words, a status for programs, and the exit status of the other programs."""
    switch = lab.ready_weir(lab.namespace(), at_socket(lab, NULL_PORTS))
    for words, code, message in ((["shwo"], "INVALID_ARGUMENT", "found 'shwo'; allowed: add, capture, clear, drain, help"),
                                 (["show", "ring", "8"], "NOT_FOUND", "ring: found '8'; allowed: there is none"),
                                 (["quit"], "INVALID_ARGUMENT", "found 'quit'; allowed: "),
                                 (["set", "trace"], "INVALID_ARGUMENT", "more is needed: off, on"),
                                 ([], "INVALID_ARGUMENT", "words: found 0; allowed: 1 to 16 words"),
                                 (["capture", "port", "all", "/nowhere/x"], "FAILED_PRECONDITION", "/nowhere/x")):
        answer = execute(lab, *words)
        expect(answer.get("code") == code and message in answer["message"], f"{words}: {answer}")
        if words:
            ended = weirctl(*words, server=socket_of(lab))
            status = 1 if code == "FAILED_PRECONDITION" else 2
            expect(ended.status == status and message in ended.errors and not ended.output, f"{words}: {ended}")
    for arguments, message in ((["--nonsense"], "see weirctl --help"), ([], "no words; `weirctl help` lists them"),
                               (["--every", "0.01", "show", "memory"], "--every: found '0.01'; allowed: 0.1 .. 3600")):
        ended = weirctl(*arguments, server=socket_of(lab))
        expect(ended.status == 2 and message in ended.errors, f"{arguments}: {ended}")
    ended = weirctl("help", server=TCP)
    expect(ended.status == 2 and "--tls-certificate, --tls-key and --tls-authority" in ended.errors, f"{ended}")
    switch.stop()
    ended = weirctl("help", server=socket_of(lab))
    expect(ended.status == 1 and f"no answer from unix:{socket_of(lab)}: " in ended.errors
           and "does a switch run" in ended.errors, f"{ended}")
    expect(not socket_of(lab).exists(), "the socket's file is left behind")


@smoke_test("control-reflection-and-health")
def described(lab: Lab) -> None:
    """What the switch tells of itself is what the .proto says; its health follows its lcores."""
    switch = lab.ready_weir(lab.namespace(), at_socket(lab, NULL_PORTS.replace(
        "  - { id: 1, roles: [control, rx, worker, tx], idle: sleep }\n", TWO_CORES)))
    proto = (ROOT / "proto/weir/v1/switch.proto").read_text()
    seen = foreign(lab, "describe")
    expect(all(f"rpc {method}(" in proto for method in seen["methods"]) and len(seen["methods"]) == proto.count("  rpc "),
           f"{seen}")
    expect(set(seen["services"]) == {"weir.v1.Switch", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"},
           f"{seen}")
    expect(seen["health"] == {"": "SERVING", "weir.v1.Switch": "SERVING", "weir.v1.Nothing": "NOT_FOUND"}, f"{seen}")

    def health() -> str:
        return str(foreign(lab, "describe")["health"]["weir.v1.Switch"])
    frozen = FrozenThread(lcore_thread(switch.process.pid))
    lab.on_end(frozen.thaw)
    wait_for(lambda: health() == "NOT_SERVING", 30, "healthy with an lcore that hangs")
    answer = execute(lab, "show", "lcores")
    expect(answer == {"code": "UNAVAILABLE", "message": "lcore 1 did not stand still within 2000 ms"}, f"{answer}")
    frozen.thaw()
    wait_for(lambda: health() == "SERVING", 30, "not healthy though its lcores work")
    switch.stop()


@smoke_test("control-watch")
def watch(lab: Lab) -> None:
    """Statistics as a stream; the switch ends while somebody watches, and while a watcher does not read."""
    hosts, terminal = used(lab)
    order = json.dumps({"words": ["show", "ring", "7"], "period_ms": 100})
    statistics = foreign(lab, "watch", order, "3")
    times = [int(one["time_ns"]) for one in statistics]
    expect(len(times) == 3 and times == sorted(times), f"{times}")
    columns = [column["key"] for column in statistics[-1]["tables"][0]["columns"]]
    cells = statistics[-1]["tables"][0]["rows"][0]["cells"]
    expect(cells[columns.index("slots_completed")] == {"number": "33"}, f"{columns}, {cells}")
    answer = foreign(lab, "watch", json.dumps({"words": ["show", "memory"], "period_ms": 99}), "1")
    expect(answer == {"code": "INVALID_ARGUMENT", "message": "period_ms: found 99; allowed: 100 .. 3600000"}, f"{answer}")
    for words in (["reset", "ring", "7"], ["help"], ["capture", "stop"]):
        answer = foreign(lab, "watch", json.dumps({"words": words, "period_ms": 1000}), "1")
        expect(answer == {"code": "INVALID_ARGUMENT", "message":
                          f"found '{' '.join(words)}'; allowed: a question, such as `show ring all`"}, f"{answer}")
    watcher = subprocess.Popen([*KILLED_WITH_US, str(WEIRCTL), "--server", str(socket_of(lab)), "--every", "0.1", "show",
                                "fdb", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stuck = subprocess.Popen([*KILLED_WITH_US, str(WEIRCTL), "--server", str(socket_of(lab)), "--every", "0.1", "show",
                              "lcores"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert watcher.stdout is not None
    expect('"fdb"' in watcher.stdout.readline() + watcher.stdout.readline(), "weirctl --every says nothing")
    stuck.send_signal(signal.SIGSTOP)
    end(terminal)
    _, complaint = watcher.communicate(timeout=20)
    expect(watcher.returncode == 1 and complaint.startswith("weirctl: "), f"{watcher.returncode}, {complaint}")
    stuck.kill()
    stuck.wait()


@smoke_test("control-stopped-client")
def stopped_client(lab: Lab) -> None:
    """A client is stopped until its socket is full of answers. The switch ends all the same."""
    switch = lab.ready_weir(lab.namespace(), at_socket(lab, NULL_PORTS))
    client = subprocess.Popen([*KILLED_WITH_US, PYTHON, str(CLIENT), f"unix:{socket_of(lab)}", "flood", str(MOST_WATCHERS + 1)],
                              stdout=subprocess.PIPE, text=True)
    lab.on_end(client.kill)
    assert client.stdout is not None
    expect(client.stdout.readline() == "RESOURCE_EXHAUSTED\n", "it watches less than it may")
    client.send_signal(signal.SIGSTOP)
    time.sleep(FULL_S)
    switch.stop()


@smoke_test("control-completion")
def completion(lab: Lab) -> None:
    """The words come from the switch; bash asks for them by the installed script."""
    _, terminal = used(lab)
    for line, words in (("sh", ["show"]), ("show port ", ["bridge", "info", "stats", "steering", "xstats"]),
                        ("show ring ", ["7", "all"]), ("show ring 7 ", ["json", "stuck"]), ("q", []), ("nonsense ", [])):
        expect(said_words(lab, line) == words, f"{line!r}: {said_words(lab, line)}")
    script = f'''
        PATH={shlex.quote(str(WEIRCTL.parent))}:$PATH
        source {shlex.quote(str(ROOT / "tools/completion/weirctl.bash"))}
        COMP_LINE="weirctl --server {socket_of(lab)} $1" COMP_POINT=$((${{#COMP_LINE}} + 1)) COMPREPLY=()
        COMP_POINT=${{#COMP_LINE}} _weirctl
        echo "${{COMPREPLY[@]}}"'''
    for typed, words in (("show port x", "xstats"), ("sh", "show"), ("show ring ", "7 all"),
                         ("--tls-n", "--tls-name"), ("--every 1 show dr", "drops")):
        ended = run_to_end(["bash", "-c", script, "bash", typed])
        expect(ended.output.strip() == words, f"{typed!r}: {ended}")
    end(terminal)


def said_words(lab: Lab, line: str) -> list[str]:
    ended = weirctl("--complete", line, server=socket_of(lab))
    expect(ended.status == 0, f"{ended}")
    return ended.output.split()


@smoke_test("control-permissions")
def permissions(lab: Lab) -> None:
    """Another user gets nothing, not even when the file lets him; a second switch leaves the first one's socket alone."""
    switch = lab.ready_weir(lab.namespace(), at_socket(lab, NULL_PORTS))
    expect(stat.S_IMODE(socket_of(lab).stat().st_mode) == 0o600, f"{socket_of(lab).stat()}")
    lab.directory.chmod(0o755)
    stranger = lab.directory / "weirctl"  # where nobody may read
    shutil.copy(WEIRCTL, stranger)

    def by_stranger() -> Ended:
        return run_to_end(["setpriv", "--reuid", STRANGER, "--regid", STRANGER, "--clear-groups", str(stranger), "--server",
                           str(socket_of(lab)), "help"])
    ended = by_stranger()
    expect(ended.status == 1 and not ended.output and "Permission denied" in ended.errors, f"{ended}")
    socket_of(lab).chmod(0o666)
    ended = by_stranger()
    expect(ended.status == 1 and not ended.output and "no answer" in ended.errors, f"the file's mode let him in: {ended}")
    expect("this list" in said(lab, "help"), "root is not served")
    second = lab.ready_weir(lab.namespace(), at_socket(lab, NULL_PORTS))
    expect("another process listens there; the switch forwards without a control service" in second.output(), second.output())
    expect("this list" in said(lab, "help"), "the second switch has taken the socket")
    switch.close()  # killed: its file stays
    expect(socket_of(lab).exists(), "a killed switch's file")
    wait_for(lambda: weirctl("help", server=socket_of(lab)).status == 0, 25, "the second switch does not take a dead one's place")
    second.stop()


@smoke_test("control-default-socket")
def default_socket(lab: Lab) -> None:
    """Without the section: in systemd's folder, or in EAL's."""
    switch = lab.ready_weir(lab.namespace(), NULL_PORTS)
    own = Path(f"/proc/{switch.process.pid}/root/run/dpdk/rte/control.sock")
    expect("this list" in weirctl("help", server=own).output, "EAL's folder")
    switch.stop()
    os.environ["RUNTIME_DIRECTORY"] = str(lab.directory)
    try:
        switch = lab.ready_weir(lab.namespace(), NULL_PORTS)
    finally:
        del os.environ["RUNTIME_DIRECTORY"]
    expect("this list" in said(lab, "help"), "systemd's folder")
    switch.stop()
    nowhere = lab.ready_weir(lab.namespace(), NULL_PORTS + "control: { listen: [] }\n")
    expect(not Path(f"/proc/{nowhere.process.pid}/root/run/dpdk/rte/control.sock").exists(), "it listens")
    nowhere.stop()


class Authority:
    """Makes certificates with openssl."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab, self._name = lab, name
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2",
                      "-subj", f"/CN={name}", "-keyout", self.file("ca.key"), "-out", self.certificate)

    @property
    def certificate(self) -> str:
        return self.file("ca.pem")

    def file(self, name: str) -> str:
        return str(self._lab.directory / f"{self._name}-{name}")

    def sign(self, name: str) -> tuple[str, str]:
        """A certificate for 127.0.0.1 and its key. The common name may go on with others: red/CN=root."""
        stem = name.replace("/", "-")
        key, request, certificate = (self.file(f"{stem}.{suffix}") for suffix in ("key", "csr", "pem"))
        names = self._lab.file(f"{self._name}-{stem}.ext", "subjectAltName=IP:127.0.0.1,DNS:the-switch\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-subj", f"/CN={name}",
                      "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.file("ca.key"), "-days", "2",
                      "-extfile", str(names), "-out", certificate)
        return certificate, key

    @staticmethod
    def _openssl(*arguments: str) -> None:
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
        expect(done.returncode == 0, f"openssl {arguments[0]}: {done.stderr}")


def with_tls(authority: Authority, certificate: str, key: str) -> str:
    return (f'{NULL_PORTS}control:\n  listen: ["{TCP}"]\n  tls: {{ certificate: "{certificate}", key: "{key}", '
            f'client_authority: "{authority.certificate}" }}\n')


def first_answer(fabric: Namespace, authority: Authority, version: ssl.TLSVersion, *certificate: str) -> bytes:
    """What the switch says to HTTP/2's first bytes of a client with this certificate and key, or none."""
    context = ssl.create_default_context(cafile=authority.certificate)
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    if certificate:
        context.load_cert_chain(*certificate)
    host, port = TCP.split(":")
    with fabric.entered(), socket.create_connection((host, int(port)), timeout=20) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=host) as tls:
                tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
                return tls.recv(1)
        except (ssl.SSLError, ConnectionError):
            return b""


@smoke_test("control-mutual-tls")
def mutual_tls(lab: Lab) -> None:
    """A client with a certificate of the authority is served. Others are not: without one, with another authority's, in
    clear text, or one that expects another switch."""
    ours, other = Authority(lab, "ours"), Authority(lab, "other")
    fabric = lab.namespace()
    switch = lab.ready_weir(fabric, with_tls(ours, *ours.sign("switch")))
    expect("control" not in switch.output(), switch.output())
    client, stranger = ours.sign("client"), other.sign("stranger")

    def call(certificate: tuple[str, str], authority: Authority, *more: str) -> Ended:
        with fabric.entered():
            return run_to_end([str(WEIRCTL), "--server", TCP, "--tls-certificate", certificate[0], "--tls-key",
                               certificate[1], "--tls-authority", authority.certificate, *more, "show", "memory"])
    ended = call(client, ours)
    expect(ended.status == 0 and ended.output.startswith("memory\n"), f"{ended}")
    expect(call(client, ours, "--tls-name", "the-switch").status == 0, "by the other name of its certificate")
    for what, refused in (("another authority's client", call(stranger, ours)),
                          ("a client that trusts another authority", call(client, other)),
                          ("a client that wants another name", call(client, ours, "--tls-name", "another-switch"))):
        expect(refused.status == 1 and not refused.output and f"no answer from {TCP}" in refused.errors, f"{what}: {refused}")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        expect(first_answer(fabric, ours, version, *client) != b"", f"{version} with a certificate")
        expect(first_answer(fabric, ours, version) == b"", f"{version} without a certificate")
    with fabric.entered():
        plain = run_to_end([PYTHON, str(CLIENT), TCP, "call", "Execute", '{"words": ["help"]}'])
    expect("this list" not in plain.output and json.loads(plain.output)["code"] == "UNAVAILABLE", f"clear text: {plain}")
    expect(call(client, ours).status == 0, "nobody is served afterwards")
    switch.stop()
    wrong = lab.ready_weir(fabric, with_tls(ours, ours.sign("second")[0], ours.file("client.key")))
    expect("control.tls.key: found " in wrong.output() and "which is not the key of" in wrong.output(), wrong.output())
    wrong.stop()


@contextlib.contextmanager
def silent_clients(fabric: Namespace, address: object, count: int) -> Iterator[list[socket.socket]]:
    clients = []
    with fabric.entered():
        for _ in range(count):
            if isinstance(address, Path):
                clients.append(socket.socket(socket.AF_UNIX))
                clients[-1].connect(str(address))
            else:
                clients.append(socket.create_connection(str(address).rsplit(":", 1), timeout=10))
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def descriptors(switch: Weir) -> int:
    return len(list(Path(f"/proc/{switch.process.pid}/fd").iterdir()))


def threads(switch: Weir) -> int:
    return len(list(Path(f"/proc/{switch.process.pid}/task").iterdir()))


def resident_kib(switch: Weir) -> int:
    status = Path(f"/proc/{switch.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


@smoke_test("control-hostile-clients")
def hostile(lab: Lab) -> None:
    """Silent ones, garbage and streams without end take bounded memory, threads and descriptors; the
    others are served, and the switch forwards."""
    ours = Authority(lab, "ours")
    fabric = lab.namespace()
    config = with_tls(ours, *ours.sign("switch")).replace(f'"{TCP}"', f'"{TCP}", "unix:{socket_of(lab)}"')
    switch = lab.ready_weir(fabric, config)
    said(lab, "help")
    foreign(lab, "describe")
    before = descriptors(switch), threads(switch), resident_kib(switch)
    with silent_clients(fabric, TCP, SILENT_CLIENTS):
        wait_for(lambda: descriptors(switch) <= before[0] + 64 + 2, 20, "more connections than are allowed")
        expect("this list" in said(lab, "help"), "silent strangers on the network keep root out")
    with silent_clients(fabric, TCP, 8) as clients:
        for client in clients:
            with contextlib.suppress(OSError):
                client.sendall(os.urandom(1 << 16))
    wait_for(lambda: descriptors(switch) <= before[0] + 2, 30, "a connection that ended holds a descriptor")
    streams = [subprocess.Popen([*KILLED_WITH_US, PYTHON, str(CLIENT), f"unix:{socket_of(lab)}", "watch",
                                 json.dumps({"words": ["show", "lcores"], "period_ms": 100}), "1000000"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(6)]
    for stream in streams:
        lab.on_end(stream.kill)
    expect("this list" in said(lab, "help"), "streams keep others out")
    expect(threads(switch) <= before[1] + 10, f"{before[1]} threads, then {threads(switch)}")
    for stream in streams:
        stream.kill()
        stream.wait()
    wait_for(lambda: descriptors(switch) <= before[0] + 2, 30, "a killed watcher's connection stays")
    expect(resident_kib(switch) <= before[2] + (64 << 10), f"{before[2]} KiB, then {resident_kib(switch)} KiB")
    expect("this list" in said(lab, "help"), "not served afterwards")
    switch.stop()
