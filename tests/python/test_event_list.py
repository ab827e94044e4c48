"""The list of rows and its table."""

from __future__ import annotations

import re

import pytest
from mindprof import EventList, profile

from tests.workloads import torch


@pytest.fixture
def rows() -> EventList:
    with profile() as prof:
        x = torch.ones((4, 4))
        for _ in range(3):
            x + x
        x.sum()
    return prof.key_averages()


def shown(table: str) -> list[str]:
    return [line.split()[0] for line in table.splitlines()[3:] if re.search(r"\d+ *$", line)]


def test_the_list_is_a_list_of_rows(rows: EventList) -> None:
    assert isinstance(rows, list)
    assert rows[0].key == "aten::ones"
    with pytest.raises(TypeError):
        rows[0]["key"]


def test_totals_sum_the_rows(rows: EventList) -> None:
    total = rows.total_average()
    assert total.key == "Total"
    assert total.count == sum(row.count for row in rows)
    assert total.self_cpu_time_total == rows.self_cpu_time_total
    assert rows.self_cpu_time_total == pytest.approx(sum(r.self_cpu_time_total for r in rows))


def test_the_table_is_sorted_by_what_it_is_told(rows: EventList) -> None:
    assert shown(rows.table(sort_by="count"))[0] == "aten::add"
    by_time = sorted(rows, key=lambda row: row.cpu_time_total, reverse=True)
    assert shown(rows.table(sort_by="cpu_time_total")) == [row.key for row in by_time]


def test_an_unknown_sort_key_is_an_attribute_error(rows: EventList) -> None:
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'foo'"):
        rows.table(sort_by="foo")


def test_a_limit_cuts_rows_and_a_negative_one_does_not(rows: EventList) -> None:
    assert len(shown(rows.table(row_limit=1))) == 1
    assert len(shown(rows.table(row_limit=-1))) == len(rows)


def test_the_table_follows_the_list(rows: EventList) -> None:
    del rows[1:]
    assert shown(rows.table()) == ["aten::ones"]
    assert str(rows) == rows.table()


def test_a_header_and_a_unit_are_used(rows: EventList) -> None:
    table = rows.table(header="my run", time_unit="ms")
    assert table.splitlines()[1] == "my run"
    assert "us" not in table.splitlines()[-1]
    assert table.splitlines()[-1].endswith("ms")
