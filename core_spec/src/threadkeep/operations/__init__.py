"""The operations of a store, a file per area; :class:`threadkeep.Store` is their sum."""
