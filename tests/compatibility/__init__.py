"""The last tagged version and this one on one store: ``make compatibility``."""
