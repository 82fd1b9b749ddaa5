"""How a query is answered, and why: operators, slicing, merging."""

from paneflow.planning.plan import Plan, plan

__all__ = ["Plan", "plan"]
