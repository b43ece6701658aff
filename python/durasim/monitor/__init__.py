"""The local page of `--monitor`: the points of a running study or campaign, and the time left."""
