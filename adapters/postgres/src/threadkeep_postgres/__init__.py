"""The PostgreSQL backend of threadkeep."""
