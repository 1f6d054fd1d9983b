"""What attackers did, as programs: real processes that start together, at several of Python's switch intervals."""
