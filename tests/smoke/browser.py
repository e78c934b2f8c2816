# SPDX-License-Identifier: BSD-3-Clause
"""Chromium without a screen, driven by its DevTools protocol over pipes: it needs no port and no other package."""
from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from lab import Lab
from weir import KILLED_WITH_US, Failed, Skipped, wait_for

PROGRAM = "chromium-headless-shell"  # Debian's package of the same name
PATIENCE_S = 30


def end_all(browser: subprocess.Popen[bytes]) -> None:
    """With its helpers, which write into its folder for a while after it has died."""
    os.killpg(browser.pid, signal.SIGKILL)
    browser.wait()
    wait_for(lambda: not has_processes(browser.pid), PATIENCE_S, "the browser's helpers do not end")


def has_processes(group: int) -> bool:
    try:
        os.killpg(group, 0)
        return True
    except ProcessLookupError:
        return False


class Browser:
    """One tab. What it asks the network for, and what it complains of, is kept."""

    def __init__(self, lab: Lab) -> None:
        program = shutil.which(PROGRAM)
        if program is None:
            raise Skipped(f"there is no {PROGRAM}")
        theirs, self._to = os.pipe()
        self._from, theirs_too = os.pipe()
        command = [*KILLED_WITH_US, "bash", "-c", f'exec "$@" 3<&{theirs} 4>&{theirs_too}', "bash", program, "--no-sandbox", "--disable-gpu",
                   f"--user-data-dir={lab.directory}/browser", "--remote-debugging-pipe", "about:blank"]
        with (lab.directory / "browser.log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(theirs, theirs_too),
                                       start_new_session=True)
        for descriptor in (theirs, theirs_too):
            os.close(descriptor)
        lab.on_end(lambda: (end_all(process), os.close(self._to), os.close(self._from)))
        self._read, self._last, self._session = b"", 0, ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        tab = self.order("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.order("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.order(f"{domain}.enable")

    def order(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters} | ({"sessionId": self._session} if self._session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._last:
            self._note(answer)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']}")
        return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            more = os.read(self._from, 1 << 20)
            if not more:
                raise Failed("the browser has ended")
            self._read += more
        message, _, self._read = self._read.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(parameters))

    def resize(self, width: int, height: int, *, is_phone: bool, scheme: str) -> None:
        self.order("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=is_phone)
        self.order("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address: str) -> None:
        self.order("Page.navigate", url=address)
        wait_for(lambda: bool(self.value("document.readyState === 'complete' && location.href !== 'about:blank'")), PATIENCE_S,
                 f"{address} is not loaded")

    def value(self, expression: str) -> Any:
        answer = self.order("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failed(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_until(self, expression: str, seconds: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + seconds
        while not self.value(expression):
            if time.monotonic() > deadline:
                raise Failed(f"not so after {seconds} s: {expression}\n{self.value('document.body.innerText')}")
            time.sleep(0.1)

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.order("Page.captureScreenshot", format="png")["data"]))
