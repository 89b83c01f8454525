from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scheduler_world import job, role

from openpaisdk.scheduler.queue import WaitingLine
from openpaisdk.scheduler.state import Ask, Job


def ask(number, cpu=1, user="ann", vc="default", priority="test"):
    return Ask(Job(job(number, role(cpu=cpu), user=user, vc=vc, priority=priority)))


def walked(line, *, start=lambda ask: True):
    seen = []
    walk = line.walk()
    while (current := walk.current()) is not None:
        seen.append(current)
        if start(current):
            line.discard(current)
            walk.left()
        else:
            walk.skip_lane()
    return seen


asks = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from("xy"),
        st.sampled_from(["prod", "test"]),
    ),
    max_size=30,
)


@given(asks, st.randoms(use_true_random=False))
def test_a_walk_that_starts_everything_sees_everything_in_order(drawn, random):
    line = WaitingLine()
    made = [ask(n, cpu, user, vc, priority) for n, (cpu, user, vc, priority) in enumerate(drawn)]
    random.shuffle(made)
    for one in made:
        line.add(one)
    gone = [one for one in made if random.random() < 0.3]
    for one in gone:
        line.discard(one)
    rest = sorted((one for one in made if one not in gone), key=lambda one: one.key)
    assert len(line) == len(rest) and set(line.asks()) == set(rest)
    assert walked(line) == rest
    assert len(line) == 0 and line.walk().current() is None


@given(asks, st.integers(1, 3))
def test_a_walk_sees_one_of_each_lane_that_cannot_start(drawn, too_large):
    line = WaitingLine()
    made = [ask(n, cpu, user, vc, priority) for n, (cpu, user, vc, priority) in enumerate(drawn)]
    for one in made:
        line.add(one)
    seen = walked(line, start=lambda one: one.total[0] < too_large)
    refused = [one for one in seen if one.total[0] >= too_large]
    assert (
        len(refused)
        == len({one.lane for one in refused})
        == len({o.lane for o in made if o.total[0] >= too_large})
    )
    assert [one for one in made if one.total[0] < too_large and one.waiting] == []
    assert seen == sorted(seen, key=lambda one: one.key)


def test_an_earlier_job_that_comes_back_stands_first_again():
    line = WaitingLine()
    later, earlier = ask(5), ask(2)
    assert line.add(later) and line.add(earlier)
    assert not line.add(ask(9))
    assert line.walk().current() is earlier


def test_groups_and_virtual_clusters_can_be_left_out():
    line = WaitingLine()
    for number, (cpu, vc) in enumerate([(1, "x"), (1, "x"), (2, "x"), (1, "y"), (3, "x")]):
        line.add(ask(number, cpu, user=f"user{number}", vc=vc))
    walk = line.walk()
    walk.skip_group() if walk.current() else None
    assert walk.current().key[1] == 2
    walk.skip_virtual_cluster()
    assert walk.current().key[1] == 3
    walk.skip_group()
    assert walk.current() is None
