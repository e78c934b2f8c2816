# SPDX-License-Identifier: BSD-3-Clause
"""The manager's page for people: what it answers to whom, and what a browser makes of it."""
from __future__ import annotations

import urllib.error

from browser import Browser
from fabric_lab import HOSTILE, LISTEN, LONG, Fabric
from lab import Lab, smoke_test
from test_metrics import expect_well_formed
from weir import BUILD, ROOT, Failed, expect, run_to_end

PAGE = f"http://{LISTEN}/fabric"
PATHS = ("/fabric", "/fabric.css", "/fabric.js", "/metrics")
SCREENS = {"wall": (1280, 720), "phone": (390, 844)}
# Of an element: how many times lighter its text is than what is behind it, or the reverse (WCAG 2, 1.4.3).
CONTRAST = """(selector => {
  const light = text => { const [r, g, b] = text.match(/[\\d.]+/g).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                          return .2126 * r + .7152 * g + .0722 * b };
  const element = document.querySelector(selector), style = getComputedStyle(element);
  const behind = selector => getComputedStyle(document.querySelector(selector));
  let back = element; while (back && !getComputedStyle(back).backgroundColor.match(/^rgb\\(/)) back = back.parentElement;
  const [a, b] = element.ownerSVGElement ? [style.fill, getComputedStyle(element.parentElement.querySelector('.box')).fill]
                                         : [style.color, getComputedStyle(back).backgroundColor];
  return (Math.max(light(a), light(b)) + .05) / (Math.min(light(a), light(b)) + .05) })"""
TEXTS = ("h1", "header p", "th[scope=col]", ".tenant", "li.note", "li.trouble", "section.trouble h2", ".late .name", ".late .small",
         ".trouble .name", ".trouble .small", "g:not([class]) > .name, g[class=''] > .name")


@smoke_test("fabric-page-methods")
def methods(lab: Lab) -> None:
    """GET and HEAD alone; no more than Prometheus reads; a policy that forbids what the page does not need."""
    fabric = Fabric(lab)
    for path in PATHS:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            try:
                fabric.ask(path, method)
                raise Failed(f"{method} {path} has an answer")
            except urllib.error.HTTPError as error:
                expect(error.code == 405 and error.headers["Allow"] == "GET, HEAD", f"{method} {path}: {error.code} {error.headers}")
        told = fabric.ask(path, "HEAD")
        expect(told.status == 200 and int(told.headers["Content-Length"]) > 500 and told.read() == b"", f"HEAD {path}: {told.headers}")
    page = fabric.ask("/fabric")
    policy = dict(rule.split(" ", 1) for rule in page.headers["Content-Security-Policy"].split("; "))
    expect(policy == {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'", "img-src": "data:",
                      "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'"}, f"{policy}")
    expect(page.headers["X-Content-Type-Options"] == "nosniff" and page.headers["Cache-Control"] == "no-store", f"{page.headers}")
    metrics = fabric.ask("/metrics").read().decode()
    expect_well_formed(metrics)
    expect(f'name="{LONG}"' in metrics, "the long name is not in the metrics")


@smoke_test("fabric-page-in-a-browser")
def in_a_browser(lab: Lab) -> None:
    """On a phone and on a wall, light and dark; new pictures come by themselves, and it says when none does."""
    fabric = Fabric(lab)
    with fabric.entered():
        browser = Browser(lab)
    browser.open(PAGE)
    fabric.say(waits=[HOSTILE], down={"leaf0": ["spine1"]}, silent=["leaf1"])
    browser.value("window.isTheSame = true; document.getElementById('links').open = true")
    browser.wait_until("document.querySelectorAll('.late').length && document.querySelectorAll('li.trouble').length === 2")
    for kind, (width, height) in SCREENS.items():
        for scheme in ("light", "dark"):
            browser.resize(width, height, is_phone=kind == "phone", scheme=scheme)
            look_at(browser, width)
    expect(browser.value("window.isTheSame && document.getElementById('links').open"), "it was loaded anew, or has closed the list")
    shown = browser.value("[...document.querySelectorAll('.jobs tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
    expect(shown == [["1", f"{HOSTILE}red", "placedwaits for host5", "6"], ["2", LONG, "placed", "2"]], f"{shown}")
    expect(not browser.complaints, "\n".join(browser.complaints))
    expect(set(browser.requests) - {"about:blank"} == {PAGE, f"{PAGE}.css", f"{PAGE}.js"}, f"{set(browser.requests)}")
    lose_the_manager(lab, fabric, browser)


def look_at(browser: Browser, width: int) -> None:
    """Nothing leaves the screen at its side; what is written can be read."""
    sizes = browser.value("[document.documentElement, ...document.querySelectorAll('table, .picture')].map(e => [e.scrollWidth, e.clientWidth])")
    expect(all(inner <= outer <= width for inner, outer in sizes), f"on {width} pixels: {sizes}")
    cells = browser.value("[...document.querySelectorAll('th, td, h1, h2, li, #picture svg')].map(e => e.getBoundingClientRect().right)")
    expect(max(cells) <= width, f"on {width} pixels: to {max(cells)}")
    letters = browser.value("[...document.querySelectorAll('#picture text.name')].map(e => e.getBoundingClientRect().height)")
    expect(min(letters) >= 10, f"on {width} pixels letters of {min(letters)}")
    for selector in TEXTS:
        contrast = browser.value(f"{CONTRAST}({selector!r})")
        expect(contrast >= 4.5, f"{selector} on {width} pixels has a contrast of {contrast:.1f}")


def lose_the_manager(lab: Lab, fabric: Fabric, browser: Browser) -> None:
    expect(browser.value("document.getElementById('lost').hidden"), "it says that the manager is lost")
    fabric.kill_manager()
    browser.wait_until("!document.getElementById('lost').hidden")
    said, drawn = browser.value("[document.getElementById('lost').innerText, document.querySelector('time').innerText]")
    expect(said == f"The manager does not answer. This is how it was at {drawn}.", said)
    expect(browser.value("document.title") == "? lab", browser.value("document.title"))
    fabric.start_manager(lab)
    browser.wait_until("document.getElementById('lost').hidden")
    expect(browser.value("window.isTheSame && document.title.endsWith(' lab') && document.title[0] !== '?'"), browser.value("document.title"))


@smoke_test("fabric-page-pictures", hidden=True)
def pictures(lab: Lab) -> None:
    """Draws those of docs/fabric.md anew."""
    fabric = Fabric(lab, ("train-70b", "eval"))
    fabric.say(waits=["train-70b"], down={"leaf0": ["spine1"]})
    drained = run_to_end([BUILD / "app" / "weirctl", "--server", f"unix:{fabric.folder}/manager.sock", "fabric", "drain", "host", "host1"])
    expect(drained.status == 0, drained.errors)
    with fabric.entered():
        browser = Browser(lab)
    for kind, scheme in (("wall", "light"), ("phone", "dark")):
        width, height = SCREENS[kind]
        browser.resize(width, height, is_phone=kind == "phone", scheme=scheme)
        browser.open(PAGE)
        browser.wait_until("!!document.querySelector('.late') && !!document.querySelector('li.trouble')")
        browser.picture(ROOT / "docs" / "fabric" / f"{kind}.png")
