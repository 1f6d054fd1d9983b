"""The random part of pauses, so that processes which wait for each other do not return at the same time.

It has a source of its own. A program may seed the functions of :mod:`random`, and Hypothesis warns of a thread that
uses them while it draws.
"""

from __future__ import annotations

from random import SystemRandom

uniform = SystemRandom().uniform
"""A random float between two others."""
