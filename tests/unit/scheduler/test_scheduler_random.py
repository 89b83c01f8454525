"""Random events against the scheduler; the world checks every promise after every step."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scheduler_world import World
from scheduler_world import job as job_of
from scheduler_world import role as role_of

from openpaisdk.errors import QuotaError
from openpaisdk.scheduler import (
    LaunchFailed,
    LimitsChanged,
    Node,
    NodesChanged,
    Quota,
    StopRequested,
    TaskEnded,
    TaskLost,
    TaskPreparing,
    VirtualCluster,
)

CODES = [0, 0, 0, 1, 137, 255, 220, 251, -1200, 3, -310]
NODES = (Node("n1", 8, 800, (0, 1, 2, 3)), Node("n2", 4, 400, (0, 1)))
SHARES = (
    (VirtualCluster("default"), VirtualCluster("a", share=0.0), VirtualCluster("b", share=0.0)),
    (VirtualCluster("default", share=0.5), VirtualCluster("a", share=0.3), VirtualCluster("b", share=0.2)),
)
QUOTAS = ({}, {"ann": Quota(cpu=6, jobs=2), "*": Quota(gpu=4, jobs=5)})

roles = st.lists(
    st.builds(
        lambda instances, cpu, memory, gpu, failed, succeeded, retries: {
            "instances": instances,
            "cpu": cpu,
            "memory_mb": memory,
            "gpu": gpu,
            "min_failed": failed,
            "min_succeeded": succeeded if succeeded < 0 else min(succeeded, instances),
            "task_retry_count": retries,
        },
        st.integers(1, 4),
        st.integers(0, 3),
        st.integers(0, 200),
        st.integers(0, 2),
        st.sampled_from([-1, 1, 1, 2]),
        st.sampled_from([-1, 1, 2]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=2,
)


class Machine(RuleBasedStateMachine):
    @initialize(shares=st.sampled_from(SHARES), quotas=st.sampled_from(QUOTAS))
    def begin(self, shares, quotas):
        self.world = World(NODES, shares, quotas, port_in_use=set(range(15000, 39900)))
        self.number = 0

    @rule(
        parts=roles,
        user=st.sampled_from(["ann", "bob"]),
        vc=st.sampled_from(["default", "a", "b"]),
        priority=st.sampled_from(["prod", "test", "oppo"]),
        gang=st.booleans(),
        retries=st.integers(0, 2),
    )
    def submit(self, parts, user, vc, priority, gang, retries):
        self.number += 1
        made = tuple(role_of(f"r{n}", **part) for n, part in enumerate(parts))
        info = job_of(
            self.number, *made, user=user, vc=vc, priority=priority, gang=gang, job_retry_count=retries
        )
        try:
            self.world.submit(info)
        except QuotaError as problem:
            assert problem.hint
            self.world.rows.pop(info.id, None)

    @precondition(lambda self: self.world.live)
    @rule(data=st.data(), step=st.sampled_from(["prepare", "start", "end", "end", "end", "lose"]))
    def happen(self, data, step):
        ref = data.draw(st.sampled_from(sorted(self.world.live)))
        self.world.now += 1.0
        if step == "prepare":
            self.world.send(TaskPreparing(ref))
        elif step == "start":
            self.world.start(ref)
        elif step == "lose":
            self.world.send(TaskLost(ref, self.world.now))
        else:
            self.world.end(ref, data.draw(st.sampled_from(CODES)))

    @precondition(lambda self: self.world.live)
    @rule(data=st.data())
    def fail_to_launch(self, data):
        ref = data.draw(st.sampled_from(sorted(self.world.live)))
        gang = self.world.rows[ref.job_id]["job"].gang
        tasks = tuple(self.world.refs(int(ref.job_id))) if gang else (ref,)
        self.world.send(LaunchFailed(tasks, "no such image", self.world.now))

    @precondition(lambda self: self.world.launched)
    @rule(data=st.data())
    def say_it_late(self, data):
        """Events about what is over change nothing."""
        over = sorted(self.world.launched - set(self.world.live))
        if over:
            ref = data.draw(st.sampled_from(over))
            self.world.send(TaskEnded(ref, 1, self.world.now), TaskPreparing(ref))
            self.world.start(ref)

    @precondition(lambda self: self.world.rows)
    @rule(data=st.data())
    def stop(self, data):
        job_id = data.draw(st.sampled_from(sorted(self.world.rows)))
        if job_id not in self.world.done:
            self.world.rows[job_id]["stop_requested"] = True
        self.world.send(StopRequested(job_id))

    @rule(seconds=st.sampled_from([1, 30, 700]))
    def tick(self, seconds):
        self.world.tick(seconds)

    @rule()
    def crash(self):
        queue = self.world.scheduler.queue()
        usage = self.world.scheduler.usage()
        self.world.crash()
        after = self.world.scheduler.usage()
        assert set(after.nodes) == set(usage.nodes)
        assert set(self.world.scheduler.queue()) <= set(queue) | set(self.world.rows)

    @rule(which=st.sampled_from([NODES, NODES[:1], NODES[1:], (Node("n1", 2, 200, (0,)), NODES[1])]))
    def change_nodes(self, which):
        self.world.nodes = which
        self.world.send(NodesChanged(which))

    @rule(shares=st.sampled_from(SHARES), quotas=st.sampled_from(QUOTAS))
    def change_limits(self, shares, quotas):
        self.world.clusters, self.world.quotas = shares, quotas
        self.world.send(LimitsChanged(shares, quotas))

    @invariant()
    def every_job_has_a_reason(self):
        if not hasattr(self, "world"):
            return
        waiting = [job_id for job_id in self.world.rows if job_id not in self.world.done]
        assert len(self.world.scheduler) == len(waiting)
        for job_id in waiting:
            assert self.world.scheduler.why(job_id, self.world.now).text

    @invariant()
    def an_idle_cluster_lets_nobody_wait(self):
        if not hasattr(self, "world") or self.world.live:
            return
        for job_id in self.world.scheduler.queue():
            try:
                self.world.scheduler.admit(self.world.rows[job_id]["job"])
            except QuotaError:
                continue
            raise AssertionError(f"{job_id} waits although nothing runs")

    def teardown(self):
        if not hasattr(self, "world"):
            return
        world = self.world
        self.change_nodes(NODES)
        self.change_limits(SHARES[0], {})
        for _ in range(1000):
            if len(world.scheduler) == 0:
                break
            if world.live:
                for ref in sorted(world.live):
                    world.end(ref, 0)
            else:
                world.tick(max(0.0, (world.wake or world.now) - world.now))
        assert len(world.scheduler) == 0 and not world.live
        assert set(world.done) == set(world.rows)
        for node in world.scheduler.usage().nodes.values():
            assert (node.used.cpu, node.used.memory_mb, node.used.gpu) == (0, 0, 0)


TestRandomEvents = Machine.TestCase
TestRandomEvents.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
