"""Where the root writes what it has made, of the first query and of those that were added."""

from __future__ import annotations

from collections.abc import Sequence

from paneflow.engines.edge.outputs.contract import Output, RowsOutput
from paneflow.engines.edge.outputs.slices import SlicesOutput
from paneflow.engines.edge.running.ledger import Step


class Outlets:
    """All outputs of a root; none for other nodes."""

    def __init__(self, outputs: Sequence[RowsOutput | SlicesOutput]) -> None:
        self._outputs = outputs
        self._of: dict[str, list[Output]] = {}

    def write(self, step: Step) -> None:
        """Give a step to the outputs."""
        for output in self._outputs:
            if not isinstance(output, SlicesOutput):
                if step.rows.num_rows:
                    output.write(step.rows, step.number)
            elif step.slices is not None:
                output.write(step.slices, step.number)
        for query, rows in step.added.items():
            for own in self._of_query(query):
                own.write(rows, step.number)

    def close(self) -> None:
        """Nothing more will be written by this process."""
        for output in self._outputs:
            output.close()
        for of_query in self._of.values():
            for own in of_query:
                own.close()

    def _of_query(self, query: str) -> list[Output]:
        """The outputs of an added query."""
        if query not in self._of:
            known = [o for o in self._outputs if not isinstance(o, SlicesOutput)]
            self._of[query] = [output.of(query) for output in known]
        return self._of[query]
