"""Run all benchmarks, one after another: python -m bench [--quick]."""

from __future__ import annotations

import argparse

from bench import cold_start, defined, edge, many_windows, merging, multicore, tables
from bench.spark.__main__ import main as spark

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, for daily use")
    quick = ["--quick"] if parser.parse_args().quick else []
    cold_start.main(quick)
    defined.main(quick)
    many_windows.main(quick)
    merging.main(quick)
    multicore.main(quick)
    edge.main(quick)
    tables.main(quick)
    spark(quick)
