"""A simulator of hundreds of processes that share one store, in virtual time, from a seed.

Generators, sequences, keepers and the rules of leases are the real ones. Clocks and the failures of the store are
simulated: all are drawn from the seed, so a failure can be replayed. The one invariant is that no ID is minted twice.
"""

from tests.simulator.outcomes import Duplicate, Outcome
from tests.simulator.world import World, run_world, simulate

__all__ = ["Duplicate", "Outcome", "World", "run_world", "simulate"]
