"""Test the uniqueness of IDs on a store of the user, as ``mintage prove`` does.

``crew`` starts processes that mint and counts their IDs, ``worker`` is the program of such a process, and ``proxy``
breaks connections. ``verbs`` tries the store's verbs, ``faults`` has the faults, and ``report`` says what was found.
"""
