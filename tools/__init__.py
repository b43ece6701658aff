"""Tools for maintainers of durasim, started in the root folder of a checkout as `python -m tools.NAME`."""
