"""A tree of nodes: events are aggregated close to where they arise, and only partials travel.

Children take events and cut them into slices, merging nodes merge what their children report, and
the root turns it into rows. After "Disco: Efficient Distributed Window Aggregation" by Lawrence
Benson, Philipp M. Grulich, Steffen Zeuch, Volker Markl and Tilmann Rabl, whose in-network merging
is made durable, secure and elastic here.
"""
