"""Lloyd's algorithm on blocks of rows: spaces, passes, restarts, seeding."""
