"""The local page of `durasim explore`: a run on a time line, a power failure at a chosen place, and its recovery."""
