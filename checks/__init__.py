"""Checks of the project's own text, which ``make check`` runs."""
