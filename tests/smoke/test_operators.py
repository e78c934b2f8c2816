# SPDX-License-Identifier: BSD-3-Clause
"""Operators of the users' own: hosts and switch fold by one text, or no job begins with it."""
from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cables import LossyCables
from hosts import RANKS, model, ring_ports
from lab import Lab, smoke_test
from netns import Namespace, veth
from terminal import Terminal
from test_control import CLIENT, TCP, Authority, at_socket, said, socket_of, weirctl
from test_held_rings import MODULE, room
from test_tenants import caller
from test_worker import Process
from torch_ranks import PYTHON
from weir import BUILD, CAPTURES, QUIET_PORT, REPLAY, ROOT, WEIR, configuration, expect, run_to_end, text_file, wait_for, without_probes

import jobs  # tests/replay's, on the path since `hosts`

JOB = ROOT / "tests" / "operators" / "job.py"
RINGS = ROOT / "tests" / "replay" / "rings"
NONE, BY_RING = 0, 1  # fallbacks
LOADS = 10_000
LOSS, LOSSY_ROUNDS = 0.02, 4
MXFP8 = ("mxfp8-e4m3-sum", "mxfp8-e5m2-sum")
TREE = "[[0,1],[2,3]]"
REDUCE, FIND_KERNEL = "FoldProgram6reduce", "find_block_sum"  # functions of Weir, for other_code.c
CLIPPED = "bd8380de9824359e92ee3835879c36aebab335109e0508669724b11506dbbf8d"  # docs/operators.md


def copy_of(lab: Lab, name: str) -> str:
    """A file whose name has a blank, in quotes."""
    return f'"{lab.file(f"a {name}.weir", text_file(name).read_text())}"'


def ring_of_operators(tenant: str = "") -> str:
    """As tests/operators/ranks.py has its groups."""
    members = "".join(f"      - {{ ip: 10.77.0.{rank + 1}, port: p{rank} }}\n" for rank in range(RANKS))
    owner = f"    tenant: {tenant}\n" if tenant else ""
    return f"  - id: 7\n    window: 4\n    max_message_bytes: 1064\n    mtu: 256\n{owner}    members:\n{members}"


def cables(lab: Lab) -> tuple[Namespace, Namespace]:
    fabric, outside = lab.namespace(), lab.namespace()
    for rank in range(RANKS):
        veth(fabric, f"tap{rank}", outside, f"host{rank}")
    return fabric, outside


def job(lab: Lab, outside: Namespace, *texts: Path, fallback: int = NONE, hold: str | Path = "-", odd: Path | None = None,
        ring: int = 7, options: Sequence[str | Path] = (), of_rank_2: Sequence[str | Path] = (), **environment: str) -> list[Process]:
    """By rank. With `odd`, rank 2 has that text in place of the first; `of_rank_2` are more options of it."""
    def texts_of(rank: int) -> tuple[Path, ...]:
        return (odd, *texts[1:]) if odd and rank == 2 else texts

    def options_of(rank: int) -> tuple[str | Path, ...]:
        return (*options, *of_rank_2) if rank == 2 else tuple(options)
    return [Process(lab, outside, [PYTHON, JOB, *options_of(rank), BUILD, str(rank), str(RANKS), f"host{rank}", f"10.77.0.{rank + 1}",
                                   str(ring), str(fallback), hold, *texts_of(rank)], **environment) for rank in range(RANKS)]


def all_hold(done: Path) -> bool:
    """All ranks have their results, so the switch counts nothing more."""
    return all(done.with_suffix(f".{rank}").exists() for rank in range(RANKS))


def expect_all(ranks: list[Process], words: str) -> list[str]:
    """What each rank said."""
    said_by_all = [process.wait()[1] for process in ranks]
    for rank, output in enumerate(said_by_all):
        expect(f"rank {rank}: " in output and words in output, f"wanted {words!r} of rank {rank}: {output}")
    return said_by_all


def operators_of(terminal: Terminal) -> list[dict[str, Any]]:
    return list(json.loads(terminal.ask("show operators json"))["operators"])


@smoke_test("operators")
def operators(lab: Lab) -> None:
    """Loaded by the configuration, at the prompt and by weirctl, operators are folded by the switch, to the bits that numpy gives."""
    fabric, outside = cables(lab)
    names = ["mxfp8-e4m3-sum", "clipped-i8-sum", "maxloc"]
    config = configuration(ring_ports(), rings=ring_of_operators()) + f"operators:\n  - file: {text_file(names[0])}\n"
    terminal = Terminal(lab, fabric, lab.file("weir.yaml", at_socket(lab, config)))
    loaded = terminal.ask(f"load operator {copy_of(lab, names[1])}")
    expect(f"clipped-i8-sum: loaded; digest {CLIPPED}" in loaded, loaded)
    expect("maxloc: loaded; digest " in said(lab, f"load operator {copy_of(lab, names[2])}"), "weirctl load operator")
    done = lab.directory / "done"
    ranks = job(lab, outside, *map(text_file, names), hold=done)

    def rows() -> list[dict[str, Any]]:
        return operators_of(terminal)
    wait_for(lambda: all_hold(done), 20, f"the job does not end: {rows()}")
    expect(rows()[2]["packets"] >= 100, f"the switch folds by no operator: {rows()}")
    expect([row["name"] for row in rows()] == names and all(row["rings"] == "7" for row in rows()), f"{rows()}")
    ring = json.loads(terminal.ask("show ring 7 json"))["rings"][0]
    expect(ring["by_operator"] == sum(row["packets"] for row in rows()), f"{ring}, {rows()}")
    refused = weirctl("unload", "operator", CLIPPED, server=socket_of(lab))
    expect(refused.status == 1 and "found ring 7, whose job folds by it" in refused.errors, f"unloaded while in use: {refused}")
    done.touch()
    expect_all(ranks, "exact")
    expect(rows()[1]["flagged"] > 0 and rows()[0]["flagged"] == rows()[2]["flagged"] == 0, f"{rows()}")
    terminal.ask("reset ring 7")
    expect("unloaded" in terminal.ask("unload operator clipped-i8-sum"), "unload after the job")
    expect("found clipped-i8-sum, which none has" in terminal.ask("unload operator clipped-i8-sum"), "unloaded twice")
    expect_all(job(lab, outside, *map(text_file, names)), "operator 1 (clipped-i8-sum, digest bd8380de98")
    for output in expect_all(job(lab, outside, *map(text_file, names), fallback=BY_RING), "exact"):
        expect(output.count("a switch on the way lacks it") == 1 and f"by hosts: operator 1 (clipped-i8-sum, digest {CLIPPED})" in output, output)
    line = terminal.event("operator_missing")
    expect(f"number=129 digest={CLIPPED}]" in line, line)
    terminal.quit()


@smoke_test("operators-of-a-made-ring")
def of_a_made_ring(lab: Lab) -> None:
    """A group whose ring the switch makes sends its texts along. They are for that ring alone, and go with it."""
    fabric, outside = cables(lab)
    terminal = Terminal(lab, fabric, lab.file("weir.yaml", at_socket(lab, configuration(ring_ports()) + room(lab, 1))))
    done = lab.directory / "done"
    ranks = job(lab, outside, text_file("maxloc"), hold=done, WEIR_SWITCH=f"unix:{socket_of(lab)}", WEIR_SWITCH_MODULE=str(MODULE))
    wait_for(lambda: all_hold(done), 20, f"the job does not end: {operators_of(terminal)}")
    expect([row["packets"] > 0 for row in operators_of(terminal)] == [True], "the switch folds by no operator")
    expect([(row["name"], row["owners"], row["rings"]) for row in operators_of(terminal)] == [("maxloc", "ring 7", "7")], f"{operators_of(terminal)}")
    done.touch()
    expect_all(ranks, "exact")
    wait_for(lambda: operators_of(terminal) == [], 20, "the operator stays when its ring has gone")
    terminal.quit()


@smoke_test("operators-that-differ")
def that_differ(lab: Lab) -> None:
    """Texts that differ in one character make no job, and each rank names who has what. A wrong text is refused with its line."""
    fabric, outside = cables(lab)
    text = text_file("clipped-i8-sum").read_text()
    odd = Path(lab.file("odd.weir", text.replace("acc > 127", "acc > 126")))
    wrong = lab.file("wrong.weir", text.replace("acc + v", "acc + w"))
    line = text[:text.index("acc + v")].count("\n") + 1
    comment = Path(lab.file("comment.weir", text.replace("# the payload", "# A payload")))
    terminal = Terminal(lab, fabric, lab.file("weir.yaml", at_socket(lab, configuration(ring_ports(), rings=ring_of_operators()))))
    for file in (copy_of(lab, "clipped-i8-sum"), odd):
        said(lab, f"load operator {file}")
    expect_all(job(lab, outside, text_file("clipped-i8-sum"), odd=odd), "operator 0 (clipped-i8-sum): rank ")
    expect_all(job(lab, outside, text_file("clipped-i8-sum"), odd=comment), "exact")
    for answer in (terminal.ask(f"load operator {wrong}"), weirctl("load", "operator", wrong, server=socket_of(lab)).errors):
        expect(f'{wrong}:{line}: found "w"; allowed: v, acc' in answer, answer)
    packets = []
    for rank, value in enumerate((100, 50)):
        packets.append(lab.file(f"packet{rank}", ""))
        Path(packets[-1]).write_bytes(bytes([value] * 16 + [0] * 8))
    expect(said(lab, f"test operator {CLIPPED} {packets[0]} {packets[1]}") == "0000  " + "7f" * 16 + "01" + "00" * 7 + "\n", "weirctl test operator")
    second = next(row["digest"] for row in operators_of(terminal) if row["digest"] != CLIPPED)
    for answer in (terminal.ask(f"test operator clipped-i8-sum {packets[0]}"), weirctl("test", "operator", "clipped-i8-sum", packets[0], server=socket_of(lab)).errors):
        expect(f"found clipped-i8-sum, which 2 have; allowed: 8 digits or more of one of {CLIPPED}, {second}" in answer, answer)
    expect("which none has" in weirctl("test", "operator", "nobody", packets[0], server=socket_of(lab)).errors, "an unknown name")
    said(lab, f"unload operator {second}")
    for word in ("clipped-i8-sum", CLIPPED[:8]):
        expect(said(lab, f"test operator {word} {packets[0]} {packets[1]}").startswith("0000  7f7f"), word)
    expect(terminal.ask(f"test operator {CLIPPED} {packets[0]},{packets[1]}") == "0000  " + "7f" * 16 + "01" + "00" * 7 + "\n", "test operator")
    terminal.quit()


@smoke_test("operators-remembered")
def remembered(lab: Lab) -> None:
    """What was loaded while the switch ran is there after a restart; what was unloaded is not, nor a copy of it. What else lies
    there is left out, and named."""
    fabric = lab.namespace()
    state = lab.directory / "state"
    config = lab.file("weir.yaml", at_socket(lab, configuration([QUIET_PORT]) + f"state_directory: {state}\n"))

    def names(switch: Terminal) -> list[str]:
        return [row["name"] for row in operators_of(switch)]
    first = Terminal(lab, fabric, config)
    for name in ("maxloc", "valid-sum", "clipped-i8-sum"):
        first.ask(f"load operator {copy_of(lab, name)}")
    first.ask("unload operator valid-sum")
    first.quit()
    kept = state / "operators"
    (kept / "0.weir").write_text("no operator")
    (kept / "1.weir").mkdir()
    os.mkfifo(kept / "2.weir")
    (kept / "3.weir").write_text((kept / f"{CLIPPED}.weir").read_text())
    second = Terminal(lab, fabric, config)
    expect(sorted(names(second)) == ["clipped-i8-sum", "maxloc"], f"{names(second)}")
    second.ask("unload operator clipped-i8-sum")
    second.quit()
    third = Terminal(lab, fabric, config)
    expect(names(third) == ["maxloc"], f"{names(third)}")
    third.quit()


def tenants_switch(lab: Lab) -> tuple[Namespace, Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    fabric = lab.namespace()
    authority = Authority(lab, "ours")
    certificate, key = authority.sign("switch")
    lab.ready_weir(fabric, configuration([QUIET_PORT]) + f"""
control:
  listen: ["{TCP}"]
  tls: {{ certificate: "{certificate}", key: "{key}", client_authority: "{authority.certificate}" }}
  operators: [root]
tenants:
  - {{ name: red, operators: 2 }}
  - {{ name: blue, operator_price: 100 }}
""")
    return (fabric, *(caller(fabric, authority, name) for name in ("root", "red", "blue")))


@smoke_test("operators-of-tenants")
def of_tenants(lab: Lab) -> None:
    """A tenant loads as many as it may, none too dear, sees its own and those for all, and unloads its own alone."""
    _, root, red, blue = tenants_switch(lab)

    def text(name: str) -> str:
        return text_file(name).read_text()

    def refused(answer: Any, code: str, words: str) -> None:
        expect(answer.get("code") == code and words in answer.get("message", ""), f"wanted {code}, {words}: {answer}")

    def names(caller_: Callable[..., Any]) -> list[str]:
        return [one["name"] for one in caller_("ListOperators").get("operators", [])]
    for_all = root("LoadOperator", text=text("f32-sum"))
    own = red("LoadOperator", text=text("clipped-i8-sum"))
    expect(own["digest"] == CLIPPED and own["tenants"] == ["red"] and "tenants" not in for_all, f"{own}, {for_all}")
    expect((names(root), names(red), names(blue)) == (["f32-sum", "clipped-i8-sum"], ["f32-sum", "clipped-i8-sum"], ["f32-sum"]), "lists")
    refused(blue("LoadOperator", text=text("clipped-i8-sum")), "RESOURCE_EXHAUSTED", "allowed for tenant blue: 100 (operator_price)")
    refused(blue("UnloadOperator", digest=CLIPPED), "NOT_FOUND", "allowed: a digest of show operators")
    refused(blue("TestOperator", digest=CLIPPED, inputs=["AAAAAAAAAAA="]), "NOT_FOUND", "allowed: a digest of show operators")
    refused(red("UnloadOperator", digest=for_all["digest"]), "PERMISSION_DENIED", "found tenant red, which has not loaded it")
    refused(red("UnloadOperator", digest="12"), "INVALID_ARGUMENT", "allowed: 64 hexadecimal digits")
    refused(red("LoadOperator", text="garbage"), "INVALID_ARGUMENT", "line 1")
    fold = "fold s = acc + v\n  t = pow2(s)\n" + "  t = pow2(t)\n" * 50 + "  acc = select(t < 0, t, s)"  # as f32-sum, and dear
    dear = text("f32-sum").replace("fold acc = acc + v", fold)
    refused(red("LoadOperator", text=dear), "RESOURCE_EXHAUSTED", "(operator_price)")
    refused(red("Execute", words=["load", "operator", "/etc/passwd"]), "PERMISSION_DENIED", "red")
    expect(red("LoadOperator", text=text("clipped-i8-sum"))["digest"] == CLIPPED, "the same again is no error")
    red("LoadOperator", text=text("maxloc"))
    refused(red("LoadOperator", text=text("minloc")), "RESOURCE_EXHAUSTED", "found 2 operators of tenant red already; allowed: 2 (operators)")
    expect(red("Execute", words=["unload", "operator", "maxloc"])["text"].startswith("operator maxloc: unloaded"), "its own")
    red("LoadOperator", text=text("minloc"))
    expect(red("TestOperator", digest=CLIPPED, inputs=["ZAAAAAAAAAAAAAAAAAAAAA==", "ZAAAAAAAAAAAAAAAAAAAAA=="])["result"] ==
           "fwAAAAAAAAABAAAAAAAAAA==", "100 + 100 is 127, with flag 0")
    expect(root("UnloadOperator", digest=CLIPPED) == {} and names(red) == ["f32-sum", "minloc"], f"{names(red)}")


@smoke_test("operators-in-a-replay")
def in_a_replay(lab: Lab) -> None:
    """weir-replay folds by the configuration's operators, as the switch does: 100 + 50 + 1 is 127, with a flag."""
    base = (RINGS / "job-collectives.yaml").read_text()
    captured = [packet for packet in map(model.parse_roce, model.read_pcap(CAPTURES / "ring3-i32-mtu256-noimm.pcap")) if packet]
    hellos = {packet.src[-1]: packet for packet in captured if (header := packet.ina()) and header.collective == model.HELLO and not header.flags}
    run = jobs.Run([hellos[key] for key in sorted(hellos)], epoch=1, nonce=9)
    table = bytes([128, *bytes(7)]) + bytes.fromhex(CLIPPED)

    def frame(rank: int, place: int, data: bytes, **said: int) -> bytes:
        header = run.header(rank, version=3, msg_len=len(data), **said)
        return run.packet(rank, jobs.WRITE_ONLY, place, model.Ina.LAYOUT.pack(*header) + data)
    frames = [frame(rank, 0, table, collective=model.HELLO, session=run.nonce) for rank in range(jobs.WORLD)]
    frames += [frame(rank, 1, bytes([value] * 16 + [0] * 8), msg=1, op=128, dtype=255) for rank, value in enumerate((100, 50, 1))]
    capture, out = lab.directory / "in.pcap", lab.directory / "out.pcap"
    capture.write_bytes(model.pcap_bytes(frames))
    config = lab.file("weir.yaml", base + f"operators:\n  - file: {text_file('clipped-i8-sum')}\n")
    ended = run_to_end([REPLAY, "--config", config, "--in", capture, "--out", out])
    expect(ended.status == 0, f"{ended}")
    results = [packet for packet in map(model.parse_roce, model.read_pcap(out)) if packet]
    expect([packet.payload[model.INA_LEN:] for packet in results] == [table] * 3 + [bytes([127] * 16 + [1] + [0] * 7)] * 3,
           f"{[packet.payload[model.INA_LEN:].hex() for packet in results]}")


@smoke_test("operators-loaded-without-end")
def without_end(lab: Lab) -> None:
    """10,000 loads of other texts by a tenant: as many as it may are there, and the switch answers others meanwhile."""
    fabric, outside = cables(lab)
    config = configuration(ring_ports(), rings=ring_of_operators()) + f"operators:\n  - file: {text_file('clipped-i8-sum')}\n"
    terminal = Terminal(lab, fabric, lab.file("weir.yaml", at_socket(lab, config)))
    with fabric.entered():
        flood = run_to_end([PYTHON, str(CLIENT), f"unix:{socket_of(lab)}", "load", str(LOADS), text_file("clipped-i8-sum").read_text()])
    expect(flood.status == 0, flood.errors[-1500:])
    counts = json.loads(flood.output)
    expect(counts["calls"] == LOADS and counts["loaded"] <= 256 and counts["refused"] > LOADS - 300, f"{counts}")
    expect_all(job(lab, outside, text_file("clipped-i8-sum")), "exact")
    terminal.quit()


@smoke_test("operators-under-loss")
def under_loss(lab: Lab) -> None:
    """Of each cable's frames 2 % are lost, in both directions: the switch's sums of MXFP8 are numpy's, and those of hosts whose ring no switch has."""
    fabric, outside, lossy = lab.namespace(), lab.namespace(), LossyCables(lab.namespace(), LOSS)
    for rank in range(RANKS):
        lossy.connect(fabric, f"tap{rank}", outside, f"host{rank}")
    loaded = "operators:\n" + "".join(f"  - file: {text_file(name)}\n" for name in MXFP8)
    terminal = Terminal(lab, fabric, lab.file("weir.yaml", at_socket(lab, configuration(ring_ports(), rings=ring_of_operators()) + loaded)))

    def results(ring: int, fallback: int) -> set[str]:
        said_by_all = expect_all(job(lab, outside, *map(text_file, MXFP8), ring=ring, fallback=fallback, options=("--rounds", str(LOSSY_ROUNDS))), "exact")
        return {output.partition(";")[0].split()[-1] for output in said_by_all}
    by_switch = results(7, NONE)
    lost = lossy.lost()
    packets = [row["packets"] for row in operators_of(terminal)]
    expect(lost > 20 and min(packets) >= 25 * LOSSY_ROUNDS, f"{lost} frames lost, packets by operator: {packets}")
    by_hosts = results(8, BY_RING)
    expect([row["packets"] for row in operators_of(terminal)] == packets and lossy.lost() > lost, "the hosts have folded, under loss")
    expect(by_switch == by_hosts and len(by_switch) == 1, f"by the switch {by_switch}, by the hosts {by_hosts}")
    terminal.quit()


def other_code(lab: Lab) -> Path:
    library = lab.directory / "other_code.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, Path(__file__).parent / "other_code.c"], check=True)
    return library


def address_of(program: Path, function: str) -> str:
    """In the program's file, in hexadecimal digits."""
    symbols = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    found = [line.split()[0] for line in symbols.splitlines() if f"{function}E" in line and line.split()[1] in "Tt"]
    expect(len(found) == 1, f"{program}: {function} is there {len(found)} times")
    return found[0]


class OperatorTree:
    """A spine and two racks of two hosts each; each switch has the texts."""

    def __init__(self, lab: Lab, *texts: Path, wrong: str = "") -> None:
        self._lab, spaces = lab, {name: lab.namespace() for name in PLACES}
        self.outside = lab.namespace()
        for rack in range(2):
            veth(spaces["spine"], f"p{rack}", spaces[f"rack{rack}"], "up0")
        for rank in range(RANKS):
            veth(spaces[f"rack{rank // 2}"], f"h{rank}", self.outside, f"host{rank}")
        self.switches = {name: self._switch(name, spaces[name], texts, name == wrong) for name in PLACES}

    def _switch(self, name: str, space: Namespace, texts: Sequence[Path], is_wrong: bool) -> Terminal:
        names, place = PLACES[name]
        ports = [f'name: {port}, device: "net_af_packet{number},iface={port}"' for number, port in enumerate(names)]
        members = ", ".join(f"{{ ip: 10.77.0.{rank + 1} }}" for rank in range(RANKS))
        ring = f"  - {{ id: 7, window: 4, max_message_bytes: 1064, mtu: 256, members: [{members}],\n      {place} }}\n"
        loaded = "operators:\n" + "".join(f"  - file: {text}\n" for text in texts)
        config = self._lab.file(f"{name}.yaml", without_probes(configuration(ports, rings=ring) + loaded))
        if not is_wrong:
            return Terminal(self._lab, space, config)
        with patch.dict(os.environ, LD_PRELOAD=str(other_code(self._lab)), OTHER_CODE_LOOPS=address_of(WEIR, REDUCE)):
            return Terminal(self._lab, space, config)

    def job(self, *texts: Path, fallback: int = NONE, tree: str = TREE) -> list[Process]:
        return job(self._lab, self.outside, *texts, fallback=fallback, options=("--tree", tree))

    def rows(self, column: str) -> dict[str, list[Any]]:
        return {name: [row[column] for row in operators_of(switch)] for name, switch in self.switches.items()}

    def quit(self) -> None:
        for switch in self.switches.values():
            switch.quit()


PLACES = {  # a switch's ports, and its place in the tree
    "spine": (("p0", "p1"), "children: [{ switch: rack0, ranks: [0, 1], port: p0 }, { switch: rack1, ranks: [2, 3], port: p1 }]"),
    "rack0": (("up0", "h0", "h1"), "parent: { switch: spine, port: up0 }, children: [{ rank: 0, port: h0 }, { rank: 1, port: h1 }]"),
    "rack1": (("up0", "h2", "h3"), "parent: { switch: spine, port: up0 }, children: [{ rank: 2, port: h2 }, { rank: 3, port: h3 }]"),
}


@smoke_test("operators-in-a-tree")
def in_a_tree(lab: Lab) -> None:
    """Two levels of switches fold MXFP8, maxloc and sums with counts: each gets the nested fold's bits."""
    texts = [text_file(name) for name in ("mxfp8-e4m3-sum", "mxfp8-e5m2-sum", "maxloc", "valid-sum")]
    tree = OperatorTree(lab, *texts)
    expect_all(tree.job(*texts), "exact")
    packets = tree.rows("packets")
    expect(all(min(counts) >= 25 for counts in packets.values()), f"{packets}")
    expect_all(tree.job(*texts[:1], tree="[0,1,2,3]"), "mxfp8-e4m3-sum: ")  # nested folds of MXFP8 are other ones
    tree.quit()


@smoke_test("operators-by-a-wrong-switch")
def by_a_wrong_switch(lab: Lab) -> None:
    """One switch of a tree folds wrongly: it has another digest, so no job folds by that number, and the hosts do."""
    text = text_file("clipped-i8-sum")
    tree = OperatorTree(lab, text, wrong="rack1")
    digests = tree.rows("digest")
    expect(digests["spine"] == digests["rack0"] == [CLIPPED] and digests["rack1"] != [CLIPPED], f"{digests}")
    expect_all(tree.job(text), f"operator 0 (clipped-i8-sum, digest {CLIPPED}): a switch on the way lacks it")
    line = tree.switches["rack1"].event("operator_missing")
    expect(line.endswith(f"[operator_missing ring=7 number=128 digest={CLIPPED}]"), line)
    expect_all(tree.job(text, fallback=BY_RING, tree="[0,1,2,3]"), "exact")
    expect(tree.rows("packets") == {name: [0] for name in PLACES}, f"{tree.rows('packets')}")
    blamed = [name for name, switch in tree.switches.items() if any("[operator_missing " in line for line in switch.events)]
    expect(blamed == ["rack1"], f"{blamed}")
    tree.quit()


@smoke_test("operators-of-wrong-hosts")
def of_wrong_hosts(lab: Lab) -> None:
    """One host's loops are wrong: it has another digest, and all ranks say whose it is. One host's program flushes subnormals: the library does not."""
    fabric, outside = cables(lab)
    library = other_code(lab)
    loaded = "operators:\n" + "".join(f"  - file: {text_file(name)}\n" for name in ("clipped-i8-sum", "f32-sum"))
    config = lab.file("weir.yaml", configuration(ring_ports(), rings=ring_of_operators()) + loaded)
    terminal = Terminal(lab, fabric, config)
    wrong = ("--other-code", library, "--wrong-loops", address_of(BUILD / "lib/host/package/libweir.so.1.0.0", REDUCE))
    for output in expect_all(job(lab, outside, text_file("clipped-i8-sum"), of_rank_2=wrong), "operator 0 (clipped-i8-sum): rank "):
        expect(re.search(r"rank 2 has (digest )?(?!" + CLIPPED + r")[0-9a-f]{64}", output) and CLIPPED in output, output)
    expect([row["packets"] for row in operators_of(terminal)] == [0, 0], "folded by a number on which they do not agree")
    for fallback in (NONE, BY_RING):
        ring = 7 if fallback == NONE else 8
        ranks = job(lab, outside, text_file("f32-sum"), ring=ring, fallback=fallback, options=("--subnormals",), of_rank_2=("--other-code", library))
        expect_all(ranks, "exact")
    terminal.quit()
    with patch.dict(os.environ, LD_PRELOAD=str(library), OTHER_CODE_FLUSHES="yes"):
        terminal = Terminal(lab, fabric, config)
    expect_all(job(lab, outside, text_file("f32-sum"), options=("--subnormals",)), "exact")
    terminal.quit()


@smoke_test("operators-by-a-wrong-kernel")
def by_a_wrong_kernel(lab: Lab) -> None:
    """The switch's kernel for MXFP8 is wrong: its trial shows it, and the loops fold, to the right bits."""
    fabric, outside = cables(lab)
    text = text_file("mxfp8-e4m3-sum")
    config = configuration(ring_ports(), rings=ring_of_operators()) + f"operators:\n  - file: {text}\n"
    with patch.dict(os.environ, LD_PRELOAD=str(other_code(lab)), OTHER_CODE_KERNEL=address_of(WEIR, FIND_KERNEL)):
        terminal = Terminal(lab, fabric, lab.file("weir.yaml", config))
    said_of_it = [row["by"] for row in operators_of(terminal)]
    expect(said_of_it == ["loops: its kernel disagrees"], f"{said_of_it}")
    expect_all(job(lab, outside, text), "exact")
    terminal.quit()
