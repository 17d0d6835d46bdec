"""The scoreboard: every method on every case, with published settings and the best ones in hindsight."""
