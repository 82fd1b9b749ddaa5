"""python -m bench.spark [--quick] [batch | keys | streams]."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench.report import publish
from bench.spark import batch, keys, streams
from bench.spark.setting import spark_in_folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that were named, or all; only a full run is published."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fraction of the rows")
    parser.add_argument("parts", nargs="*", help="batch, keys, streams: all unless named")
    options = parser.parse_args(arguments)
    sheets = []
    with spark_in_folder() as (spark, folder):
        for name, part in (("batch", batch), ("keys", keys), ("streams", streams)):
            if not options.parts or name in options.parts:
                sheets += part.run(spark, folder, options.quick)
    if not options.quick and not options.parts:
        publish("spark", sheets)


if __name__ == "__main__":
    main()
