"""A real Firefox for tests of pages, driven over Marionette, its own protocol.

Marionette takes JSON messages with their length in front over a local socket, so that neither a
driver program nor a package is needed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.browser.browser import BrowserError

NAMES = ("firefox-esr", "firefox")
# Only code of the browser's own sees messages of the console.
OPTIONS = ("--headless", "--marionette", "--no-remote", "--remote-allow-system-access")
PREFERENCES = """
user_pref("marionette.port", 0);
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.page", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("toolkit.telemetry.enabled", false);
"""

# Errors and warnings about the page itself; Firefox reports those of its own code in the same list.
MESSAGES = """
const found = [];
for (const message of Services.console.getMessageArray()) {
  const error = message instanceof Ci.nsIScriptError ? message : null;
  if (!error || !error.sourceName.startsWith("file:")) continue;
  found.push(`${error.category}: ${error.errorMessage}`);
}
return found;
"""


def firefox() -> str | None:
    """Returns the path of the browser, or `None` if there is none."""
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in found if path), None)


class Firefox:
    """A browser process with one tab. Use it in a `with` statement."""

    def __init__(self) -> None:
        program = firefox()
        if program is None:
            raise BrowserError("no Firefox: install Debian's package firefox-esr")
        self._folder = tempfile.TemporaryDirectory()
        profile = Path(self._folder.name)
        (profile / "user.js").write_text(PREFERENCES)
        command = [program, *OPTIONS, "--profile", str(profile)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._numbers = itertools.count(1)
        self._socket = self._connect(profile / "MarionetteActivePort")
        self._stream = self._socket.makefile("rb")
        self._message()
        self.call("WebDriver:NewSession")

    def __enter__(self) -> Firefox:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrowserError, OSError):
            self.call("Marionette:Quit", flags=["eForceQuit"])
        self._stream.close()
        self._socket.close()
        self._process.terminate()
        self._process.wait()
        with contextlib.suppress(OSError):
            self._folder.cleanup()

    def _connect(self, port: Path, seconds: float = 120) -> socket.socket:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            # The file is there before the socket listens.
            with contextlib.suppress(OSError, ValueError):
                address = ("127.0.0.1", int(port.read_text()))
                return socket.create_connection(address, timeout=seconds)
            if self._process.poll() is not None:
                raise BrowserError("Firefox has ended")
            time.sleep(0.1)
        raise BrowserError(f"Firefox does not listen after {seconds} s")

    def _message(self) -> Any:
        length = bytearray()
        while (letter := self._stream.read(1)) != b":":
            if not letter:
                raise BrowserError("Firefox has ended")
            length += letter
        return json.loads(self._stream.read(int(length)))

    def call(self, method: str, **parameters: Any) -> Any:
        """Calls a method of the protocol and returns its result."""
        number = next(self._numbers)
        text = json.dumps([0, number, method, parameters]).encode()
        self._socket.sendall(str(len(text)).encode() + b":" + text)
        _, answered, error, result = self._message()
        assert answered == number
        if error:
            raise BrowserError(f"{method}: {error['error']}: {error['message']}")
        return result

    def run(self, body: str) -> Any:
        """Runs the body of a function in the page and returns its result."""
        return self.call("WebDriver:ExecuteScript", script=body, args=[], sandbox=None)["value"]

    def wait(self, expression: str, seconds: float = 60) -> None:
        """Waits until an expression is true."""
        until = time.monotonic() + seconds
        while not self.run(f"return Boolean({expression})"):
            if time.monotonic() > until:
                raise BrowserError(f"still not {expression}\n{self.problems()}")
            time.sleep(0.02)

    def open(self, path: Path, view: str = "") -> None:
        """Opens a page file, and waits until its scripts are ready."""
        self.call("WebDriver:Navigate", url=path.resolve().as_uri() + view)
        self.wait("document.documentElement.hasAttribute('data-ready')")

    def go(self, view: str) -> None:
        """Goes to a view of the page, and waits until it is drawn."""
        frames = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 160)))"
        # The page shows a view on this event, which a busy machine delays.
        script = (
            f"const done = arguments[arguments.length - 1], drawn = () => {frames};"
            f"const before = location.href; location.hash = {json.dumps(view)};"
            "if (location.href === before) drawn();"
            " else addEventListener('hashchange', drawn, { once: true });"
        )
        self.call("WebDriver:ExecuteAsyncScript", script=script, args=[], sandbox=None)

    def problems(self) -> list[str]:
        """Returns the errors and warnings about pages so far."""
        self.call("Marionette:SetContext", value="chrome")
        try:
            found: list[str] = self.run(MESSAGES)
        finally:
            self.call("Marionette:SetContext", value="content")
        return found
