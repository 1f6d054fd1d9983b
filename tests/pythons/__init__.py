"""The quick suite on every supported CPython that is available."""
