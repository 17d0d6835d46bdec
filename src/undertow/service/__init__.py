"""A service over HTTP and WebSocket: many named streams, kept safe, with a live page. Needs ``undertow[service]``."""
