"""Times that no event has: before all of them, after all of them, and at the end of a stream."""

import numpy as np

BEFORE_ALL = int(np.iinfo(np.int64).min)
AFTER_ALL = int(np.iinfo(np.int64).max)
END_OF_STREAM = 2**62
"""The watermark once every source has ended: beyond the end of any window."""
