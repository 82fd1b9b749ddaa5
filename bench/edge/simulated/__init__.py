"""Trees that are larger than this machine, simulated event by event.

Clocks, links and the time that work takes are simulated. What nodes say is either what the real
machines say, or what was measured of them before.
"""
