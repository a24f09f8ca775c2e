"""What survives: the journal in a database, and snapshots of policies in files."""
