"""Two programs are the same only if everything that the compiler sees is."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from undertow.config import make_config
from undertow.programs import identity, runtime


def described(static=None, tree=None, name="function"):
    leaves, structure = jax.tree.flatten({"x": jnp.ones((2, 3))} if tree is None else tree)
    return identity.described(name, static or {}, structure, leaves, runtime.place(leaves))


def test_the_same_has_the_same_name():
    assert described() == described()
    assert described({"settings": make_config(max_rank=4).settings(), "work": jnp.sin}) == described(
        {"settings": make_config(max_rank=4).settings(), "work": jnp.sin}
    )


def test_every_difference_shows():
    found = [
        described(),
        described(name="other"),
        described({"times": 2}),
        described({"times": 2.0}),
        described({"work": jnp.sin}),
        described({"work": jnp.cos}),
        described(tree={"y": jnp.ones((2, 3))}),
        described(tree={"x": jnp.ones((3, 2))}),
        described(tree={"x": jnp.ones((2, 3), jnp.int32)}),
        described(tree={"x": jax.device_put(1.0)}),
        described(tree={"x": jnp.ones(())}),
        described(tree=on_device(max_rank=4)),
        described(tree=on_device(max_rank=4, level=True)),
    ]
    with jax.default_matmul_precision("highest"):
        found.append(described())
    with jax.enable_x64(True):
        found.append(described())
    assert len(set(found)) == len(found)


def on_device(*given, **settings):
    return jax.device_put(make_config(*given, **settings).settings())


@pytest.mark.parametrize(("name", "value"), [("_source", "other"), ("_host", {"jax": "9.9"})])
def test_another_version_or_processor_is_another_program(monkeypatch, name, value):
    before = described()
    monkeypatch.setattr(identity, name, lambda: value)
    assert described() not in (None, before)


def test_another_device_is_another_program():
    place = runtime.place([jnp.ones(3)])
    client = SimpleNamespace(platform="gpu", platform_version="cuda 12")
    other = runtime.Place(SimpleNamespace(client=client, device_kind="H200", id=0), False)
    structure = jax.tree.structure(1)
    assert len({identity.described("f", {}, structure, [jnp.ones(3)], one) for one in (place, other)}) == 2


def test_what_has_no_name_is_not_kept():
    assert described({"work": object()}) is None


def test_without_source_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(identity, "_source", lambda: None)
    assert described() is None


def test_environment_of_the_compiler_counts(monkeypatch):
    before = described()
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=nowhere")
    assert described() != before
