"""A headless Chromium of the tests' own, driven by its DevTools protocol over a pipe: no driver, no port."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIMEOUT = 120.0  # seconds without an answer
# Chromium reads commands from descriptor 3 and answers on 4.
LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def program() -> str:
    """The browser; the test fails where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail("Chromium is missing: apt-get install chromium (.ci/run does it on Debian)")
    return found


class Browser:
    """One process; pages are opened one after the other."""

    def __init__(self, folder: Path) -> None:
        options = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}"]
        options += ["--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        options += ["--no-sandbox"] if os.geteuid() == 0 else []  # the sandbox refuses to run as root
        options += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "about:blank"]
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LAUNCH, str(commands), str(answers), program(), *options],
                pass_fds=(commands, answers),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        os.close(commands)
        os.close(answers)
        self.count, self.buffer, self.events = 0, b"", []  # type: ignore[var-annotated]

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Sends a command, and returns its result; events that come in between are kept."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        os.write(self.commands, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def receive(self) -> dict[str, Any]:
        """The next message; an event is kept, too."""
        end = time.monotonic() + TIMEOUT
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, end - time.monotonic()))
            part = os.read(self.answers, 1 << 20) if ready else b""
            if not part:
                pytest.fail(f"Chromium does not answer: {self.log.read_text(errors='replace')[-2000:]}")
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message

    def close(self) -> None:
        os.close(self.commands)
        os.close(self.answers)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    def open(self, path: Path, *, width: int = 1400, height: int = 900, dark: bool = False) -> Page:
        return Page(self, path, width, height, dark)


class Page:
    """A page in a window of some size; `problems` lists what went wrong in it, and `loaded` what it asked for."""

    def __init__(self, browser: Browser, path: Path, width: int, height: int, dark: bool) -> None:
        self.browser = browser
        self.target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.emulate(dark=dark)
        self.send("Page.navigate", url=path.resolve().as_uri())
        while not self.of("Page.loadEventFired"):
            browser.receive()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.send(method, self.session, **parameters)

    def of(self, *methods: str) -> list[dict[str, Any]]:
        """The parameters of the events so far."""
        own = [event for event in self.browser.events if event.get("sessionId") == self.session]
        return [event["params"] for event in own if event["method"] in methods]

    @property
    def problems(self) -> list[str]:
        calls = [own for own in self.of("Runtime.consoleAPICalled") if own["type"] in ("error", "warning", "assert")]
        logged = [own["entry"] for own in self.of("Log.entryAdded") if own["entry"]["level"] in ("error", "warning")]
        thrown = self.of("Runtime.exceptionThrown")
        return [json.dumps(own) for own in (*calls, *logged, *thrown)]

    @property
    def loaded(self) -> list[str]:
        return [own["request"]["url"] for own in self.of("Network.requestWillBeSent")]

    def emulate(self, *, dark: bool = False, media: str = "") -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def run(self, script: str) -> Any:
        """The value of an expression in the page, which may be a promise."""
        done = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Waits until an expression is true."""
        for _ in range(600):
            if self.run(f"Boolean({condition})"):
                return
            time.sleep(0.05)
        pytest.fail(f"the page does not reach: {condition}")

    def click(self, selector: str) -> None:
        """Scrolls an element into view, and clicks into its middle as a mouse does."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y = self.run(
            f"(() => {{ const r = {found}.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] }})()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            buttons = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **buttons)

    def press(self, key: str) -> None:
        """Presses a key, "Tab", "Enter" or " "."""
        code = {"Tab": 9, "Enter": 13, " ": 32}[key]
        text = {"Enter": "\r", " ": " "}.get(key)
        more = {"key": key, "windowsVirtualKeyCode": code, "code": "Space" if key == " " else key}
        self.send("Input.dispatchKeyEvent", type="keyDown", **more, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **more)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        printed = self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(printed["data"])

    def close(self) -> None:
        self.browser.send("Target.closeTarget", targetId=self.target)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(prefix="cocopt-browser-", ignore_cleanup_errors=True) as folder:
        browser = Browser(Path(folder))
        try:
            yield browser
        finally:
            browser.close()
