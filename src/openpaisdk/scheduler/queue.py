"""The waiting line: first come, first served inside a class, and walked without looking at what cannot start.

Asks that are alike stand in one lane, lanes of one user in one virtual cluster form a group. A walk sees
only the first of each lane, in queue order; who walks says whether it started, or whether lane, group or
virtual cluster can be left out for the rest of the walk. So a walk costs what differs, not what waits.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace

from .state import Ask, QueueKey

LaneKey = tuple[object, ...]


class Lane:
    """Asks that are alike, by queue key."""

    __slots__ = ("asks", "key")

    def __init__(self, key: LaneKey) -> None:
        self.key = key
        self.asks: list[tuple[QueueKey, Ask]] = []

    def head(self) -> Ask | None:
        """The first that still waits."""
        while self.asks:
            ask = self.asks[0][1]
            if ask.waiting:
                return ask
            heappop(self.asks)
        return None


class Group:
    """The lanes of one user in one virtual cluster, sorted by their first ask."""

    __slots__ = ("lanes", "user", "vc")

    def __init__(self, vc: str, user: str) -> None:
        self.vc = vc
        self.user = user
        self.lanes: list[tuple[QueueKey, Lane]] = []


class WaitingLine:
    """All asks of the classes that share a line."""

    def __init__(self) -> None:
        self._lanes: dict[LaneKey, Lane] = {}
        self._groups: dict[tuple[str, str], Group] = {}
        self._order: list[tuple[QueueKey, Group]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def asks(self) -> Iterator[Ask]:
        """All that wait, in no particular order."""
        for lane in self._lanes.values():
            for _, ask in lane.asks:
                if ask.waiting:
                    yield ask

    def add(self, ask: Ask) -> bool:
        """Take in an ask, which must be a new one; says whether it is the first of its lane."""
        ask.waiting = True
        self._count += 1
        lane = self._lanes.get(ask.lane)
        if lane is None:
            lane = self._lanes[ask.lane] = Lane(ask.lane)
        before = lane.head()
        heappush(lane.asks, (ask.key, ask))
        if before is not None and before.key < ask.key:
            return False
        self._reorder(lane, before.key if before else None, ask.key)
        return True

    def discard(self, ask: Ask) -> None:
        """Take out an ask that started or is no longer wanted."""
        if not ask.waiting:
            return
        self._count -= 1
        lane = self._lanes[ask.lane]
        was_head = lane.head() is ask
        ask.waiting = False
        if was_head:
            after = lane.head()
            self._reorder(lane, ask.key, after.key if after else None)
            if after is None:
                del self._lanes[ask.lane]

    def _reorder(self, lane: Lane, old: QueueKey | None, new: QueueKey | None) -> None:
        vc, user = str(lane.key[0]), str(lane.key[1])
        group = self._groups.get((vc, user))
        if group is None:
            group = self._groups[(vc, user)] = Group(vc, user)
        first = group.lanes[0][0] if group.lanes else None
        if old is not None:
            del group.lanes[bisect_left(group.lanes, old, key=_key_of_lane)]
        if new is not None:
            insort(group.lanes, (new, lane), key=_key_of_lane)
        now_first = group.lanes[0][0] if group.lanes else None
        if first == now_first:
            return
        if first is not None:
            del self._order[bisect_left(self._order, first, key=_key_of_group)]
        if now_first is not None:
            insort(self._order, (now_first, group), key=_key_of_group)
        else:
            del self._groups[(vc, user)]

    def walk(self) -> Walk:
        """Begin to go along the line."""
        return Walk(self._order)


class Walk:
    """One passage along the line; `current` is the first ask of a lane that has not been left out."""

    def __init__(self, order: list[tuple[QueueKey, Group]]) -> None:
        # A sorted list is a heap already; queue keys are unique, so that nothing but keys is ever compared.
        self._groups = order[:]
        self._lanes: dict[Group, list[tuple[QueueKey, Lane]]] = {}
        self._left_out: set[str] = set()

    def current(self) -> Ask | None:
        """The ask to be tried next, None at the end."""
        while self._groups:
            group = self._groups[0][1]
            if group.vc not in self._left_out:
                lanes = self._lanes.get(group)
                if lanes is None:
                    lanes = self._lanes[group] = group.lanes[:]
                return lanes[0][1].asks[0][1]
            heappop(self._groups)
        return None

    def started(self) -> None:
        """The current ask started and has left the line; the next of its lane is due at its own place."""
        lanes = self._lanes[self._groups[0][1]]
        lane = lanes[0][1]
        head = lane.head()
        if head is None:
            heappop(lanes)
        else:
            heapreplace(lanes, (head.key, lane))
        self._resettle(lanes)

    def skip_lane(self) -> None:
        """Nothing of the current lane can start."""
        lanes = self._lanes[self._groups[0][1]]
        heappop(lanes)
        self._resettle(lanes)

    def skip_group(self) -> None:
        """Nothing of this user in this virtual cluster can start."""
        heappop(self._groups)

    def skip_virtual_cluster(self, vc: str) -> None:
        """Nothing of this virtual cluster is to be tried any more."""
        self._left_out.add(vc)

    def _resettle(self, lanes: list[tuple[QueueKey, Lane]]) -> None:
        if lanes:
            heapreplace(self._groups, (lanes[0][0], self._groups[0][1]))
        else:
            heappop(self._groups)


def _key_of_lane(entry: tuple[QueueKey, Lane]) -> QueueKey:
    return entry[0]


def _key_of_group(entry: tuple[QueueKey, Group]) -> QueueKey:
    return entry[0]
