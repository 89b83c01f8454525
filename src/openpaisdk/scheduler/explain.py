"""Says in words why a job is where it is: what it waits for, who holds it, its place in the queue."""

from __future__ import annotations

from openpaisdk.protocol import exit_spec

from .dispatch import IDLE, OWN
from .lifecycle import COMING_UP, Lifecycle
from .model import Explanation
from .placement import Room, place
from .shares import JOBS
from .state import CPU, GPU, MEMORY, Ask, Job
from .transitions import ATTEMPT_COMPLETED, DELETION_REQUESTED
from .wording import amount, bare_amount, duration, place_in_line, plural

_SCARCE_FIRST = (GPU, CPU, MEMORY)


def explain(job: Job, life: Lifecycle, now: float) -> Explanation:
    """The state of a job that is not over, with its reason."""
    name = _short(job)
    if job.sub_state == ATTEMPT_COMPLETED:
        return _delayed(job, now)
    if job.sub_state == DELETION_REQUESTED:
        left = plural(job.live, "task")
        verb = "is being stopped" if job.stop_requested else f"ended with {_code(job.code)}"
        return Explanation(f"{name} {verb}: {left} still to end.")
    if job.asks:
        return _waiting(job, min(job.asks.values(), key=lambda ask: ask.key), life, now)
    if job.sub_state in COMING_UP:
        return Explanation(f"{name} is being started: {_holds(job)}.")
    verb = "runs" if job.started_at is None else f"has run for {duration(now - job.started_at)}"
    return Explanation(f"{name} {verb}: {_holds(job)}.")


def _delayed(job: Job, now: float) -> Explanation:
    left = duration((job.retry_at or now) - now)
    code = _code(job.code)
    return Explanation(
        f"{_short(job)} waits {left} before attempt {job.attempt}: the last one ended with {code}.",
        hint="it is tried again by itself; to give up, stop it",
    )


def _waiting(job: Job, ask: Ask, life: Lifecycle, now: float) -> Explanation:
    reason, hint = _reason(ask, life, now)
    subject = _short(job)
    if ask.task is not None:
        subject += f" ({plural(len(job.asks), 'task')} of {len(job.tasks)})"
        if job.live:
            verb = "still wait" if len(job.asks) > 1 else "still waits"
            return Explanation(f"{subject} {verb}: {reason}.", hint)
    if job.gave_way_to is not None:
        subject += f" gave way to {job.gave_way_to} and"
    ahead = {
        other.job.info.id
        for other in life.dispatcher.waiting()
        if other.key < ask.key and other.job.info.vc == job.info.vc and other.job.oppo == job.oppo
    }
    ahead.discard(job.info.id)
    extra = "" if job.info.priority == "test" else f", priority {job.info.priority}"
    place_words = f"{place_in_line(len(ahead) + 1)} in the queue of `{job.info.vc}`{extra}"
    return Explanation(f"{subject} waits: {reason}. {place_words}.", hint)


def _reason(ask: Ask, life: Lifecycle, now: float) -> tuple[str, str | None]:
    job = ask.job
    if lacking := life.shares.lacking(ask):
        return _quota(ask, life, lacking[0])
    if place(life.nodes.empty_room(), ask.parts) is None:
        return _too_large(ask, life)
    if any(booking.ask is ask and booking.firm for booking in life.dispatcher.bookings):
        return f"room is being made for it, {plural(len(life.dispatcher.dying), 'task')} still to end", None
    own = not job.oppo and life.shares.cluster(job.info.vc).has_room(ask.total)
    room = life.dispatcher.room_for(ask, OWN if own else IDLE)
    words = _shortage(ask, life, life.nodes.room(), now)
    if words is None:
        words = _shortage(ask, life, room, now) and _kept_for_others(ask, life)
    if words is None:
        if place(room, ask.parts) is None:
            words = "no node has enough of everything free at once"
        else:
            words = f"an earlier job of {job.info.user} is held back by the quota"
    if not own and not job.oppo and not life.shares.cluster(job.info.vc).whole:
        words += f"; the share of `{job.info.vc}` is used, so that it waits for idle capacity"
    return words, "it starts by itself when there is room; asking for less may start it sooner"


def _quota(ask: Ask, life: Lifecycle, dimension: int) -> tuple[str, str]:
    user = ask.job.info.user
    quota, state = life.shares.quota(user), life.shares.user(user)
    assert quota is not None
    hint = "it starts when another job of this user ends; for more at once ask for a larger quota"
    if dimension == JOBS:
        return f"the quota of {user} allows {plural(quota.jobs or 0, 'job')} at once, {state.jobs} run", hint
    limit = (quota.cpu, quota.memory_mb, quota.gpu)[dimension] or 0
    wanted, used = ask.total[dimension], state.used[dimension]
    most, held = bare_amount(dimension, limit), bare_amount(dimension, used)
    return f"{amount(dimension, wanted)} wanted, the quota of {user} is {most}, {held} in use", hint


def _too_large(ask: Ask, life: Lifecycle) -> tuple[str, str]:
    hint = "it can only start when the cluster grows; stop it and ask for less"
    for d in _SCARCE_FIRST:
        if ask.total[d] > life.nodes.total[d]:
            has = bare_amount(d, life.nodes.total[d])
            return f"it asks for {amount(d, ask.total[d])}, this cluster has {has} now", hint
    return "its tasks do not fit onto the nodes that this cluster has now", hint


def _shortage(ask: Ask, life: Lifecycle, room: Room, now: float) -> str | None:
    """`2 GPUs wanted, 1 free; user1~gpt holds 3 and has run for 2 h`, for the scarcest resource."""
    for d in _SCARCE_FIRST:
        free = sum(max(0, left[d]) for _, left in room)
        if ask.total[d] > free:
            words = f"{amount(d, ask.total[d])} wanted, {bare_amount(d, free)} free"
            return "; ".join([words, *_holders(ask.job, life, d, now)])
    return None


def _holders(reader: Job, life: Lifecycle, dimension: int, now: float) -> list[str]:
    held: list[tuple[int, Job]] = []
    for cluster in life.shares.clusters.values():
        for job in cluster.jobs.values():
            number = sum(task.needs[dimension] for task in job.tasks.values() if task.live)
            if number:
                held.append((number, job))
    if not held:
        return []
    held.sort(key=lambda entry: (-entry[0], entry[1].info.number))
    number, job = held[0]
    run = f" and has run for {duration(now - job.started_at)}" if job.started_at is not None else ""
    words = [f"{life.name(job, reader)} holds {bare_amount(dimension, number)}{run}"]
    if rest := held[1:]:
        others = sum(entry[0] for entry in rest)
        verb = "holds" if len(rest) == 1 else "hold"
        words.append(f"{plural(len(rest), 'other job')} {verb} {bare_amount(dimension, others)}")
    return words


def _kept_for_others(ask: Ask, life: Lifecycle) -> str | None:
    others = [booking.ask.job for booking in life.dispatcher.bookings if booking.ask is not ask]
    if not others:
        return None
    return f"what is free is kept for {life.name(others[0], ask.job)}, which is before it in the queue"


def _holds(job: Job) -> str:
    live = [task for task in job.tasks.values() if task.live]
    nodes = sorted({task.placement.node for task in live if task.placement and task.placement.node})
    gpus = sum(task.needs[GPU] for task in live)
    words = plural(len(live), "task")
    if nodes:
        words += f" on {', '.join(nodes[:3])}" + (
            f" and {len(nodes) - 3} more nodes" if len(nodes) > 3 else ""
        )
    return words + (f" with {amount(GPU, gpus)}" if gpus else "")


def _short(job: Job) -> str:
    return job.info.name.rpartition("~")[2]


def _code(code: int | None) -> str:
    spec = exit_spec(code) if code is not None else None
    return f"{code} ({spec.phrase})" if spec else f"{code}"
