"""Tables of IDs: find what is wrong with them, and fill them. Libraries, which the command line calls."""
