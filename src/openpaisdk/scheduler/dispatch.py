"""Who starts next: shares of virtual clusters, priorities, idle capacity, preemption, no starvation.

The rules, in the order in which they are applied on every change:

1. **Own share.** prod before test, first come first served inside a class: a job starts if its virtual
   cluster's prod and test jobs together stay within the guaranteed share. If there is no room for it, oppo
   jobs of anyone are evicted, the last submitted first, and after them jobs of virtual clusters that hold
   more than their share (rule 2), again the last submitted first. Room that is becoming free this way is
   booked for the job.
2. **Borrowing.** prod and test jobs beyond their share use what is idle. They evict nobody and may be
   evicted by rule 1.
3. **oppo** jobs use what is idle, of any virtual cluster.

Nobody else is ever evicted: prod goes before test but does not kill it. Who is evicted is retried for free
and keeps its place in the queue.

A job that does not fit is overtaken by later ones that do. But the first in line that was overtaken
OVERTAKEN_AT_MOST times, or once and then waited PATIENCE seconds, gets room booked: from then on nobody
takes what it needs, except prod and test jobs inside the share of another virtual cluster. So it starts
when what runs now has ended.

A user's quota is given out in the same order: where it holds a job back, later jobs of that user that need
more of the same thing wait too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .placement import Layout, Nodes, Room, layout_needs, place, without
from .queue import WaitingLine
from .shares import JOBS, Shares, ShareState
from .state import NOTHING, Ask, Job, Task, Vector, no_less, plus

OVERTAKEN_AT_MOST = 16
PATIENCE = 600.0
# How much is tried in vain before a walk leaves a virtual cluster alone: some 30 different kinds of jobs.
EFFORT = 96
_COST_OF_TRYING = 3

OWN, BORROW, IDLE = range(3)

# Starts the ask there; False where that failed after all (no port left).
Start = Callable[[Ask, Layout], bool]
Evict = Callable[[list["Victim"], Ask], None]


class Victim(NamedTuple):
    """What can only be evicted as a whole: the gang of a job, or one task of a job without gang."""

    job: Job
    tasks: list[Task]


class Booking(NamedTuple):
    """Room kept for an ask; `firm` where somebody was evicted for it: then it is kept from everybody."""

    ask: Ask
    needs: dict[str, Vector]
    firm: bool


class Refusals:
    """What did not fit in this walk: whatever needs no less of everything is not tried any more."""

    __slots__ = ("cost", "parts", "totals")

    def __init__(self) -> None:
        self.cost = 0
        self.parts: list[tuple[Vector, int]] = []
        self.totals: list[Vector] = []

    def add(self, ask: Ask, *, short: bool) -> None:
        """Remember an ask that had no room, or whose virtual cluster's share was too `short` for it."""
        self.cost += _COST_OF_TRYING
        if short:
            self.totals = [ask.total, *(other for other in self.totals if not no_less(other, ask.total))]
        elif len(ask.parts) == 1:
            _, needs, times = ask.parts[0]
            larger = [part for part in self.parts if part[1] >= times and no_less(part[0], needs)]
            self.parts = [(needs, times), *(part for part in self.parts if part not in larger)]

    def cover(self, ask: Ask) -> bool:
        """Whether the ask cannot fit either."""
        self.cost += 1
        total = ask.total
        for least in self.totals:
            if no_less(total, least):
                return True
        for least, times in self.parts:
            for _, needs, count in ask.parts:
                if count >= times and no_less(needs, least):
                    return True
        return False


class Dispatcher:
    """Walks the waiting lines and starts what may start."""

    def __init__(self, nodes: Nodes, shares: Shares, *, start: Start, evict: Evict) -> None:
        self.nodes = nodes
        self.shares = shares
        self.regular = WaitingLine()
        self.oppo = WaitingLine()
        self.bookings: list[Booking] = []
        self._booked: list[Ask] = []
        self._kept: set[tuple[int, str]] = set()
        self.dying: set[Task] = set()
        self._start = start
        self._evict = evict
        self._tops: dict[tuple[int, str], Ask] = {}
        self._held_users: dict[str, set[int]] = {}
        self._stale = True
        self._rooms: dict[tuple[int, str], Room] = {}

    def line(self, ask: Ask) -> WaitingLine:
        return self.oppo if ask.job.oppo else self.regular

    def waiting(self) -> list[Ask]:
        """All that wait, in the order in which they are looked at."""
        return sorted([*self.regular.asks(), *self.oppo.asks(), *self._booked], key=lambda ask: ask.key)

    def changed(self) -> None:
        """Something was given back or the limits are others: everybody has to be looked at again."""
        self._stale = True
        self._rooms.clear()

    def enqueue(self, ask: Ask, now: float) -> None:
        """Take in an ask. Where nothing else changed since the last walk, only this one can start now."""
        first = self.line(ask).add(ask)
        if self._stale or not first:
            return
        if any(not booking.firm and booking.ask.key > ask.key for booking in self.bookings):
            self._stale = True
        else:
            self._try_alone(ask, now)

    def withdraw(self, ask: Ask) -> None:
        """The ask is no longer wanted."""
        self.line(ask).discard(ask)
        if ask in self._booked:
            self._booked.remove(ask)
            self._stale = True
        elif ask.job.info.user in self._held_users:
            self._stale = True

    def settle(self, now: float) -> None:
        """Start all that may start, if anything changed since the last time."""
        if not self._stale:
            return
        self._stale = False
        self.shares.clear_bookings(booking.ask for booking in self.bookings)
        for ask in self._booked:
            self.line(ask).add(ask)
        self.bookings.clear()
        self._booked.clear()
        self._kept.clear()
        self._rooms.clear()
        self._tops.clear()
        self._held_users.clear()
        if len(self.regular):
            self._walk(self.regular, OWN, now)
            if not all(cluster.whole for cluster in self.shares.clusters.values()):
                self._walk(self.regular, BORROW, now)
        if len(self.oppo):
            self._walk(self.oppo, IDLE, now)

    def _try_alone(self, ask: Ask, now: float) -> None:
        if self.shares.quotas and self._held_by_quota(ask):
            return
        for phase in (IDLE,) if ask.job.oppo else (OWN, BORROW):
            if self._try(ask, phase, now):
                return
            self._note_blocked(ask, phase, now)

    def _walk(self, line: WaitingLine, phase: int, now: float) -> None:
        walk = line.walk()
        refusals: dict[str, Refusals] = {}
        while (ask := walk.current()) is not None:
            vc = ask.job.info.vc
            refused = refusals.get(vc)
            if refused is None:
                refused = refusals[vc] = Refusals()
                if phase == BORROW and self.shares.cluster(vc).whole:
                    walk.skip_virtual_cluster()
                    continue
            if refused.cost > EFFORT:
                walk.skip_virtual_cluster()
            elif refused.cover(ask):
                walk.skip_group()
            elif self.shares.quotas and self._held_by_quota(ask):
                walk.skip_lane()
            elif self._try(ask, phase, now):
                walk.left()
            else:
                self._note_blocked(ask, phase, now)
                refused.add(ask, short=self._share_is_short(ask, phase))
                walk.skip_group()

    def _held_by_quota(self, ask: Ask) -> set[int]:
        held = self._held_users.get(ask.job.info.user)
        lacking = set(self.shares.lacking(ask))
        if held:
            lacking |= {d for d in held if (ask.job.live == 0 if d == JOBS else ask.total[d])}
        if lacking:
            self._held_users.setdefault(ask.job.info.user, set()).update(lacking)
        return lacking

    def _share_is_short(self, ask: Ask, phase: int) -> bool:
        return phase == OWN and not self.shares.cluster(ask.job.info.vc).has_room(ask.total)

    def _try(self, ask: Ask, phase: int, now: float) -> bool:
        """Start the ask, or book room for it where the rules say so; False if it just goes on waiting."""
        short = self._share_is_short(ask, phase)
        layout = None if short else place(self.room_for(ask, phase), ask.parts)
        if layout is None and phase == OWN and not short and self._reclaim(ask):
            return True
        spot = _spot(ask, phase)
        # Room is kept for one at a time; else it would pile up for many and lie idle.
        if layout is None and spot not in self._kept and self._starves(ask, now):
            if phase == OWN:
                if not self.shares.cluster(ask.job.info.vc).could_hold(ask.total):
                    return False
                layout = place(self.room_for(ask, BORROW), ask.parts)
            if layout is None:
                if self._book(ask, place(self.nodes.empty_room(), ask.parts), firm=False):
                    self._kept.add(spot)
                    return True
                return False
        if layout is None or not self._start(ask, layout):
            return False
        self._rooms.clear()
        self.line(ask).discard(ask)
        self._note_started(ask, phase)
        return True

    def room_for(self, ask: Ask, phase: int) -> Room:
        """What an ask may take: all that is free, less the room kept for others."""
        spot = _spot(ask, phase)
        room = self._rooms.get(spot)
        if room is None:
            room = self.nodes.room()
            for booking in self.bookings:
                foreign = phase == OWN and booking.ask.job.info.vc != ask.job.info.vc
                if booking.firm or not foreign:
                    room = without(room, booking.needs)
            self._rooms[spot] = room
        return room

    def _book(self, ask: Ask, layout: Layout | None, *, firm: bool) -> bool:
        """Keep room for an ask; it leaves the line until the next walk: those behind it have their turn."""
        if layout is None:
            return False
        self.bookings.append(Booking(ask, layout_needs(layout, ask.job.needs), firm))
        self._booked.append(ask)
        self.line(ask).discard(ask)
        self.shares.book(ask)
        self._rooms.clear()
        return True

    def _starves(self, ask: Ask, now: float) -> bool:
        job = ask.job
        if job.overtaken >= OVERTAKEN_AT_MOST:
            return True
        return bool(job.overtaken) and job.blocked_since is not None and now - job.blocked_since >= PATIENCE

    def _note_blocked(self, ask: Ask, phase: int, now: float) -> None:
        if phase == OWN and not self.shares.cluster(ask.job.info.vc).could_hold(ask.total):
            return
        spot = _spot(ask, phase)
        top = self._tops.get(spot)
        if top is None or not top.waiting or ask.key < top.key:
            self._tops[spot] = ask
            if ask.job.blocked_since is None:
                ask.job.blocked_since = now

    def _note_started(self, ask: Ask, phase: int) -> None:
        ask.job.overtaken, ask.job.blocked_since = 0, None
        for (top_phase, vc), top in self._tops.items():
            same_line = top_phase == phase and (phase != OWN or vc == ask.job.info.vc) and top.key < ask.key
            if top.waiting and (top_phase < phase or same_line) and top.job is not ask.job:
                top.job.overtaken += 1
                if top.job.overtaken == OVERTAKEN_AT_MOST:
                    self._stale = True

    def _reclaim(self, ask: Ask) -> bool:
        """Book room for an ask inside its share out of what is killed or evicted; False if that fails."""
        room = _with(self.room_for(ask, OWN), self.dying)
        layout = place(room, ask.parts) if self.dying else None
        if layout is None:
            victims = self._victims(ask)
            if not victims or place(_with(room, _tasks(victims)), ask.parts) is None:
                return False
            chosen: list[Victim] = []
            trial = room
            for victim in victims:
                chosen.append(victim)
                trial = _with(trial, victim.tasks)
                if place(trial, ask.parts) is not None:
                    break
            for victim in reversed(chosen[:-1]):
                spared = [other for other in chosen if other is not victim]
                if place(_with(room, _tasks(spared)), ask.parts) is not None:
                    chosen = spared
            layout = place(_with(room, _tasks(chosen)), ask.parts)
            self._evict(chosen, ask)
        return self._book(ask, layout, firm=True)

    def _victims(self, ask: Ask) -> list[Victim]:
        """Who may be evicted for an ask inside its share, those to go first in front."""
        oppo: list[Victim] = []
        over: list[Victim] = []
        for cluster in self.shares.clusters.values():
            if cluster.lent != NOTHING:
                oppo += [v for job in cluster.jobs.values() if job.oppo for v in _units(job)]
            if cluster.name != ask.job.info.vc and cluster.over(cluster.used):
                over += _beyond_share(cluster)
        return sorted(oppo, key=_place_in_line, reverse=True) + sorted(over, key=_place_in_line, reverse=True)


def _spot(ask: Ask, phase: int) -> tuple[int, str]:
    """Those who compete: inside a share those of the same virtual cluster, beyond it all."""
    return phase, ask.job.info.vc if phase == OWN else ""


def _beyond_share(cluster: ShareState) -> list[Victim]:
    units = [v for job in cluster.jobs.values() if not job.oppo for v in _units(job)]
    used = cluster.used
    for task in (task for job in cluster.jobs.values() if not job.oppo for task in job.tasks.values()):
        if task.live and task.kill_code is not None:
            used = plus(used, task.needs, -1)
    found = []
    for unit in sorted(units, key=_place_in_line, reverse=True):
        over = cluster.over(used)
        if not over:
            break
        if any(task.needs[d] for task in unit.tasks for d in over):
            found.append(unit)
            for task in unit.tasks:
                used = plus(used, task.needs, -1)
    return found


def _units(job: Job) -> list[Victim]:
    tasks = [task for task in job.tasks.values() if task.live and task.kill_code is None]
    if job.info.gang:
        return [Victim(job, tasks)] if tasks else []
    return [Victim(job, [task]) for task in tasks]


def _place_in_line(victim: Victim) -> tuple[int, int, int, int]:
    first = victim.tasks[0]
    return victim.job.rank, victim.job.info.number, first.role_index, first.index


def _tasks(victims: Iterable[Victim]) -> list[Task]:
    return [task for victim in victims for task in victim.tasks]


def _with(room: Room, tasks: Iterable[Task]) -> Room:
    freed: dict[str, Vector] = {}
    for task in tasks:
        if task.placement is not None:
            node = task.placement.node
            freed[node] = plus(freed.get(node, NOTHING), task.needs, -1)
    return without(room, freed) if freed else room
