"""The phases of a step: infer the new slice, sweep, moves, evict."""
