"""What outputs leave behind: every row, once, also if steps are written again."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.outputs.callback import CallbackOutput
from paneflow.engines.edge.outputs.contract import Output, OutputError
from paneflow.engines.edge.outputs.parquet import ParquetOutput, read_rows
from paneflow.engines.edge.outputs.slices import SlicesOutput, read_slices
from paneflow.engines.edge.outputs.stdout import StdoutOutput
from paneflow.errors import InputError

MOMENT = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)


def rows(*peaks: float | None) -> pa.Table:
    return pa.table(
        {
            "plug": pa.array(["a"] * len(peaks)),
            "start": pa.array([MOMENT] * len(peaks), pa.timestamp("us", "UTC")),
            "peak": pa.array(peaks, pa.float64()),
            "complete": pa.array([True] * len(peaks)),
        }
    )


def peaks(folder: Path) -> list[float]:
    return read_rows(folder)["peak"].to_pylist()


def test_a_folder_holds_the_rows_of_all_steps_in_order(tmp_path: Path) -> None:
    output = ParquetOutput(tmp_path / "rows")
    for number in range(1, 13):
        output.write(rows(number, number + 0.5), number)
    assert peaks(tmp_path / "rows") == [n / 2 for n in range(2, 26)]
    assert read_rows(tmp_path / "rows").schema.equals(rows(1).schema)


def test_a_step_that_is_written_again_replaces_its_rows(tmp_path: Path) -> None:
    for numbers in ([1, 2, 3], [2, 3, 4]):
        output = ParquetOutput(tmp_path)
        for number in numbers:
            output.write(rows(number), number)
        output.close()
    assert peaks(tmp_path) == [1, 2, 3, 4]


def test_steps_without_rows_leave_no_files(tmp_path: Path) -> None:
    output = ParquetOutput(tmp_path)
    output.write(rows(), 1)
    output.write(rows(2), 2)
    assert len(list(tmp_path.iterdir())) == 1


def test_any_reader_of_parquet_can_read_the_folder(tmp_path: Path) -> None:
    output = ParquetOutput(tmp_path)
    output.write(rows(1), 1)
    output.write(rows(2), 2)
    assert ds.dataset(tmp_path, format="parquet").to_table()["peak"].to_pylist() == [1, 2]


def test_a_draft_of_a_process_that_died_is_no_step(tmp_path: Path) -> None:
    ParquetOutput(tmp_path).write(rows(1), 1)
    (tmp_path / ".draft-rows-2").write_bytes(b"half of a file")
    assert peaks(tmp_path) == [1]
    ParquetOutput(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rows-000000000000001.parquet"]


def test_readers_see_whole_steps_while_they_are_written(tmp_path: Path) -> None:
    output = ParquetOutput(tmp_path)
    output.write(rows(*[1.0] * 1000), 1)

    def write() -> None:
        for number in range(2, 60):
            output.write(rows(*[float(number)] * 1000), number)
            output.write(rows(*[float(number)] * 1000), number)

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while writer.is_alive():
        found = peaks(tmp_path)
        assert [found.count(n) for n in sorted(set(found))] == [1000] * (len(found) // 1000)
        seen.append(len(found))
    assert seen == sorted(seen)
    writer.join()
    assert len(peaks(tmp_path)) == 59_000


def test_whoever_reads_a_step_while_it_is_written_again_reads_what_it_was(tmp_path: Path) -> None:
    output = ParquetOutput(tmp_path)
    output.write(rows(1), 1)
    (path,) = tmp_path.iterdir()
    with path.open("rb") as opened:
        output.write(rows(2), 1)
        assert pq.read_table(opened)["peak"].to_pylist() == [1]
    assert peaks(tmp_path) == [2]


@pytest.mark.processes
def test_a_killed_writer_leaves_whole_steps(tmp_path: Path) -> None:
    program = f"""
import pyarrow as pa, itertools
from paneflow.engines.edge.outputs.parquet import ParquetOutput
output = ParquetOutput({str(tmp_path)!r})
for number in itertools.count(1):
    output.write(pa.table({{"peak": [float(number)] * 50_000}}), number)
    print(number, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        last = [int(process.stdout.readline()) for _ in range(20)][-1]
        process.kill()
    found = peaks(tmp_path)
    assert len(found) >= 50_000 * last
    assert len(found) % 50_000 == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_says_what_to_do() -> None:
    with (
        open("/dev/full", "wb", buffering=0) as full,
        pytest.raises(OutputError, match="No space left on device"),
    ):
        StdoutOutput("text", full).write(rows(1), 1)  # type: ignore[arg-type]


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written to"):
        ParquetOutput(tmp_path / "file")
    output = ParquetOutput(tmp_path / "rows")
    (tmp_path / "rows").rmdir()
    with pytest.raises(OutputError, match="it has kept the rows"):
        output.write(rows(1), 1)


QUERY = pf.Query(
    {"five": W.tumbling(5), "visit": W.session(3)},
    {"peak": A.max("v"), "mean": A.mean("v"), "middle": A.median("v"), "all": A.collect("v")},
    key="k",
    time="t",
)


def cut(*times: int) -> pf.Slices:
    return QUERY.slice(
        pa.table({"t": times, "v": [float(t) for t in times], "k": ["a"] * len(times)})
    )


def test_slices_of_all_steps_finish_to_the_rows_of_all_events(tmp_path: Path) -> None:
    output = SlicesOutput(tmp_path)
    steps = [(1, 2), (3, 4, 9), (11, 12, 20)]
    for number, times in enumerate(steps, 1):
        output.write(cut(*times).table, number)
    output.write(cut(*steps[-1]).table, 3)
    together = QUERY.finish(cut(*[t for times in steps for t in times]))
    assert QUERY.finish(read_slices(tmp_path)).equals(together)


def test_a_table_that_holds_no_slices_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not hold slices"):
        SlicesOutput(tmp_path).write(rows(1), 1)


def test_a_function_gets_rows_and_numbers() -> None:
    heard: list[Any] = []
    output: Output = CallbackOutput(lambda rows, number: heard.append((number, rows.num_rows)))
    output.write(rows(1, 2), 1)
    output.write(rows(3), 2)
    output.close()
    assert heard == [(1, 2), (2, 1)]


def printed(format: str, *tables: pa.Table) -> str:
    to = io.BytesIO()
    output = StdoutOutput(format, to)
    for number, table in enumerate(tables, 1):
        output.write(table, number)
    return to.getvalue().decode()


def test_rows_as_text_have_one_line_each() -> None:
    text = printed("text", rows(1.5, None), rows(3))
    assert text.splitlines() == [
        f"plug=a  start=2024-05-01 12:00:00+00:00  peak={peak}  complete=True"
        for peak in ("1.5", "-", "3.0")
    ]


def test_rows_as_json_are_objects() -> None:
    nested = pa.table(
        {
            "all": [[1.0, float("nan")]],
            "sum": [decimal.Decimal("1.20")],
            "filter": [b"\x00\xff"],
            "who": ["Zoë"],
        }
    )
    lines = printed("json", rows(1.5, float("inf")), nested).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"plug": "a", "start": "2024-05-01T12:00:00+00:00", "peak": 1.5, "complete": True},
        {"plug": "a", "start": "2024-05-01T12:00:00+00:00", "peak": None, "complete": True},
        {"all": [1.0, None], "sum": "1.20", "filter": "AP8=", "who": "Zoë"},
    ]


def test_rows_as_csv_have_one_line_of_names() -> None:
    nested = [rows(k).append_column("all", pa.array([[k, k + 1]])) for k in (1, 2)]
    text = printed("csv", *nested)
    read = pa_csv.read_csv(io.BytesIO(text.encode()))
    assert read.column_names == ["plug", "start", "peak", "complete", "all"]
    assert read["peak"].to_pylist() == [1, 2]
    assert [json.loads(each) for each in read["all"].to_pylist()] == [[1, 2], [2, 3]]


@pytest.mark.processes
def test_rows_are_printed_on_the_standard_output() -> None:
    program = (
        "import pyarrow as pa\n"
        "from paneflow.engines.edge.outputs.stdout import StdoutOutput\n"
        "StdoutOutput('csv').write(pa.table({'peak': [1, 2]}), 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == ['"peak"', "1", "2"]


def test_a_format_that_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match=r"'xml' is not a format .* choose from text, json, csv"):
        StdoutOutput("xml")
