"""Real faults under real load: worker processes mint while their store, their clock or they themselves fail.

``python -m tests.integration.faults --record`` runs all scenarios and renders the table of the documentation.
"""

from tests.integration.faults.scenarios import SCENARIOS, Row, Scenario

__all__ = ["SCENARIOS", "Row", "Scenario"]
