"""`python -m paneflow.cli` is the command `paneflow`."""

import sys

from paneflow.cli import main

sys.exit(main())
