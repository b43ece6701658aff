"""Templates of workloads and designs of the user, and the module that fills them."""
