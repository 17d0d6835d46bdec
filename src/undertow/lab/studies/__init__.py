"""Studies: one question each, answered by `undertow bench NAME`."""
