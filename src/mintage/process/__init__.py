"""What became of this process: its generation, forks, and restores from a snapshot."""
