"""What the Python suites share: raw wire access, one face for sync and async, hosts' state."""
