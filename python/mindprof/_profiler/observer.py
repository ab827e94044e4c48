"""Observers that run alongside a profiler, and `ExecutionTraceObserver`."""

from __future__ import annotations

import errno
import os
import stat
import time
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from mindprof import _core
from mindprof._settings.options import SessionOptions

if TYPE_CHECKING:
    from typing_extensions import Self


class _ITraceObserver(ABC):
    """The interface of an observer, which a profiler starts and stops with its recording."""

    @abstractmethod
    def start(self) -> None:
        """Called before the recording starts."""

    @abstractmethod
    def stop(self) -> None:
        """Called before the recording stops."""

    @abstractmethod
    def cleanup(self) -> None:
        """Called once, when the profiler's `with` block ends."""


class ExecutionTraceObserver(_ITraceObserver):
    """Writes torch's execution trace: operators with their tensors, parents and values.

    It records operators between `start` and `stop`. `unregister_callback` writes the file;
    `cleanup` and the destructor call it. Several observers can be registered at the same time, each
    with its own file.

    Example:
        >>> import json, tempfile, mindtorch_v2 as torch
        >>> folder = tempfile.TemporaryDirectory()
        >>> observer = ExecutionTraceObserver().register_callback(f"{folder.name}/trace.json")
        >>> observer.start()
        >>> ones = torch.ones(2)
        >>> observer.unregister_callback()
        >>> with open(observer.get_output_file_path()) as file:
        ...     [node["name"] for node in json.load(file)["nodes"]][1:-1]
        ['aten::empty', 'aten::fill_', 'aten::ones']
        >>> folder.cleanup()
    """

    def __init__(self) -> None:
        self.extra_resources_collection = False
        self.resources_dir = ""
        self.output_file_path = ""
        self._registered: _Registration | None = None
        self._execution_trace_running = False

    def __del__(self) -> None:
        self.unregister_callback()

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """Returns an observer with a temporary file if `ENABLE_PYTORCH_EXECUTION_TRACE` is 1.

        Returns `None` if the variable is not set or the file cannot be created.
        """
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        import tempfile

        try:
            with tempfile.NamedTemporaryFile("w", suffix=".et.json", delete=False) as file:
                path = file.name
        except OSError as error:
            warnings.warn(
                "Execution trace will not be recorded. Exception on creating default temporary "
                f"file: {error}",
                stacklevel=2,
            )
            return None
        observer = ExecutionTraceObserver().register_callback(path)
        extras = os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "0") == "1"
        observer.set_extra_resource_collection(extras)
        return observer

    def register_callback(self, output_file_path: str) -> Self:
        """Registers the file to write the trace to, compressed if its name ends in `.gz`.

        If the file cannot be opened, this warns and the observer stays unregistered. An existing
        file keeps its contents until the trace replaces it. Further calls have no effect until
        `unregister_callback`.
        """
        if self._own() is None:
            self.output_file_path = output_file_path
            try:
                _check_writable(output_file_path)
            # A path that contains a NUL character raises ValueError.
            except (OSError, ValueError) as error:
                warnings.warn(
                    f"Execution trace will not be recorded. Failed to open output file: {error}",
                    stacklevel=2,
                )
                return self
            self._registered = _Registration()
        return self

    def unregister_callback(self) -> None:
        """Stops recording and writes the file, except in a child forked since the registration."""
        registered = self._own()
        if registered is not None:
            self.stop()
            self._registered = None
            registered.write(self.output_file_path)

    @property
    def is_registered(self) -> bool:
        """Whether a file is registered."""
        return self._own() is not None

    def is_running(self) -> bool:
        """Returns whether the observer records operators."""
        return self._own() is not None and self._execution_trace_running

    def start(self) -> None:
        """Starts or resumes recording, if a file is registered."""
        registered = self._own()
        if registered is not None and not self._execution_trace_running:
            registered.resume()
            self._execution_trace_running = True

    def stop(self) -> None:
        """Pauses recording."""
        registered = self._own()
        if registered is not None and self._execution_trace_running:
            registered.pause()
            self._execution_trace_running = False

    def cleanup(self) -> None:
        """Writes the file, like `unregister_callback`."""
        self.unregister_callback()

    def _own(self) -> _Registration | None:
        """Returns the registration of this process; a forked child leaves it to the parent."""
        registered = getattr(self, "_registered", None)
        if registered is not None and registered.process != os.getpid():
            self._registered = registered = None
            self._execution_trace_running = False
        return registered

    def get_output_file_path(self) -> str | None:
        """Returns the registered path, or `None` if there is none."""
        return self.output_file_path or None

    def set_extra_resource_collection(self, val: Any) -> None:
        """Enables or disables the folder for additional files next to the trace.

        Args:
            val: Whether to enable it, which creates the folder.
        """
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """Returns the folder for additional files, or `None` if there is none.

        Args:
            can_create: Create the folder if it does not exist.
        """
        if not self.extra_resources_collection:
            return None
        if not self.resources_dir:
            found = self.get_resources_dir_for_et_path(self.output_file_path, can_create)
            self.resources_dir = found or ""
        return self.resources_dir or None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """Returns the folder for the additional files of a trace, or `None` if there is none.

        Args:
            trace_path: The path of the trace.
            create_dir: Create the folder if it does not exist.
        """
        folder = f"{os.path.splitext(trace_path)[0]}_resources"
        if os.path.exists(folder):
            return folder
        if not create_dir:
            return None
        try:
            os.mkdir(folder)
        except OSError:
            warnings.warn(f"Execution trace exception when creating {folder}", stacklevel=2)
            return None
        return folder


class _Registration:
    """One registered file: the session to write, which the first start creates, and its times."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._session: _core.Session | None = None
        self._time = time.strftime("%Y-%m-%d %H:%M:%S")
        self._start_ms = _milliseconds()

    def resume(self) -> None:
        if self._session is None:
            options = SessionOptions(record_shapes=True, profile_memory=True, results=True)
            self._session = _core.Session(options)
        else:
            self._session.resume()

    def pause(self) -> None:
        if self._session is not None:
            self._session.pause()

    def write(self, path: str) -> None:
        profile = None if self._session is None else self._session.stop()
        _core.write_execution_trace(
            profile,
            path,
            time=self._time,
            start_ms=self._start_ms,
            finish_ms=_milliseconds(),
        )


def _check_writable(path: str) -> None:
    """Raises the error of opening a file for writing. Creates the file, but never truncates it.

    Pipes are rejected, because opening one blocks until it has a reader.
    """
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    file = os.open(path, flags, 0o666)
    try:
        if stat.S_ISFIFO(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "Is a pipe", path)
    finally:
        os.close(file)


def _milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000
