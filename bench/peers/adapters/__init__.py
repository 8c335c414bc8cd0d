"""One file a peer: how it is set up, works, takes runs, and tells that they have ended."""
