"""python -m bench.multicore [--quick] [part ...]."""

from bench.multicore import main

main()
