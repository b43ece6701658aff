"""Tables of the pages of results beside the published numbers: causes of differences, by workload and setting."""
