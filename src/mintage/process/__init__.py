"""The state of this process: its generation, its forks, and restores from a snapshot."""
