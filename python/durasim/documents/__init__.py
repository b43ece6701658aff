"""Documents of results, and what describes them."""
