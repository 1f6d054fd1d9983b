"""The quick suite on every supported CPython that can be had."""
