"""What is measured on any backend: a module builds data through a store and gives cases to the rounds."""
