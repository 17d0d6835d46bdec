"""Models on disk: one checked file."""
