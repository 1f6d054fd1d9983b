"""Test the uniqueness of IDs on a store of the user, as ``mintage prove`` does.

``crew`` starts processes that mint and counts their IDs, ``worker`` is the program of such a process, and ``proxy``
breaks connections. ``verbs`` tries the store's verbs, ``faults`` has the faults, and ``report`` says what was found.
"""

from typing import Final

FAULTS: Final = {
    "verbs": "many clients use all verbs",
    "holders": "two holders of one number",
    "crowd": "all mint first together",
    "kill": "kill -9; others take over",
    "stop": "SIGSTOP past the window",
    "fork": "forks of processes that mint",
    "clock": "clocks step, up to a minute",
    "cut": "connections cut in an answer",
}
"""The faults, in the order in which they are caused, and what a table calls them."""
