"""How the pages of the lab look."""
