"""The store in a file of SQLite, which notices that an older copy has replaced the file."""
