"""The wheels of a release: built for each CPython and platform, checked, and tested as they are installed."""
