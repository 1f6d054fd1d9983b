"""The fairness of the event loop: accepted connections, handshakes, limits, and the budget of a turn."""
