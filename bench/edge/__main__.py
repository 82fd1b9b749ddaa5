"""python -m bench.edge [--quick] [part ...]."""

from bench.edge import main

if __name__ == "__main__":
    main()
