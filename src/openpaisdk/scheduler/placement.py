"""Where tasks go: what nodes have left, which takes which task, GPUs one by one, ports never twice."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from openpaisdk.protocol import allot_port

from .model import PORT_RANGE, Node, Placement, Request
from .state import GPU, NOTHING, Part, Vector, plus

PortInUse = Callable[[int], bool] | Container[int]
# Which role goes to which node how often, in the order in which task indexes are given out.
Layout = list[tuple[int, str, int]]
# Name of a node and what can still be taken from it.
Room = list[tuple[str, Vector]]


class NodeState:
    """A node and what of it is given out; one that left the cluster stays until nothing runs on it."""

    __slots__ = ("capacity", "gpus", "held_gpus", "held_ports", "name", "used")

    def __init__(self, name: str) -> None:
        self.name = name
        self.used: Vector = NOTHING
        self.held_gpus: set[int] = set()
        self.held_ports: set[int] = set()
        self.gpus: tuple[int, ...] = ()
        self.capacity: Vector = NOTHING

    def become(self, node: Node | None) -> None:
        """The node has this to give from now on, None nothing; what is given out stays so."""
        if node is None:
            self.gpus, self.capacity = (), NOTHING
            return
        self.gpus = tuple(sorted(node.gpus))
        self.capacity = (node.cpu, node.memory_mb, len(self.gpus), PORT_RANGE[1] - PORT_RANGE[0])

    def free(self) -> Vector:
        """May be negative where the node shrank."""
        return plus(self.capacity, self.used, -1)


class Nodes:
    """All nodes and all that is given out of them."""

    def __init__(self, nodes: Iterable[Node], port_in_use: PortInUse = ()) -> None:
        self._port_in_use = port_in_use if callable(port_in_use) else port_in_use.__contains__
        self.states: dict[str, NodeState] = {}
        self.total: Vector = NOTHING
        self.change(nodes)

    def change(self, nodes: Iterable[Node]) -> None:
        """The nodes are these now."""
        wanted = {node.name: node for node in nodes}
        for name in [name for name in self.states if name not in wanted]:
            self.states[name].become(None)
            self._forget_if_empty(name)
        for name, node in wanted.items():
            self.states.setdefault(name, NodeState(name)).become(node)
        self.total = NOTHING
        for state in self.states.values():
            self.total = plus(self.total, state.capacity)

    def _forget_if_empty(self, name: str) -> None:
        state = self.states[name]
        if state.used == NOTHING and state.capacity == NOTHING:
            del self.states[name]

    def room(self) -> Room:
        """What every node has left."""
        return [(name, state.free()) for name, state in self.states.items()]

    def empty_room(self) -> Room:
        """What every node would have left if nothing ran."""
        return [(name, state.capacity) for name, state in self.states.items()]

    def take(self, node: str, needs: Vector, request: Request, uid: str) -> Placement | None:
        """Give out what a task needs on a node that has room for it; None where no port is left."""
        state = self.states[node]
        ports = self._ports(state, request, uid)
        if ports is None:
            return None
        gpus = tuple([gpu for gpu in state.gpus if gpu not in state.held_gpus][: needs[GPU]])
        placement = Placement(node, gpus, ports)
        self.hold(placement, needs)
        return placement

    def hold(self, placement: Placement, needs: Vector) -> None:
        """Note what was given out, by `take` or before a restart."""
        state = self.states.setdefault(placement.node, NodeState(placement.node))
        state.used = plus(state.used, needs)
        state.held_gpus.update(placement.gpus)
        for ports in placement.ports.values():
            state.held_ports.update(ports)

    def release(self, placement: Placement, needs: Vector) -> None:
        """Take back what a task held."""
        state = self.states[placement.node]
        state.used = plus(state.used, needs, -1)
        state.held_gpus.difference_update(placement.gpus)
        for ports in placement.ports.values():
            state.held_ports.difference_update(ports)
        self._forget_if_empty(placement.node)

    def _ports(self, state: NodeState, request: Request, uid: str) -> dict[str, tuple[int, ...]] | None:
        taken: set[int] = set()
        found: dict[str, tuple[int, ...]] = {}
        for label, count in request.all_ports().items():
            chosen = []
            for index in range(count):
                port = self._free_port(allot_port(uid, label, index, *PORT_RANGE), state.held_ports, taken)
                if port is None:
                    return None
                chosen.append(port)
                taken.add(port)
            found[label] = tuple(chosen)
        return found

    def _free_port(self, wished: int, held: set[int], taken: set[int]) -> int | None:
        start, end = PORT_RANGE
        for step in range(end - start):
            port = start + (wished - start + step) % (end - start)
            if port not in held and port not in taken and not self._port_in_use(port):
                return port
        return None


def algorithm_ports(request: Request, uid: str) -> dict[str, tuple[int, ...]]:
    """The ports by the contract's rule alone, for engines that place tasks where we cannot look."""
    return {
        label: tuple(allot_port(uid, label, index, *PORT_RANGE) for index in range(count))
        for label, count in request.all_ports().items()
    }


def how_many(room: Vector, needs: Vector) -> int:
    """How many such tasks fit into what is left; a resource that is not asked for may be overdrawn."""
    fits = -1
    for have, need in zip(room, needs):
        if need > 0:
            count = have // need
            if count <= 0:
                return 0
            if fits < 0 or count < fits:
                fits = count
    return fits if fits >= 0 else 1_000_000


def place(room: Room, parts: Sequence[Part]) -> Layout | None:
    """Where the parts can go, all of them or None.

    Tightly, so that large jobs find whole nodes later: nodes this gang uses already come first, then the
    fullest.
    """
    for _, needs, count in parts:
        if sum([how_many(left, needs) for _, left in room]) < count:
            return None
    if len(parts) == 1 and len(room) == 1:
        return [(parts[0][0], room[0][0], parts[0][2])]
    fullest_first = sorted(room, key=lambda entry: (entry[1][GPU], entry[1], entry[0]))
    for name, left in fullest_first:
        if _holds_all(left, parts):
            return [(role, name, count) for role, _, count in parts]
    rest = dict(fullest_first)
    used: set[str] = set()
    layout: Layout = []
    for role, needs, count in parts:
        for name in sorted(rest, key=lambda name: (name not in used, rest[name][GPU], rest[name], name)):
            here = min(count, how_many(rest[name], needs))
            if here:
                layout.append((role, name, here))
                rest[name] = plus(rest[name], needs, -here)
                used.add(name)
                count -= here
                if not count:
                    break
        if count:
            return None
    return layout


def _holds_all(left: Vector, parts: Sequence[Part]) -> bool:
    for _, needs, count in parts:
        if how_many(left, needs) < count:
            return False
        left = plus(left, needs, -count)
    return True


def without(room: Room, taken: dict[str, Vector]) -> Room:
    """The room that is left when this much is set aside per node."""
    return [(name, plus(left, taken[name], -1) if name in taken else left) for name, left in room]


def layout_needs(layout: Layout, needs: Sequence[Vector]) -> dict[str, Vector]:
    """What a layout takes from each node."""
    found: dict[str, Vector] = {}
    for role, name, count in layout:
        found[name] = plus(found.get(name, NOTHING), needs[role], count)
    return found
