"""Takes the pictures of the report in docs/ with Chromium.

    python tools/report_pictures.py FOLDER [--program mindprof]

FOLDER holds the traces of the recorded programs `tiny-kernels`, `healthy-gpt` and
`losses-with-graphs` on a GPU. Look at each picture before you commit it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from browser import Browser  # type: ignore[import-not-found]  # noqa: E402


class Picture(NamedTuple):
    """A picture: its name in docs, the recorded program, the view in the address and the look."""

    name: str
    program: str
    view: str
    theme: str = "light"
    height: int = 760


PICTURES = (
    Picture("report-overview", "tiny-kernels", "", height=920),
    Picture("report-flames", "healthy-gpt", "flames"),
    Picture("report-timeline", "healthy-gpt", "step?step=3", "dark"),
    Picture("report-memory", "losses-with-graphs", "memory"),
)


def main() -> None:
    """Writes a report of each program and takes its pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", default=str(ROOT / ".venv" / "bin" / "mindprof"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        for picture in PICTURES:
            page = Path(folder, f"{picture.program}.html")
            if not page.exists():
                trace = options.folder / f"{picture.program}.trace.json.gz"
                command = [options.program, "report", str(trace), "--out", str(page)]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            view = f"#{picture.view}" if picture.view else ""
            dark = picture.theme == "dark"
            shown = browser.open(page, view, width=1200, height=picture.height, dark=dark)
            path = ROOT / "docs" / f"{picture.name}.png"
            shown.picture(path)
            shown.close()
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
