"""The state of this process: its forks, restores from a snapshot, and the text that names it."""
