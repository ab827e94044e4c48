"""Section 2.9: what users say about a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from host import export, mark, names, profile, work


def finished(**arguments: Any) -> Any:
    """Runs a profiler."""
    with profile(**arguments) as profiler:
        work()
    return profiler


def test_the_trace_tells_which_flags_were_on(tmp_path: Path) -> None:
    trace = export(finished(record_shapes=True, with_flops=True), tmp_path)
    assert (trace["record_shapes"], trace["with_flops"]) == (1, 1)
    assert not {"profile_memory", "with_stack", "with_modules"} & trace.keys()


def test_p_90_add_metadata_takes_texts(tmp_path: Path) -> None:
    with profile() as profiler:
        profiler.add_metadata("key", "日本 value")
        values: list[Any] = [1, None, 1.5, [], {}, True]
        for value in values:
            with pytest.raises(AttributeError, match="object has no attribute 'replace'"):
                profiler.add_metadata("bad", value)
        with pytest.raises(TypeError, match="a bytes-like object is required, not 'str'"):
            profiler.add_metadata("bad", b"bytes")
    trace = export(profiler, tmp_path)
    assert trace["key"] == "日本 value"
    assert "bad" not in trace


def test_p_91_add_metadata_json_takes_json(tmp_path: Path) -> None:
    with profile() as profiler:
        profiler.add_metadata_json("key", '{"a": [1, null, "b"]}')
        text = r"_add_metadata_json\(\): incompatible function arguments.*Invoked with: 'bad', 1"
        with pytest.raises(TypeError, match="(?s)" + text):
            profiler.add_metadata_json("bad", 1)
        profiler.add_metadata_json(b"bytes", b"2")
    trace = export(profiler, tmp_path)
    assert (trace["key"], trace["bytes"]) == ({"a": [1, None, "b"]}, 2)


def test_p_92_presets_are_checked_at_start() -> None:
    profiler = profile()
    profiler.preset_metadata_json("key", 1)
    assert profiler.preset_metadata == {"key": 1}
    with pytest.raises(TypeError, match="incompatible function arguments"):
        profiler.start()
    profiler.stop()


def test_p_93_the_last_value_wins(tmp_path: Path) -> None:
    with profile() as profiler:
        profiler.add_metadata("key", "first")
        profiler.add_metadata_json("key", "2")
    assert export(profiler, tmp_path)["key"] == 2


@pytest.mark.differs("torch drops what was added before start and after stop")
def test_p_94_all_metadata_is_in_the_trace(tmp_path: Path) -> None:
    profiler = profile()
    profiler.add_metadata("before", "1")
    with profiler:
        profiler.add_metadata("during", "2")
    profiler.add_metadata("after", "3")
    trace = export(profiler, tmp_path)
    assert [trace[key] for key in ("before", "during", "after")] == ["1", "2", "3"]


@pytest.mark.differs("torch turns backslashes into slashes, which breaks quotes")
@pytest.mark.parametrize("value", ['a"b', "a\\b", "a\nb", "\\", '\\"', "\x00\t\x7f", "\ud800"])
def test_p_95_any_text_comes_out_as_it_went_in(tmp_path: Path, value: str) -> None:
    with profile() as profiler:
        profiler.add_metadata("key", value)
        profiler.add_metadata(value, "as a key")
    trace = export(profiler, tmp_path)
    # Half a letter has no form in a file: something stands in its place.
    assert trace["key"] == value or set(trace["key"]) == {"\ufffd"}
    assert "as a key" in trace.values()


def test_p_96_the_python_export_has_what_was_ever_added(tmp_path: Path) -> None:
    profiler = profile()
    profiler.add_metadata("before", 'a"b')
    with profiler:
        work()
    profiler.add_metadata("after", "x")
    with profiler:
        work()
    trace = export(profiler, tmp_path, use_python_export=True)
    assert (trace["before"], trace["after"]) == ('a"b', "x")


@pytest.mark.differs("torch writes the key twice")
def test_p_97_keys_of_the_format_get_a_prefix(tmp_path: Path) -> None:
    with profile() as profiler:
        work()
        profiler.add_metadata_json("schemaVersion", "7")
        profiler.add_metadata_json("traceEvents", "[]")
    trace = export(profiler, tmp_path)
    assert trace["schemaVersion"] == 1
    assert trace["traceEvents"]
    assert (trace["user_schemaVersion"], trace["user_traceEvents"]) == (7, [])


@pytest.mark.differs("torch writes a file that is not JSON")
@pytest.mark.parametrize("value", ["not json", "{", "1 2", "NaN", "", "'a'", "[1,]", '"\n"'])
def test_p_98_text_that_is_no_json_becomes_a_string(tmp_path: Path, value: str) -> None:
    with profile() as profiler:
        profiler.add_metadata_json("key", value)
    assert export(profiler, tmp_path)["key"] == value


def test_p_99_presets_are_in_every_cycle(tmp_path: Path) -> None:
    profiler = profile()
    profiler.preset_metadata_json("key", "[1]")
    for _ in range(2):
        with profiler:
            work()
        assert export(profiler, tmp_path)["key"] == [1]


@pytest.mark.differs("torch uses the trace up")
def test_exporting_twice_works(tmp_path: Path) -> None:
    profiler = finished()
    first = export(profiler, tmp_path)
    assert export(profiler, tmp_path) == first


@pytest.mark.differs("torch only prints")
def test_a_failed_export_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    profiler = finished()
    with pytest.raises(OSError, match="file"):
        profiler.export_chrome_trace(str(tmp_path / "file" / "trace.json"))
    assert export(profiler, tmp_path)["traceEvents"]


@pytest.mark.differs("torch makes such names unknown, or changes them")
@pytest.mark.parametrize("name", ["日本語 🙂", "tab\t", 'quote"', "line\nbreak", "ra"])
def test_names_keep_their_letters(tmp_path: Path, name: str) -> None:
    with profile() as profiler:
        mark(name)
    assert names(export(profiler, tmp_path)) == {name: 1}
    assert [row.key for row in profiler.key_averages()] == [name]


def test_graph_lanes_are_checked(tmp_path: Path) -> None:
    profiler = finished()
    path = str(tmp_path / "trace.json")
    with pytest.raises(ValueError, match="graph_lanes must be 'all' or 'none', got 'foo'"):
        profiler.export_chrome_trace(path, graph_lanes="foo")
    with pytest.raises(ValueError, match="graph_lanes='all' needs cuda_graph_annotations"):
        profiler.export_chrome_trace(path, graph_lanes="all")
