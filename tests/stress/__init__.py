"""Stress programs: real processes that start together, at several switch intervals of Python."""
