"""Observers that run along with a profiler, and torch's own one, for execution traces."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class _ITraceObserver(ABC):
    """What a profiler calls along with its own recording."""

    @abstractmethod
    def start(self) -> None:
        """Is called before recording begins."""

    @abstractmethod
    def stop(self) -> None:
        """Is called before recording ends."""

    @abstractmethod
    def cleanup(self) -> None:
        """Is called once, when the profiler is left."""


class ExecutionTraceObserver(_ITraceObserver):
    """Stands for torch's recorder of execution traces, and says that it writes nothing.

    It behaves as torch's does for a file that cannot be written.
    """

    def __init__(self) -> None:
        self.extra_resources_collection = False
        self.resources_dir = ""
        self.output_file_path = ""

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """Returns an observer if `ENABLE_PYTORCH_EXECUTION_TRACE` is 1."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        return ExecutionTraceObserver().register_callback("")

    def register_callback(self, output_file_path: str) -> Self:
        """Takes the path and warns that nothing will be written there."""
        warnings.warn(
            "Execution trace will not be recorded. mindprof does not write execution traces.",
            stacklevel=2,
        )
        self.output_file_path = output_file_path
        return self

    def unregister_callback(self) -> None:
        """Does nothing."""

    @property
    def is_registered(self) -> bool:
        """Whether a file is being written: never."""
        return False

    def is_running(self) -> bool:
        """Returns whether a file is being written: never."""
        return False

    def start(self) -> None:
        """Does nothing."""

    def stop(self) -> None:
        """Does nothing."""

    def cleanup(self) -> None:
        """Does nothing."""
        self.unregister_callback()

    def get_output_file_path(self) -> str | None:
        """Returns the path that was registered, None before."""
        return self.output_file_path or None

    def set_extra_resource_collection(self, val: Any) -> None:
        """Says whether files beside the trace are wanted.

        Args:
            val: Whether they are; then their folder is made.
        """
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """Returns the folder for files beside the trace, None if there is none.

        Args:
            can_create: Make the folder if it is not there.
        """
        if not self.extra_resources_collection:
            return None
        if not self.resources_dir:
            found = self.get_resources_dir_for_et_path(self.output_file_path, can_create)
            self.resources_dir = found or ""
        return self.resources_dir or None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """Returns the folder that belongs to a trace, None if it is not there.

        Args:
            trace_path: The file of the trace.
            create_dir: Make the folder if it is not there.
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
