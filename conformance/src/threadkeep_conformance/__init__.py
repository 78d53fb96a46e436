"""The threadkeep contract in executable form: the suite every adapter must pass."""
