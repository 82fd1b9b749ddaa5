"""The windows of many keys at once, as a stream keeps them: FIFO windows, or FiBA trees."""
