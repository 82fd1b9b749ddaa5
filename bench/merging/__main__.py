"""python -m bench.merging [--quick] [part ...]."""

from bench.merging import main

main()
