"""The parts that the servers of `durasim explore` and `--monitor` share: access, files of a page, refusals."""
