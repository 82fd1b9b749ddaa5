"""`python -m paneflow.demo`."""

from paneflow.demo.main import main

main()
