"""Figures of the library and the service on more cores: the tables and charts of docs/how-to/scale.md."""
