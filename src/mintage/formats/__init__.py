"""The formats of IDs: how mintage lists, parses, stores and inspects them, and compares them by time.

A *format* (``catalogue``) is what the core declares of an ID's bits and texts; a scheme with layouts or versions has
several. A *kind* (``kinds``) is how users hold the IDs of a scheme: the name, a Python class, texts, and generators.
"""
