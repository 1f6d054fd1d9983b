"""The operating system: files, the machine, and what a system lacks. No other room asks which system this is.

``files`` locks and creates files, ``machine`` identifies the machine and this process, and ``limits`` lists the
promises that are weaker on this system than on Linux.
"""
