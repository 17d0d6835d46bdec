"""Many trackers of one shape, learned together: the members of `undertow.Fleet(..., model="tracker")`.

Their arrays are in groups, each one batch on the device (`undertow.tracker.group`). A tracker whose CP model gets more
slots for components moves to a group of its new shapes. Frames are decisions of the host, member by member; one whose
frame changes learns its recent slices anew alone, as a single tracker does, and is put back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.engine import batching
from undertow.engine.memory import check_members_memory, dense_bytes
from undertow.inputs.dense import Slice
from undertow.model import platform
from undertow.tracker import framing, trials
from undertow.tracker import novelty as novelties
from undertow.tracker import season as seasons
from undertow.tracker.ahead import Ahead, most_bytes
from undertow.tracker.batch_step import Memory
from undertow.tracker.clock import advanced
from undertow.tracker.fleet_output import FleetOutput, Part
from undertow.tracker.frame import Frame, stacked, usual_slices
from undertow.tracker.group import FREE, Group
from undertow.tracker.growing import grown
from undertow.tracker.recent import CONSTANT_FOR, recent_bytes
from undertow.tracker.season import Season
from undertow.tracker.state import Past, Tracking, one_at_a_time, start

CORE_WORK = 6
"""Temporary arrays of one step of the predictors other than CP, over the size of their states."""

Members = NDArray[np.int64]


class Trackers:
    """Trackers by the numbers of their members, `ids`, which ascend; members first in what is given and found.

    Args:
        shape: Of a slice.
        period: Slices of a season, 0 if each member is to find its own; None for members without seasons.
    """

    def __init__(self, shape: tuple[int, ...], period: int | None = None) -> None:
        self.shape = shape
        self.period = period
        self.blank = start(shape)
        self.ids = np.zeros(0, np.int64)
        self.pasts: dict[int, Past] = {}
        self.groups: list[Group] = []

    def join(self, ids: Members) -> None:
        """Add trackers that have seen nothing, where `make_room` made room for them."""
        left = ids
        for group in self.groups:
            if group.configs == self._base and len(left):
                positions = group.free()[: len(left)]
                group.put(positions, self.blank)
                group.members[positions], left = left[: len(positions)], left[len(positions) :]
        self.ids = np.concatenate([self.ids, ids])
        novelty = novelties.start(math.prod(self.shape))
        self.pasts |= {member: Past(novelty=novelty, season=self._new_season()) for member in ids.tolist()}

    def _new_season(self) -> Season | None:
        return None if self.period is None else seasons.start(math.prod(self.shape), self.period)

    def leave(self, positions: NDArray[np.intp]) -> None:
        """Remove trackers; their places in the groups are given to those who join."""
        ids, self.ids = self.ids[positions], np.delete(self.ids, positions)
        for group in self.groups:
            group.members[np.isin(group.members, ids)] = FREE
        for member in ids.tolist():
            del self.pasts[member]

    def take(self, position: int) -> Tracking:
        """A single tracker that goes on from where this member is."""
        return self._taken(int(self.ids[position]))

    def _taken(self, member: int) -> Tracking:
        group, position = self._home(member)
        past = self.pasts[member]
        core, models = group.take(position)
        # Without a season here, a single tracker begins to look for one.
        season = seasons.start(math.prod(self.shape)) if past.season is None else past.season.copied()
        return Tracking(**{**past.past(), "season": season}, shape=self.shape, core=core, cps=models)

    def put(self, member: int, state: Tracking) -> None:
        """Let the member go on from where this tracker is."""
        season, ahead = (None, Ahead()) if self.period is None else (state.season, state.ahead)
        self.pasts[member] = replace(Past(**state.past()), season=season or self._new_season(), ahead=ahead)
        group, position = self._home(member)
        if (configs := tuple(model.state.config for model in state.cps)) != group.configs:
            group.members[position] = FREE
            group, position = self._position_for(configs, state)
            group.members[position] = member
        group.put([position], state)

    def update(self, given: Slice, here: NDArray[np.bool_], times: Sequence[Any] | None = None) -> FleetOutput:
        """Learn from the next slices, in the order of the members; `here` says who has one, `times` when it was."""
        with one_at_a_time:
            return self._updated(given, here, times)

    def _updated(self, given: Slice, here: NDArray[np.bool_], times: Sequence[Any] | None) -> FleetOutput:
        ids = self.ids
        steps = self._pass_time(here, times)
        since, frozen = self._remember(given, here)
        learning = here & ~frozen
        frames = [self.pasts[member].frame for member in ids.tolist()]
        framed = np.array([frame is not None for frame in frames], np.bool_)
        common = stacked([frame or Frame() for frame in frames], len(self.shape))
        relative, mask, beyond = trials.usable(common, given)
        scale = np.reshape(np.asarray(common.scale), -1)
        self._widen(ids[learning & framed & mask.reshape(len(ids), -1).any(axis=1)])

        def learned(number: int) -> Part | None:
            group = self.groups[number]
            positions = np.flatnonzero(np.isin(group.members, ids[here]))
            if number > 0 and not positions.size:  # the first is always reported: others take its shapes
                return None
            order = np.searchsorted(ids, group.members[positions])

            def placed(by_member: NDArray[Any]) -> NDArray[Any]:
                whole = np.zeros((len(group), *by_member.shape[1:]), by_member.dtype)
                whole[positions] = by_member[order]
                return whole

            values, observed = (placed(part.reshape(len(ids), -1)) for part in (relative, mask))
            memory = None if self.period is None else self._memory(group, ids[learning])
            answer, found, said, memory = group.learn(
                values, observed, placed(scale), placed(framed), placed(learning), placed(steps), memory
            )
            if memory is not None:
                self._keep(group, memory)
            return Part(order, positions, answer, found, said)

        parts = map(learned, range(len(self.groups)))
        return FleetOutput(
            parts=tuple(part for part in parts if part is not None),
            frames=tuple(one or Frame() for one in frames),
            present=here,
            shape=self.shape,
            mask=mask,
            empty=np.logical_not(given.mask.reshape(len(ids), -1).any(axis=1)),
            beyond=beyond,
            given=given.values,
            repeating_since=since,
            filled=np.broadcast_to(given.filled, len(ids)),
            slices=np.array([self.pasts[one].seen for one in ids.tolist()], np.int64),
            unlike=np.array([novelties.newest(self.pasts[one].novelty) for one in ids.tolist()]),
            dtype=given.values.dtype,
        )

    def _pass_time(self, here: NDArray[np.bool_], times: Sequence[Any] | None) -> NDArray[np.float32]:
        """Usual steps from the slice before to this one, by member; after a gap levels are older and seasons go on."""
        steps, clocks = np.ones(len(self.ids), np.float32), {}
        for index in np.flatnonzero(here).tolist():
            member = int(self.ids[index])
            try:
                clocks[member], steps[index] = advanced(
                    self.pasts[member].clock, None if times is None else times[index]
                )
            except (TypeError, ValueError) as error:
                raise type(error)(f"member {member}: {error}") from None
        for index, (member, clock) in zip(np.flatnonzero(here).tolist(), clocks.items(), strict=True):
            season = self.pasts[member].season
            if season is not None and steps[index] != 1:
                season = seasons.skipped(season, round(float(steps[index])) - 1)
            self.pasts[member] = replace(self.pasts[member], clock=clock, season=season)
        for group in self.groups if (steps != 1).any() else ():
            own = np.ones(len(group), np.float32)
            taken = np.flatnonzero(group.members != FREE)
            own[taken] = steps[np.searchsorted(self.ids, group.members[taken])]
            group.age(own)
        return steps

    def _memory(self, group: Group, learning: Members) -> Memory:
        """Seasons and forecasts of those of a group who learn."""
        here = np.isin(group.members, learning)
        pasts = [self.pasts[one] if use else Past() for one, use in zip(group.members.tolist(), here, strict=True)]
        return [past.season for past in pasts], [past.ahead for past in pasts]

    def _keep(self, group: Group, memory: Memory) -> None:
        for member, season, ahead in zip(group.members.tolist(), *memory, strict=True):
            if season is not None:
                self.pasts[member] = replace(self.pasts[member], season=season, ahead=ahead)

    def _remember(self, given: Slice, here: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The slices of those who are present, and their frames; who gets another one learns anew.

        Returns:
            Since when each member repeats itself, −1 where it does not; who is not to learn because of that.
        """
        restarted, since, frozen = [], np.full(len(self.ids), -1), np.zeros(len(self.ids), np.bool_)
        for index in np.flatnonzero(here):
            member, mask, past = int(self.ids[index]), given.mask[index], self.pasts[int(self.ids[index])]
            own = Slice(given.values[index].copy(), mask.copy())  # alone: the others' need not stay in memory
            history, verdict = past.history.judge(own, unit=0.0, learned=past.used, window=CONSTANT_FOR)
            since[index], frozen[index] = verdict.since, verdict.frozen
            novelty = novelties.with_slice(past.novelty, own, verdict.frozen)
            past = replace(past, seen=past.seen + 1, history=history, novelty=novelty)
            if verdict.frozen and past.season is not None:
                past = replace(past, season=seasons.skipped(past.season, 1))
            if mask.any() and not verdict.frozen:
                light = replace(self.blank, frame=past.frame, recent=past.recent, seen=past.seen, used=past.used)
                best, review = framing.framed(replace(light, history=history, novelty=novelty), own)
                recent, used = best.recent, best.used
                if review is not None:
                    best = framing.tried([best], [review])[0]
                changed = review is not None and (review.again or best.frame != past.frame)
                if changed and past.frame is not None:
                    best = framing.the_better(self._taken(member), best)
                    past = past if past.season is None else replace(past, season=best.season, ahead=best.ahead)
                past = replace(past, frame=best.frame, recent=recent, used=used)
                if changed and (usual_slices(recent[:-1]) or self._home(member)[0].configs != self._base):
                    self.put(member, best)
                elif changed:
                    restarted.append(member)
            self.pasts[member] = past
        for group in self.groups:
            positions = np.flatnonzero(np.isin(group.members, restarted))
            if positions.size:
                group.put(positions, self.blank)  # nothing but zeros so far
        return since, frozen

    def _widen(self, learning: Members) -> None:
        """More slots for the CP models that have none free."""
        for group in list(self.groups):
            for member in group.members[group.full(np.flatnonzero(np.isin(group.members, learning)))].tolist():
                state = self._taken(member)
                models = grown(state.cps, state.core)
                if any(new is not old for new, old in zip(models, state.cps, strict=True)):
                    self.put(member, replace(state, cps=models))

    @property
    def _base(self) -> Any:
        return tuple(model.state.config for model in self.blank.cps)

    def _home(self, member: int) -> tuple[Group, int]:
        for group in self.groups:
            found = np.flatnonzero(group.members == member)
            if found.size:
                return group, int(found[0])
        raise KeyError(f"member {member} is not in the fleet: it has left, or never joined.")

    def _position_for(self, configs: Any, state: Tracking) -> tuple[Group, int]:
        """A free position in a group of these shapes."""
        for group in self.groups:
            if group.configs == configs and group.free().size:
                return group, int(group.free()[0])
        if configs == self._base:
            self.make_room(1)
            return self._position_for(configs, state)
        size = max(len(self.groups[0]) // batching.BATCH_RATIO, 1)
        self._check_memory(size, state)
        self.groups.append(Group.of(state, size))
        return self.groups[-1], 0

    def make_room(self, needed: int) -> None:
        """Free positions in groups of new trackers: one is doubled up to the usual size, then there are more."""
        largest = platform.current().chunk_members
        base = [number for number, group in enumerate(self.groups) if group.configs == self._base]
        lacking = needed - sum(self.groups[number].free().size for number in base)
        if base and lacking <= 0:
            return
        only = self.groups[base[0]] if len(base) == 1 else None
        if only is not None and len(only) < largest:
            self._check_memory(2 * len(only), self.blank)
            self.groups[base[0]] = only.doubled(self.blank)
            self.make_room(needed)
            return
        size = len(self.groups[base[0]]) if base else min(1 << max(needed - 1, 0).bit_length(), largest)
        count = max(-(-lacking // size), 1)
        self._check_memory(size * count, self.blank)
        self.groups += [Group.of(self.blank, size) for _ in range(count)]

    def _check_memory(self, members: int, state: Tracking) -> None:
        """Refuse further members that do not fit into the memory now free."""
        core = sum(leaf.nbytes for leaf in jax.tree.leaves(state.core))
        held = core + sum(leaf.nbytes for model in state.cps for leaf in jax.tree.leaves(model.state.core))
        held += recent_bytes(self.shape) + (0 if state.novelty is None else state.novelty.nbytes)
        if self.period is not None:
            held += seasons.most_bytes(math.prod(self.shape), self.period) + most_bytes(math.prod(self.shape))
        work = CORE_WORK * core + sum(dense_bytes(model.state.config, self.shape)[1] for model in state.cps)
        what, advice = f"trackers of shape {self.shape}", "use fewer members, or smaller slices"
        check_members_memory(members, what, advice, held, work, min(members, platform.current().chunk_members))
