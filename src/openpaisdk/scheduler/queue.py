"""The waiting line: first come, first served inside a class, and walked without looking at what cannot start.

Asks of one user that are alike stand in one lane, lanes that need the same form a group. A walk sees
only the first of each lane, in queue order; who walks says whether it started, or whether lane, group or
virtual cluster can be left out for the rest of the walk. So a walk costs what differs, not what waits.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace

from .state import Ask, GroupKey, LaneKey, QueueKey


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
    """The lanes of one virtual cluster that need the same, sorted by their first ask."""

    __slots__ = ("lanes", "vc")

    def __init__(self, key: GroupKey) -> None:
        self.vc = key[0]
        self.lanes: list[tuple[QueueKey, Lane]] = []


class WaitingLine:
    """All asks of the classes that share a line."""

    def __init__(self) -> None:
        self._lanes: dict[LaneKey, Lane] = {}
        self._groups: dict[GroupKey, Group] = {}
        self._orders: dict[str, list[tuple[QueueKey, Group]]] = {}
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
        """Take in an ask, new or having left as the first of its lane; says whether it is first now."""
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
        group = self._groups.get(lane.key[0])
        if group is None:
            group = self._groups[lane.key[0]] = Group(lane.key[0])
        first = group.lanes[0][0] if group.lanes else None
        if old is not None:
            del group.lanes[bisect_left(group.lanes, old, key=_key_of_lane)]
        if new is not None:
            insort(group.lanes, (new, lane), key=_key_of_lane)
        now_first = group.lanes[0][0] if group.lanes else None
        if first == now_first:
            return
        order = self._orders.setdefault(group.vc, [])
        if first is not None:
            del order[bisect_left(order, first, key=_key_of_group)]
        if now_first is not None:
            insort(order, (now_first, group), key=_key_of_group)
        else:
            del self._groups[lane.key[0]]
            if not order:
                del self._orders[group.vc]

    def walk(self) -> Walk:
        """Begin to go along the line."""
        return Walk(self._orders)


class _Passage:
    """The groups of one virtual cluster in a walk: a list gone through once, and those that come again."""

    __slots__ = ("again", "at", "order")

    def __init__(self, order: list[tuple[QueueKey, Group]]) -> None:
        self.order = order[:]
        self.at = 0
        self.again: list[tuple[QueueKey, Group]] = []

    def first(self) -> tuple[QueueKey, Group] | None:
        fresh = self.order[self.at] if self.at < len(self.order) else None
        if self.again and (fresh is None or self.again[0][0] < fresh[0]):
            return self.again[0]
        return fresh

    def advance(self, key: QueueKey | None, group: Group) -> None:
        """Leave the first behind; with a key it comes again there."""
        if self.again and self.again[0][1] is group:
            heappop(self.again)
        else:
            self.at += 1
        if key is not None:
            heappush(self.again, (key, group))


class Walk:
    """One passage along the line; `current` is the first ask of a lane that has not been left out.

    Queue keys are unique, so that nothing but keys is ever compared.
    """

    def __init__(self, orders: dict[str, list[tuple[QueueKey, Group]]]) -> None:
        self._passages = {vc: _Passage(order) for vc, order in orders.items()}
        self._clusters = sorted((order[0][0], vc) for vc, order in orders.items())
        self._lanes: dict[Group, list[tuple[QueueKey, Lane]]] = {}
        self._group: Group | None = None

    def current(self) -> Ask | None:
        """The ask to be tried next, None at the end."""
        if not self._clusters:
            return None
        first = self._passages[self._clusters[0][1]].first()
        if first is None:
            return None
        self._group = group = first[1]
        lanes = self._lanes.get(group)
        if lanes is None:
            # A sorted list is a heap already.
            lanes = self._lanes[group] = group.lanes[:]
        return lanes[0][1].asks[0][1]

    def left(self) -> None:
        """The current ask has left the line; the next of its lane is due at its own place."""
        lanes = self._own_lanes()
        lane = lanes[0][1]
        head = lane.head()
        if head is None:
            heappop(lanes)
        else:
            heapreplace(lanes, (head.key, lane))
        self._go_on(lanes)

    def skip_lane(self) -> None:
        """Nothing alike of this user can start."""
        lanes = self._own_lanes()
        heappop(lanes)
        self._go_on(lanes)

    def skip_group(self) -> None:
        """Nothing that needs the same in this virtual cluster can start."""
        self._go_on([])

    def skip_virtual_cluster(self) -> None:
        """Nothing of this virtual cluster is to be tried any more."""
        heappop(self._clusters)

    def _own_lanes(self) -> list[tuple[QueueKey, Lane]]:
        assert self._group is not None
        return self._lanes[self._group]

    def _go_on(self, lanes: list[tuple[QueueKey, Lane]]) -> None:
        assert self._group is not None
        vc = self._clusters[0][1]
        passage = self._passages[vc]
        passage.advance(lanes[0][0] if lanes else None, self._group)
        following = passage.first()
        if following is None:
            heappop(self._clusters)
        else:
            heapreplace(self._clusters, (following[0], vc))


def _key_of_lane(entry: tuple[QueueKey, Lane]) -> QueueKey:
    return entry[0]


def _key_of_group(entry: tuple[QueueKey, Group]) -> QueueKey:
    return entry[0]
