"""The code on other systems and processors than this machine's: ``make platforms``."""
