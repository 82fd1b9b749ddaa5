"""Windows of a number of events: counts go up, and the events at their bounds are asked for."""
