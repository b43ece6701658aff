"""The store of results."""
