"""From facts and figures to decisions: the tree and one file per topic."""
