"""Self-contained HTML: the page image beside what was read, safe whatever the page says."""
