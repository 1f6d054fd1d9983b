"""What other packages need to know mintage's IDs: a thin module a framework, imported by name.

``import mintage`` imports none of them, and none of them is needed for anything else. Where its framework is not
installed, a module says on import what installs it.
"""
