"""Guest programs: their sources, compilers, suites and sizes."""
