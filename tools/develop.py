"""Installs the packages into a virtual environment from this folder, with a module built by cargo.

`maturin develop` does the same, but it builds the native module on its own: cargo then resolves
other features than for the tests and compiles most of the workspace twice. This takes the module
that a build of the whole workspace left in a folder. Run it with the Python of the environment:

    cargo build --workspace --lib --bins --examples --features pyo3/extension-module
    .venv/bin/python tools/develop.py target/debug
"""

from __future__ import annotations

import re
import shutil
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """\
#!{python}
import sys
from mindprof._command import main
if __name__ == "__main__":
    sys.exit(main())
"""
METADATA = """\
Metadata-Version: 2.1
Name: mindprof
Version: {version}
"""


def install_module(built: Path, package: Path) -> None:
    """Copies the native module into its package.

    The old file is replaced and not written to, because processes may have it mapped.
    """
    target = package / "_core.abi3.so"
    partial = target.with_suffix(".partial")
    shutil.copy2(built / "lib_core.so", partial)
    partial.replace(target)


def install_packages(site: Path, programs: Path) -> None:
    """Makes the packages importable and the program `mindprof` available in an environment."""
    manifest = (ROOT / "Cargo.toml").read_text()
    (version,) = re.findall(r'^version = "(.+)"$', manifest, re.MULTILINE)
    for old in site.glob("mindprof-*.dist-info"):
        shutil.rmtree(old)
    script = programs / "mindprof"
    script.write_text(SCRIPT.format(python=sys.executable))
    script.chmod(0o755)
    info = site / f"mindprof-{version}.dist-info"
    info.mkdir()
    files = {
        site / "mindprof.pth": f"{ROOT / 'python'}\n",
        info / "METADATA": METADATA.format(version=version),
        info / "INSTALLER": "mindprof\n",
        info / "entry_points.txt": "[console_scripts]\nmindprof=mindprof._command:main\n",
    }
    for path, text in files.items():
        path.write_text(text)
    # The list of files by which pip uninstalls.
    names = [script, *files, info / "RECORD"]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in names))


def main() -> None:
    """Installs into the environment of this interpreter."""
    if sys.prefix == sys.base_prefix:
        sys.exit("not in a virtual environment: run with .venv/bin/python")
    if len(sys.argv) != 2:
        sys.exit("usage: develop.py FOLDER, where FOLDER holds lib_core.so")
    install_module(Path(sys.argv[1]), ROOT / "python/mindprof")
    install_packages(Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("scripts")))


if __name__ == "__main__":
    main()
