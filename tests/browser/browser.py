"""A real Chromium for tests and pictures of pages, driven over its DevTools protocol.

The protocol runs over two pipes, so that no port is opened and no package is needed.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def chromium() -> str | None:
    """Returns the path of the browser, or `None` if there is none."""
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in found if path), None)


class BrowserError(Exception):
    """The browser reported an error, or did not answer."""


class Browser:
    """A browser process. Use it in a `with` statement."""

    def __init__(self) -> None:
        program = chromium()
        if program is None:
            raise BrowserError("no Chromium: install Debian's package chromium")
        self._folder = tempfile.TemporaryDirectory()
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", program, *OPTIONS]
        command.append(f"--user-data-dir={self._folder.name}")
        # Its own messages do not matter: console messages of pages come over the protocol.
        self._process = subprocess.Popen(
            command,
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._numbers = itertools.count(1)
        self._bytes = bytearray()
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrowserError, OSError):
            self.call("Browser.close")
        self._process.terminate()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        with contextlib.suppress(OSError):
            self._folder.cleanup()

    def call(
        self, method: str, session: str | None = None, seconds: float = 60, **parameters: Any
    ) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + seconds
        while True:
            answer = self._message(until)
            if answer is None:
                raise BrowserError(f"{method}: no answer in {seconds} s")
            if answer.get("id") != number:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            result: dict[str, Any] = answer["result"]
            return result

    def drain(self) -> None:
        """Takes in the messages that have arrived."""
        while (message := self._message(time.monotonic())) is not None:
            self.events.append(message)

    def _message(self, until: float) -> dict[str, Any] | None:
        while (end := self._bytes.find(b"\0")) < 0:
            left = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._read], [], [], left)
            if not ready:
                return None
            more = os.read(self._read, 1 << 20)
            if not more:
                raise BrowserError("the browser has ended")
            self._bytes += more
        message: dict[str, Any] = json.loads(self._bytes[:end])
        del self._bytes[: end + 1]
        return message

    def open(self, path: Path, view: str = "", **look: Any) -> Page:
        """Opens a page file in a tab of its own."""
        return Page(self, path, view, **look)


class Page:
    """A page in a tab: what it requests and reports is kept."""

    def __init__(
        self,
        browser: Browser,
        path: Path,
        view: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        scripts: bool = True,
        early: str = "",
    ) -> None:
        self.browser = browser
        self.path = path
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.target, self.session = target, attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        if early:
            # Runs before the page's own script.
            self.call("Page.addScriptToEvaluateOnNewDocument", source=early)
        self.call("Page.navigate", url=path.resolve().as_uri() + view)
        self.wait("document.readyState === 'complete'")
        if scripts:
            ready = "document.documentElement.hasAttribute('data-ready')"
            self.wait(f"{ready} || !document.querySelector('nav')")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def run(self, expression: str) -> Any:
        """Returns the value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 60) -> None:
        """Waits until an expression is true."""
        until = time.monotonic() + seconds
        while not self.run(f"Boolean({expression})"):
            if time.monotonic() > until:
                raise BrowserError(f"{self.path.name}: still not {expression}\n{self.problems()}")
            time.sleep(0.02)

    def go(self, view: str) -> None:
        """Goes to a view of the page, and waits until it is drawn."""
        self.run(f"location.hash = {json.dumps(view)}")
        self.settle()

    def settle(self) -> None:
        """Waits for two frames, so that everything that is queued is drawn."""
        # A tab in the background draws nothing.
        self.call("Page.bringToFront")
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.run("new Promise((done) => setTimeout(done, 160))")

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
        self.settle()

    def type(self, selector: str, text: str) -> None:
        """Puts a text into a field."""
        self.run(
            f"(() => {{ const field = document.querySelector({json.dumps(selector)});"
            f" field.value = {json.dumps(text)};"
            " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )
        self.settle()

    def press(self, key: str) -> None:
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)
        self.settle()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drags the mouse from one point to another."""
        for kind, (x, y), button in (
            ("mouseMoved", start, "none"),
            ("mousePressed", start, "left"),
            ("mouseMoved", end, "left"),
            ("mouseReleased", end, "left"),
        ):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button=button,
                buttons=1 if button == "left" else 0,
                clickCount=1 if kind in ("mousePressed", "mouseReleased") else 0,
            )
        self.settle()

    def box(self, selector: str) -> dict[str, float]:
        """Returns the place of an element in the window."""
        place: dict[str, float] = self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect();"
            " return { x: box.x, y: box.y, width: box.width, height: box.height }; })()"
        )
        return place

    def picture(self, path: Path, whole: bool = False) -> None:
        """Writes a picture of the window, or of the whole page."""
        self.settle()
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def problems(self) -> list[str]:
        """Returns errors of the page, messages of its console and requests besides the page."""
        self.browser.drain()
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            parameters = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    details = parameters["exceptionDetails"]
                    text = details.get("exception", {}).get("description", details["text"])
                    found.append(f"error: {text}")
                case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning"):
                    found.append(f"console: {parameters['args']}")
                case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                    found.append(f"log: {parameters['entry']['text']}")
                case "Network.requestWillBeSent":
                    address = parameters["request"]["url"]
                    own = self.path.resolve().as_uri()
                    if not address.startswith((own, "blob:", "data:")):
                        found.append(f"request: {address}")
        return found

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)
