"""Compiled programs, kept between processes: `program` stands where `jax.jit` would."""
