"""The activities of rounds: functions that use the profiler roughly and check the results."""

from __future__ import annotations

from soak.activities.budgets import spend_budgets
from soak.activities.collector import collect_garbage
from soak.activities.coroutines import overlap_ranges
from soak.activities.exports import export_everything
from soak.activities.failures import fail_everywhere
from soak.activities.forks import fork_while_recording
from soak.activities.interrupts import interrupt
from soak.activities.kills import kill_children
from soak.activities.names import record_names
from soak.activities.schedules import follow_schedule
from soak.activities.tensors import train
from soak.activities.threads import record_threads
from soak.activities.tools import change_hooks
from soak.activities.windows import overlap_profilers
from soak.rounds import Activity

ACTIVITIES: dict[str, Activity] = {
    "budgets": spend_budgets,
    "coroutines": overlap_ranges,
    "exports": export_everything,
    "failures": fail_everywhere,
    "forks": fork_while_recording,
    "garbage": collect_garbage,
    "interrupts": interrupt,
    "kills": kill_children,
    "names": record_names,
    "schedules": follow_schedule,
    "tensors": train,
    "threads": record_threads,
    "tools": change_hooks,
    "windows": overlap_profilers,
}
