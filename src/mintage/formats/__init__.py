"""The formats of IDs: how mintage lists, parses, stores and inspects them, and compares them by time.

A *scheme* (``rows``) is what a user names, such as ``snowflake``. A *format* (``catalogue``) is what the core declares
of its bits and texts; a scheme with layouts has several. A *kind* (``kinds``) is a scheme as adapters see it: a Python
class with its texts. A *shape* (``bits``) is a kind as columns see it: the places of its fields.
"""
