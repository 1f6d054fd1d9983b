"""Checks of the source that no tool of the field makes."""
