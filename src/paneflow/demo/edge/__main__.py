"""`python -m paneflow.demo.edge`."""

import sys

from paneflow.demo.edge.main import main

sys.exit(main())
