"""The scoreboard: every method on every case, with published settings and tuned."""
