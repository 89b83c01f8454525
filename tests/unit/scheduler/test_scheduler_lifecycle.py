from __future__ import annotations

import pytest
from scheduler_world import World, job, role

from openpaisdk.scheduler import (
    AttemptCompleted,
    JobCompleted,
    KillTasks,
    LaunchFailed,
    LaunchTasks,
    RetryScheduled,
    StopRequested,
    TaskCompleted,
    TaskEnded,
    TaskLost,
    TaskPreparing,
    TaskRef,
    Tick,
)


def of(actions, kind):
    return [action for action in actions if isinstance(action, kind)]


def test_a_job_runs_and_succeeds():
    world = World()
    world.submit(job(1))
    (ref,) = world.refs(1)
    assert ref == TaskRef("1", 0, "worker", 0, 0) and world.state(1) == "AttemptCreationRequested"
    world.send(TaskPreparing(ref))
    assert world.state(1) == "AttemptPreparing"
    world.start(ref)
    assert world.state(1) == "AttemptRunning"
    actions = world.end(ref)
    assert of(actions, JobCompleted) == [JobCompleted("1", 0, 0, world.now, ref)]
    assert len(world.scheduler) == 0 and world.scheduler.usage().nodes["n1"].used.cpu == 0


def test_attempts_are_counted_and_numbered_from_0():
    world = World()
    world.submit(job(1, job_retry_count=2))
    for attempt in range(3):
        (ref,) = world.refs(1)
        assert ref.attempt == attempt
        actions = world.end(ref, 255)
    assert not of(actions, RetryScheduled) and world.done == {"1": 255}
    assert world.rows["1"]["retries"] == world.rows["1"]["counted_retries"] == 2


def test_a_free_retry_is_not_counted():
    world = World()
    world.submit(job(1, job_retry_count=1))
    world.send(TaskLost(world.refs(1)[0], world.now))
    assert world.rows["1"]["retries"] == 1 and world.rows["1"]["counted_retries"] == 0
    world.end(world.refs(1)[0], 255)
    world.end(world.refs(1)[0], 255)
    assert world.done == {"1": 255} and world.rows["1"]["retries"] == 2


def test_a_lost_machine_is_code_1001():
    world = World()
    world.submit(job(1))
    actions = world.send(TaskLost(world.refs(1)[0], world.now))
    assert of(actions, AttemptCompleted)[0].code == -1001
    assert world.refs(1)[0].attempt == 1


def test_a_conflict_waits_for_its_time():
    world = World()
    world.submit(job(1))
    actions = world.end(world.refs(1)[0], 251)
    retry = of(actions, RetryScheduled)[0]
    assert retry.free and 60 <= retry.at - world.now <= 900 and world.wake == retry.at
    assert "waits" in world.scheduler.why("1", world.now).text
    world.tick(retry.at - world.now - 1)
    assert world.state(1) == "AttemptCompleted" and not world.live
    world.tick(1)
    assert world.refs(1)[0].attempt == 1


def test_stopping_during_the_delay_ends_the_job():
    world = World()
    world.submit(job(1))
    world.end(world.refs(1)[0], 251)
    actions = world.send(StopRequested("1"))
    assert of(actions, JobCompleted) == [JobCompleted("1", 0, -210, world.now)]
    world.tick(1000)
    assert not world.live


def test_a_task_that_kills_itself_at_once_does_not_spin():
    world = World()
    world.submit(job(1))
    rounds = 0
    while world.live:
        world.start(world.refs(1)[0])
        world.end(world.refs(1)[0], 137)
        rounds += 1
        assert rounds < 10
    assert world.wake > world.now


def test_stop_kills_what_runs_and_is_not_retried():
    world = World()
    world.submit(job(1, role(instances=2), job_retry_count=5))
    world.start(world.refs(1)[0])
    actions = world.send(StopRequested("1"))
    (kill,) = of(actions, KillTasks)
    assert kill.code == -220 and set(kill.tasks) == set(world.refs(1)) and kill.grace == 30.0
    assert world.state(1) == "AttemptDeletionRequested" and world.rows["1"]["code"] == -210
    actions = [action for ref in world.refs(1) for action in world.end(ref, 0)]
    assert [done.code for done in of(actions, TaskCompleted)] == [-220, -220]
    assert world.done == {"1": -210}


def test_stopping_a_waiting_job_needs_no_attempt():
    world = World()
    world.submit(job(1, role(gpu=4)))
    world.submit(job(2, role(gpu=1)))
    actions = world.send(StopRequested("2"))
    assert of(actions, JobCompleted) == [JobCompleted("2", None, -210, world.now)]
    assert world.scheduler.queue() == []


def test_an_outcome_that_is_final_already_stands_when_the_stop_comes_late():
    world = World()
    world.submit(job(1, role("ps"), role("worker")))
    ps, worker = world.refs(1)
    world.end(worker, 0)
    world.send(StopRequested("1"))
    world.end(ps, 143)
    assert world.done == {"1": 0}


def test_a_retry_that_was_due_is_not_made_when_the_stop_comes_in_between():
    world = World()
    world.submit(job(1, role(instances=2), job_retry_count=1))
    first, second = world.refs(1)
    world.end(first, 255)
    world.send(StopRequested("1"))
    world.end(second, 143)
    assert world.done == {"1": -210}


def test_one_role_that_succeeded_ends_the_job_and_kills_the_others():
    world = World()
    world.submit(job(1, role("ps", 2), role("worker", 2)))
    ps0, ps1, worker0, worker1 = world.refs(1)
    assert not of(world.end(worker1, 0), KillTasks)
    actions = world.end(worker0, 0)
    (kill,) = of(actions, KillTasks)
    assert set(kill.tasks) == {ps0, ps1} and kill.code == -220
    world.end_killed()
    assert world.done == {"1": 0}


def test_failures_that_do_not_trigger_leave_a_success():
    world = World()
    world.submit(job(1, role(instances=2, min_failed=-1, min_succeeded=-1)))
    for ref in world.refs(1):
        actions = world.end(ref, 255)
    assert world.done == {"1": 0} and of(actions, AttemptCompleted)[0].trigger is None


def test_the_first_by_completion_time_decides_even_if_learnt_later():
    world = World()
    world.submit(job(1, role("ps"), role("worker")))
    ps, worker = world.refs(1)
    world.now += 100
    world.send(TaskEnded(worker, 255, 1050.0), TaskEnded(ps, 0, 1040.0))
    assert world.done == {"1": 0}


def test_a_gang_that_cannot_be_launched_fails_whole_without_being_killed():
    world = World()
    world.submit(job(1, role(instances=3, min_failed=-1, min_succeeded=-1)))
    actions = world.send(LaunchFailed(tuple(world.refs(1)), "no such image", world.now, code=-200))
    assert world.done == {"1": -200} and not of(actions, KillTasks)


def test_without_gang_tasks_start_and_retry_on_their_own():
    world = World()
    info = job(1, role(instances=6, task_retry_count=1), gang=False)
    world.submit(info)
    assert len(world.refs(1)) == 4 and world.state(1) == "AttemptCreationRequested"
    first = world.refs(1)[0]
    world.end(first, 255)
    again = [ref for ref in world.refs(1) if ref.index == first.index]
    assert again == [TaskRef("1", 0, "worker", 0, 1)] and world.rows["1"]["retries"] == 0
    world.send(TaskLost(again[0], world.now))
    assert TaskRef("1", 0, "worker", 0, 2) in world.refs(1)
    world.end(TaskRef("1", 0, "worker", 0, 2), 255)
    assert world.state(1) == "AttemptDeletionRequested"
    world.end_killed()
    assert world.done == {"1": 255}


def test_tasks_that_never_started_end_with_their_job():
    world = World()
    world.submit(job(1, role(instances=6, min_succeeded=1), gang=False))
    actions = world.end(world.refs(1)[0], 0)
    assert [done.code for done in of(actions, TaskCompleted)] == [0, -220, -220]
    world.end_killed()
    assert world.done == {"1": 0}


def test_events_that_come_twice_or_late_change_nothing():
    world = World()
    info = job(1, job_retry_count=1)
    world.submit(info)
    (ref,) = world.refs(1)
    world.end(ref, 255)
    assert world.end(ref, 255) == world.start(ref) == world.send(TaskLost(ref, world.now)) == []
    world.end(world.refs(1)[0], 255)
    assert world.end(ref, 0) == world.send(StopRequested("1")) == []


def test_an_engine_with_its_own_queue_gets_every_job_at_once():
    world = World(nodes=(), hands_over=True)
    for number in (1, 2):
        world.submit(job(number, role(instances=3, cpu=1000, gpu=64)))
    assert len(world.live) == 6
    placed = world.live[world.refs(1)[0]]
    assert placed.node == "" and placed.gpus == () and set(placed.ports) == {"ssh", "http"}
    for ref in world.refs(1):
        world.end(ref)
    assert world.done == {"1": 0}


@pytest.mark.parametrize("hands_over", [False, True])
def test_a_crash_brings_everything_back(hands_over):
    world = World(nodes=() if hands_over else World().nodes, hands_over=hands_over)
    world.submit(job(1, role(instances=2)))
    world.submit(job(2, job_retry_count=1))
    world.start(world.refs(2)[0])
    actions = world.crash()
    (again,) = of(actions, LaunchTasks)
    assert [start.task for start in again.tasks] == world.refs(1), "what runs is left alone"
    world.end(world.refs(2)[0], 255)
    assert world.refs(2)[0].attempt == 1
    for ref in sorted(world.live):
        world.end(ref)
    assert world.done == {"1": 0, "2": 0}


def test_a_crash_kills_again_what_was_being_killed():
    world = World()
    world.submit(job(1))
    world.start(world.refs(1)[0])
    world.rows["1"]["stop_requested"] = True
    world.send(StopRequested("1"))
    (kill,) = of(world.crash(), KillTasks)
    assert kill.code == -220
    world.end_killed()
    assert world.done == {"1": -210}


def test_a_stop_that_was_stored_but_not_handled_is_handled_after_a_crash():
    world = World()
    world.submit(job(1, role(gpu=4)))
    world.submit(job(2, role(gpu=4)))
    for number in ("1", "2"):
        world.rows[number]["stop_requested"] = True
    world.crash()
    world.end_killed()
    assert world.done == {"1": -210, "2": -210}


def test_delays_survive_a_crash():
    world = World()
    world.submit(job(1))
    world.submit(job(2, role(task_retry_count=1), gang=False))
    world.end(world.refs(1)[0], 251)
    world.end(world.refs(2)[0], 251)
    due = world.wake
    world.crash()
    assert world.wake == due and not world.live
    world.tick(900)
    assert world.refs(1)[0].attempt == 1 and world.refs(2)[0].task_attempt == 1


@pytest.mark.parametrize("back", [0.001, 30.0, 86_400.0])
def test_a_clock_that_was_set_back_puts_nothing_off_for_ever(back):
    world = World()
    world.submit(job(1))
    world.end(world.refs(1)[0], 251)
    due = world.wake
    world.now = due - back
    for _ in range(3):
        world.wake = None
        world.send(Tick())
        if world.refs(1):
            break
        assert world.wake is not None and world.wake - world.now <= 900
        world.now = world.wake
    assert world.refs(1)
