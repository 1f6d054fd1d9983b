"""Adapters of mintage's IDs to other packages: one module a framework, which you import by its name.

``import mintage`` imports none of them. If the framework is not installed, the import of its module raises an error
that names the package to install.
"""
