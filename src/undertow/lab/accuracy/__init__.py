"""Contests on equal terms: the figures of the paper, and the scoreboard. See the README in this folder."""
