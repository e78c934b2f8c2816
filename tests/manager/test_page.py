#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the manager makes of a picture of its fabric: the page, the drawing, the metrics and schedulers' files, read by other parsers.

    test_page.py PICTURE_AS [unittest's options]
"""
from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml
from html.parser import HTMLParser
from itertools import combinations
from typing import Any

PROGRAM = ""
Picture = dict[str, Any]
HOSTILE = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "</title></svg>&amp;&lt;", "javascript:alert(1)//",
           "]]><!--", "a" * 300, "größe-模型-🚀"]
HIDDEN = {"a\x1b[31mb": r"a\x1b[31mb", "two\nlines": r"two\x0alines", "\u202egnp": r"\xe2\x80\xaegnp", "\x00": r"\x00"}
WORDLESS = {"meta", "link", "br"}  # elements of HTML without an end


def made(kind: str, picture: Picture) -> str:
    done = subprocess.run([PROGRAM, kind], input=json.dumps(picture), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def local(element: xml.Element) -> str:
    return element.tag.partition("}")[2]


def parsed(text: str) -> xml.Element:
    return xml.fromstring(text)


def all_of(root: xml.Element, name: str, kind: str = "") -> list[xml.Element]:
    return [element for element in root.iter() if local(element) == name
            and (not kind or kind in element.get("class", "").split())]


def words(element: xml.Element) -> str:
    return "".join(element.itertext()).strip()


def spine_leaf(leaves: int = 2, spines: int = 2, hosts: int = 3) -> Picture:
    return {
        "fabric": "lab", "manager": "mgr1", "term": "1.7",
        "switches": [{"name": f"leaf{leaf}", "state": "serving", "frames": "25", "mostFrames": "100"} for leaf in range(leaves)]
        + [{"name": f"spine{spine}", "state": "serving", "level": 1, "mostFrames": "100"} for spine in range(spines)],
        "hosts": [{"name": f"host{leaf * hosts + host}", "switchName": f"leaf{leaf}"}
                  for leaf in range(leaves) for host in range(hosts)],
        "links": [{"one": f"leaf{leaf}", "other": f"spine{spine}", "load": 0.25}
                  for leaf in range(leaves) for spine in range(spines)],
        "jobs": []}


def job(number: int, **more: Any) -> Picture:
    return {"id": str(number), "name": f"name{number}", "state": "placed", "hosts": ["host0", "host3"], **more}


def fat_tree(k: int) -> Picture:
    half = k // 2
    pods = range(k)
    return {
        "fabric": "fat", "jobs": [],
        "switches": [{"name": f"{kind}{pod}-{at}", "level": level, "state": "serving"}
                     for level, kind in enumerate(("leaf", "agg")) for pod in pods for at in range(half)]
        + [{"name": f"core{at}", "level": 2, "state": "serving"} for at in range(half * half)],
        "hosts": [{"name": f"host{pod}-{leaf}-{at}", "switchName": f"leaf{pod}-{leaf}"}
                  for pod in pods for leaf in range(half) for at in range(half)],
        "links": [{"one": f"leaf{pod}-{leaf}", "other": f"agg{pod}-{agg}"}
                  for pod in pods for leaf in range(half) for agg in range(half)]
        + [{"one": f"agg{pod}-{core // half}", "other": f"core{core}"} for core in range(half * half) for pod in pods]}


class Elements(HTMLParser):
    """As a browser sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


class ThePage(unittest.TestCase):
    def test_is_the_same_to_both_parsers(self) -> None:
        text = made("page", spine_leaf() | {"jobs": [job(3, name=name) for name in HOSTILE]})
        self.assertEqual(Elements(text).names, [local(element).lower() for element in parsed(text).iter()])

    def test_shows_names_as_they_are_and_obeys_none(self) -> None:
        for name in HOSTILE:
            picture = spine_leaf() | {"fabric": name, "manager": name, "jobs": [job(3, name=name, tenant=name, hosts=[name], waitsFor=[name])]}
            picture["hosts"][0]["name"] = picture["switches"][0]["name"] = picture["links"][0]["one"] = name
            picture["hosts"][0]["switchName"] = name
            root = parsed(made("page", picture))
            cells = [words(cell) for cell in all_of(root, "td")]
            self.assertIn(name + name, cells, "name and tenant")
            self.assertEqual(words(all_of(root, "h1")[0]), name)
            self.assertIn(f"{name}: job 3 waits for it", [words(title) for title in all_of(root, "title")])
            self.assertEqual([(script.get("src"), words(script)) for script in all_of(root, "script")], [("fabric.js", "")])

    def test_needs_nothing_from_elsewhere(self) -> None:
        text = made("page", spine_leaf() | {"jobs": [job(3, name=name, hosts=[name]) for name in HOSTILE]})
        attributes = Elements(text).attributes
        self.assertEqual([value for name, value in attributes if name in ("src", "href", "action", "xlink:href", "data")
                          and not value.startswith("data:image/svg+xml,")], ["fabric.css", "fabric.js"])
        self.assertEqual([name for name, _ in attributes if name.startswith("on") or name == "style"], [])
        self.assertEqual(all_of(parsed(text), "style"), [])

    def test_shows_what_a_terminal_would_obey(self) -> None:
        for name, shown in HIDDEN.items():
            picture = spine_leaf() | {"fabric": name, "jobs": [job(3, name=name, waitsFor=["host0"])]}
            self.assertEqual(words(all_of(parsed(made("page", picture)), "td")[0]), shown)
            self.assertEqual(words(all_of(parsed(made("svg", picture)), "title")[0]), f"The fabric {shown}")

    def test_lists_the_jobs_under_headings(self) -> None:
        picture = spine_leaf() | {"jobs": [job(3, tenant="red", waitsFor=["host3"]), {"name": "late", "state": "waiting"}]}
        table = all_of(parsed(made("page", picture)), "table")[0]
        self.assertEqual([(words(cell), cell.get("scope")) for cell in all_of(all_of(table, "thead")[0], "th")],
                         [("job", "col"), ("name, tenant", "col"), ("state", "col"), ("hosts", "col")])
        rows = [[words(cell) for cell in row] for row in all_of(all_of(table, "tbody")[0], "tr")]
        self.assertEqual(rows, [["3", "name3red", "placedwaits for host3", "2"], ["–", "late", "waiting", "0"]])
        self.assertTrue(all(row[0].get("scope") == "row" for row in all_of(all_of(table, "tbody")[0], "tr")))

    def test_says_how_many_it_leaves_out(self) -> None:
        root = parsed(made("page", spine_leaf() | {"jobs": [job(number) for number in range(1, 264)]}))
        self.assertEqual(len(all_of(all_of(root, "table")[0], "tr")), 1 + 200)
        self.assertIn("and 63 more", [words(line) for line in all_of(root, "p")])

    def test_says_what_is_wrong_first(self) -> None:
        picture = spine_leaf() | {"storeIsLost": True, "jobs": [job(3, waitsFor=["host3"])]}
        picture["switches"][0] |= {"drained": "by ann"}
        picture["switches"][1] |= {"state": "suspect"}
        picture["switches"][2] |= {"state": "unreached"}
        picture["switches"][3] |= {"state": "unreached", "drained": "by ann"}
        picture["links"][1] |= {"isDown": True}
        picture["links"][2] |= {"drained": "by ann"}
        picture["hosts"][1] |= {"drained": "by ann"}
        root = parsed(made("page", picture))
        self.assertEqual(words(all_of(root, "h2")[0]), "⚠ 4 things are wrong")
        self.assertEqual(words(all_of(root, "title")[0]), "⚠ lab")
        self.assertEqual([(line.get("class"), words(line)) for line in all_of(root, "li")], [
            ("trouble", "the manager's store does not answer: all of this is from its memory"),
            ("trouble", "leaf1 is suspect: it has not been heard for some seconds"),
            ("trouble", "spine0 is not reached"),
            ("trouble", "the link leaf0-spine1 is down"),
            ("note", "leaf0 is drained"), ("note", "spine1 is drained"), ("note", "spine1 is not reached"),
            ("note", "the link leaf1-spine0 is drained"), ("note", "host1 is drained"),
            ("note", "job 3 (name3) waits for host3 (rank 1)")])

    def test_says_who_leads_and_whether_that_is_in_doubt(self) -> None:
        """Of one in doubt the store is lost too: that is one thing, and not two."""
        memory = "all of this is from its memory"
        for more, lead, trouble in (
                ({}, "led by mgr1, term 1.7", []),
                ({"storeIsLost": True}, "led by mgr1, term 1.7", [f"the manager's store does not answer: {memory}"]),
                ({"storeIsLost": True, "isInDoubt": True}, "in doubt whether led by mgr1, term 1.7",
                 [f"in doubt: the manager does not know whether it leads; {memory}"]),
                ({"awaitsClaim": True}, "led by nobody: mgr1, term 1.7, waits for a claim",
                 ["the manager gives no orders: it waits for weirctl fabric claim"]),
                ({"isAdopting": True}, "led by nobody: mgr1, term 1.7, waits for switches",
                 ["the manager gives no orders yet: it adopts the jobs that run, and waits for a switch"])):
            root = parsed(made("page", spine_leaf() | more))
            self.assertEqual(words(all_of(root, "p")[1]), f"{lead}, 1970-01-01 00:00:00 UTC")
            self.assertEqual([(line.get("class"), words(line)) for line in all_of(root, "li")], [("trouble", text) for text in trouble])
            found = TheMetrics().samples(spine_leaf() | more)
            for field, metric in (("storeIsLost", "store_lost"), ("isInDoubt", "in_doubt"), ("awaitsClaim", "awaits_claim"),
                                  ("isAdopting", "adopts")):
                self.assertEqual(found[f"weir_fabric_{metric}", ()], int(field in more), field)
            self.assertEqual(found["weir_fabric_leader", ()], int(not {"awaitsClaim", "isAdopting"} & set(more)))

    def test_says_that_all_is_well(self) -> None:
        root = parsed(made("page", spine_leaf()))
        self.assertEqual(words(all_of(root, "h2")[0]), "✓ All is well")
        self.assertEqual(words(all_of(root, "title")[0]), "✓ lab")
        self.assertEqual(all_of(root, "li"), [])

    def test_says_when_it_was_drawn(self) -> None:
        time = all_of(parsed(made("page", spine_leaf())), "time")[0]
        self.assertEqual((time.get("datetime"), words(time)), ("1970-01-01T00:00:00Z", "1970-01-01 00:00:00 UTC"))

    def test_tells_nothing_that_the_metrics_do_not(self) -> None:
        """Each text and number of the picture is another one."""
        picture = spine_leaf() | {"fabric": "zq1", "manager": "zq2", "term": "zq3", "storeIsLost": True}
        picture["jobs"] = [job(777001, name="zq4", tenant="zq5", state="zq6", owner="zq7", why="zq8", rings=[777002], shapes=["zq9"],
                               hosts=["zq10", "zq11"], switches=["zq12"], waitsFor=["zq10"])]
        picture["switches"] = [
            {"name": "zq13", "state": "zq14", "why": "zq15", "drained": "zq16", "rings": "777003", "mostRings": "777004",
             "frames": "777005", "mostFrames": "777006"},
            {"name": "zq17", "state": "serving", "why": "zq18", "level": 1}]
        picture["hosts"] = [{"name": "zq10", "switchName": "zq13", "drained": "zq19"}, {"name": "zq11", "switchName": "zq13"}]
        picture["links"] = [{"one": "zq13", "onePort": "zq20", "other": "zq17", "otherPort": "zq21", "load": 0.25, "drained": "zq22",
                             "jobs": ["777001"]}]
        told = set(re.findall(r"zq\d+|777\d+", made("page", picture)))
        self.assertLessEqual(told, set(re.findall(r"zq\d+|777\d+", made("metrics", picture))))
        self.assertEqual(told, {"zq1", "zq2", "zq3", "zq4", "zq5", "zq6", "zq10", "zq11", "zq13", "zq14", "zq17", "777001"})


class TheDrawing(unittest.TestCase):
    def test_has_its_words_for_who_does_not_see_it(self) -> None:
        picture = spine_leaf() | {"jobs": [job(3, waitsFor=["host3"])]}
        drawing = next(svg for svg in all_of(parsed(made("page", picture)), "svg") if svg.get("role") == "img")
        title, description = drawing[0], drawing[1]
        self.assertEqual((local(title), local(description)), ("title", "desc"))
        self.assertEqual(drawing.get("aria-labelledby"), f"{title.get('id')} {description.get('id')}")
        self.assertEqual(words(title), "The fabric lab")
        self.assertEqual(words(description), "4 switches, 6 hosts, 1 jobs. job 3 (name3) waits for host3 (rank 1).")

    def test_says_each_state_in_words(self) -> None:
        picture = spine_leaf() | {"jobs": [job(3, waitsFor=["host3"])]}
        for at, state in enumerate(("suspect", "unreached", "refused")):
            picture["switches"][at] |= {"state": state}
        picture["switches"][3] |= {"drained": "by ann"}
        picture["hosts"][1] |= {"drained": "by ann"}
        picture["links"][0] |= {"isDown": True}
        root = parsed(made("svg", picture))
        said = {words(all_of(group, "title")[0]).partition(":")[0]: [words(text) for text in all_of(group, "text")]
                for kind in ("trouble", "drained", "late") for group in all_of(root, "g", kind) if all_of(group, "rect", "box")}
        self.assertEqual(said, {"leaf0": ["leaf0", "suspect"], "leaf1": ["leaf1", "unreached"], "spine0": ["spine0", "refused"],
                                "spine1": ["spine1", "drained"], "host1": ["host1", "drained"],
                                "host3": ["host3", "job 3 waits for it"]})
        self.assertEqual([words(text) for text in all_of(root, "text", "load")], ["down", "25 %", "25 %", "25 %"])
        self.assertEqual([words(all_of(group, "title")[0]) for group in all_of(root, "g", "link")][:2],
                         ["leaf0-spine0: 25 % of its rate, down", "leaf0-spine1: 25 % of its rate"])

    def test_draws_each_job_over_its_links_with_its_number(self) -> None:
        picture = spine_leaf() | {"jobs": [job(3), job(12)]}
        picture["links"][0] |= {"jobs": ["3", "12"]}
        picture["links"][3] |= {"jobs": ["12"]}
        root = parsed(made("page", picture))
        lines = {words(all_of(group, "title")[0]): [line.get("class") for line in all_of(group, "path", "tree")]
                 for group in all_of(root, "g", "link")}
        self.assertEqual(lines, {"leaf0-spine0: 25 % of its rate, job 3, job 12": ["tree job-3", "tree job-4"],
                                 "leaf0-spine1: 25 % of its rate": [], "leaf1-spine0: 25 % of its rate": [],
                                 "leaf1-spine1: 25 % of its rate, job 12": ["tree job-4"]})
        numbers = [words(text) for text in all_of(root, "text", "number")]
        self.assertEqual(numbers, ["3", "12", "12"] + ["3", "12"] * 2, "at the links, and at host0 and host3")

    def test_draws_a_busier_link_thicker(self) -> None:
        picture = spine_leaf()
        for link, load in zip(picture["links"], (0, 0.3, 0.9, 7)):
            link["load"] = load
        widths = [float(line.get("stroke-width", "nan")) for line in all_of(parsed(made("svg", picture)), "path", "cable")]
        self.assertEqual(widths, sorted(set(widths)))
        self.assertLess(widths[-1], 10)

    def test_lets_no_boxes_overlap_and_none_leave_it(self) -> None:
        ring = spine_leaf(5, 0)
        ring["links"] = [{"one": f"leaf{at}", "other": f"leaf{(at + 1) % 5}"} for at in range(5)]
        marked = spine_leaf() | {"jobs": [job(3, waitsFor=["host3"])]}
        marked["hosts"][0] |= {"drained": "by ann"}
        many = spine_leaf(3, 2, 40)
        many["hosts"][7] |= {"drained": "by ann"}
        for picture in (spine_leaf(), marked, spine_leaf(1, 0), spine_leaf(2, 7, 1), many, fat_tree(4), fat_tree(8), ring,
                        spine_leaf() | {"hosts": []}, {"switches": [{"name": "alone", "level": 255}]}, {}):
            root = parsed(made("svg", picture))
            _, _, width, height = map(float, str(root.get("viewBox")).split())
            numbers = [float(number) for element in root.iter() for value in element.attrib.values()
                       for number in re.findall(r"(?<![\w#-])-?(?:\d+\.\d+|nan|inf)", value)]
            self.assertTrue(all(map(math.isfinite, numbers)))
            boxes = [tuple(float(box.get(name, "nan")) for name in ("x", "y", "width", "height"))
                     for box in all_of(root, "rect", "box")]
            self.assertEqual(len(boxes), len(picture.get("switches", [])) + len(picture.get("hosts", [])))
            for x, y, wide, high in boxes:
                self.assertTrue(0 <= x and 0 <= y and x + wide <= width and y + high <= height, (x, y, wide, high))
            for (x, y, wide, high), (x2, y2, wide2, high2) in combinations(boxes, 2):
                self.assertTrue(x + wide <= x2 or x2 + wide2 <= x or y + high <= y2 or y2 + high2 <= y, picture["fabric"])

    def test_keeps_a_host_that_matters_by_name_among_many(self) -> None:
        picture = spine_leaf(2, 1, 40) | {"jobs": [job(3, waitsFor=["host3"])]}
        names = [words(text) for text in all_of(parsed(made("svg", picture)), "text", "name")]
        self.assertEqual(names, ["leaf0", "leaf1", "spine0", "host3"])

    def test_shortens_long_names_in_the_middle_and_has_them_whole(self) -> None:
        picture = spine_leaf()
        name = picture["hosts"][0]["name"] = "gpu-node.rack-17.hall-3.example.org-0042"
        root = parsed(made("svg", picture))
        shown = words(all_of(root, "text", "name")[4])
        first, last = shown.split("…")
        self.assertTrue(name.startswith(first) and name.endswith(last) and 8 < len(shown) < 16, shown)
        self.assertIn(name, [words(title) for title in all_of(root, "title")])

    def test_stands_alone_in_a_file(self) -> None:
        root = parsed(made("svg", spine_leaf() | {"jobs": [job(3)]}))
        self.assertEqual(len(all_of(root, "style")), 1)
        self.assertIn("job 3 (name3): placed", [words(text) for text in all_of(root, "text")])


class ForSchedulers(unittest.TestCase):
    def test_spines_that_reach_the_same_leaves_are_one(self) -> None:
        self.assertEqual(made("slurm", spine_leaf(3, 2, 2)), "SwitchName=leaf0 Nodes=host0,host1\nSwitchName=leaf1 Nodes=host2,host3\n"
                         "SwitchName=leaf2 Nodes=host4,host5\nSwitchName=spine0 Switches=leaf0,leaf1,leaf2\n")
        key = "network.topology.nvidia.com"
        self.assertEqual(made("kubernetes", spine_leaf(2, 2, 1)).splitlines(), [
            f"kubectl label --overwrite node host{at} {key}/leaf=leaf{at} {key}/spine=spine0" for at in range(2)])

    def test_hosts_are_as_near_as_by_cables(self) -> None:
        """What tells it is the number of hops between their leaves, by a search over the cables."""
        ring = spine_leaf(5, 0) | {"links": [{"one": f"leaf{at}", "other": f"leaf{(at + 1) % 5}"} for at in range(5)]}
        apart = spine_leaf(4, 2) | {"links": [{"one": f"leaf{at}", "other": f"spine{at // 2}"} for at in range(4)]}
        for picture in (spine_leaf(1, 1), spine_leaf(), fat_tree(4), fat_tree(8), apart, ring):
            parents, hosts = self.read(made("slurm", picture))
            self.assertEqual(hosts, {host["name"]: host["switchName"] for host in picture["hosts"]})
            leaves = sorted(set(hosts.values()))
            near: dict[str, list[str]] = {switch["name"]: [] for switch in picture["switches"]}
            for link in picture["links"]:
                near[link["one"]].append(link["other"])
                near[link["other"]].append(link["one"])
            hops = {leaf: self.hops_from(leaf, near) for leaf in leaves}
            if picture is ring:  # all of one level: one switch has all leaves
                self.assertEqual({parents[leaf] for leaf in leaves}, {"leaf0-leaf4"})
                continue
            for one, other in combinations(leaves, 2):
                common = next((at for at, name in enumerate(self.above(one, parents)) if name in self.above(other, parents)), None)
                self.assertEqual(common, hops[one][other] // 2 if other in hops[one] else None, (one, other))
            tiers = {line.split()[4]: line.split()[5:] for line in made("kubernetes", picture).splitlines()}
            self.assertEqual({host: [label.partition("=")[2] for label in labels] for host, labels in tiers.items()},
                             {host: self.above(leaf, parents) for host, leaf in hosts.items()})

    def test_refuses_a_name_that_would_be_read_as_another(self) -> None:
        for name in (*HOSTILE, "host[0-3]", "a,b", "a b", "a\nSwitchName=b", "-a", "$(id)", ""):
            for kind in ("slurm", "kubernetes"):
                picture = spine_leaf()
                picture["hosts"][0]["name"] = name
                done = subprocess.run([PROGRAM, kind], input=json.dumps(picture), capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"found the name '{name}'; allowed", done.stderr)

    @staticmethod
    def read(text: str) -> tuple[dict[str, str], dict[str, str]]:
        """Of each switch the one above it, and of each host its leaf; none has two."""
        parents: dict[str, str] = {}
        hosts: dict[str, str] = {}
        for line in text.splitlines():
            name, _, rest = line.removeprefix("SwitchName=").partition(" ")
            kind, _, members = rest.partition("=")
            below = {"Nodes": hosts, "Switches": parents}[kind]
            for member in members.split(","):
                assert member not in below, f"{member} is below {below[member]} and {name}"
                below[member] = name
        return parents, hosts

    @staticmethod
    def above(leaf: str, parents: dict[str, str]) -> list[str]:
        path = [leaf]
        while path[-1] in parents:
            path.append(parents[path[-1]])
        return path

    @staticmethod
    def hops_from(leaf: str, near: dict[str, list[str]]) -> dict[str, int]:
        hops, found = {leaf: 0}, [leaf]
        for one in found:  # grows meanwhile
            for other in near[one]:
                if other not in hops:
                    hops[other] = hops[one] + 1
                    found.append(other)
        return hops


class TheMetrics(unittest.TestCase):
    SAMPLE = re.compile(r'^(weir_fabric_\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? ([\d.e+-]+)$')

    def samples(self, picture: Picture) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        found = {}
        for line in made("metrics", picture).splitlines():
            if not line.startswith("# "):
                sample = self.SAMPLE.match(line)
                self.assertIsNotNone(sample, line)
                assert sample is not None
                labels = tuple((name, re.sub(r"\\(.)", r"\1", value))
                               for name, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2] or ""))
                self.assertNotIn((sample[1], labels), found, "twice")
                found[sample[1], labels] = float(sample[3])
        return found

    def test_quote_names(self) -> None:
        for name in [*HOSTILE, "back\\slash", 'quo"te\\']:
            found = self.samples(spine_leaf() | {"jobs": [job(3, name=name)]})
            self.assertEqual(found["weir_fabric_job", (("job", "3"), ("name", name), ("tenant", ""), ("state", "placed"))], 1)

    def test_count_from_nothing_on(self) -> None:
        """Prometheus sees no increase in a series that begins with 1."""
        found = {name for name in self.samples(spine_leaf()) if name[0].endswith("_total")}
        kinds = {"requests": ("answer", ("placed", "refused")), "drift": ("kind", ("ring_missing", "ring_unknown")),
                 "refusals": ("what", ("tree", "order", "rings", "places for members", "frames", "bandwidth"))}
        self.assertEqual(found, {(f"weir_fabric_{name}_total", ((label, value),)) for name, (label, values) in kinds.items() for value in values})

    def test_tell_cables_and_jobs_apart_that_are_alike(self) -> None:
        waiting = {"name": "late", "state": "waiting"}
        picture = spine_leaf() | {"jobs": [waiting, waiting]}
        picture["links"].append(picture["links"][0] | {"load": 0.75})
        found = self.samples(picture)
        self.assertEqual(found["weir_fabric_link_load", (("link", "leaf0-spine0"),)], 0.25)
        self.assertEqual(found["weir_fabric_link_load", (("link", "leaf0-spine0 (2)"),)], 0.75)
        self.assertEqual(found["weir_fabric_job", (("job", ""), ("name", "late"), ("tenant", ""), ("state", "waiting"))], 2)
        self.assertEqual(found["weir_fabric_jobs", (("state", "waiting"),)], 2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
