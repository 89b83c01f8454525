from __future__ import annotations

from scheduler_world import World, job, role

from openpaisdk.protocol import allot_port
from openpaisdk.scheduler import (
    KillTasks,
    LaunchTasks,
    LimitsChanged,
    Node,
    NodesChanged,
    Quota,
    StopRequested,
    VirtualCluster,
)
from openpaisdk.scheduler.dispatch import OVERTAKEN_AT_MOST, PATIENCE

BOTH = (VirtualCluster("default", share=0.5), VirtualCluster("lab", share=0.5))


def kills(actions):
    return [ref.job_id for action in actions if isinstance(action, KillTasks) for ref in action.tasks]


def test_a_gang_starts_whole_or_not_at_all():
    world = World()
    world.submit(job(1, role(gpu=1)))
    world.submit(job(2, role(instances=4, gpu=1)))
    assert not world.refs(2)
    world.end(world.refs(1)[0])
    assert len(world.refs(2)) == 4


def test_gpus_are_handed_out_one_by_one():
    world = World()
    for number in (1, 2):
        world.submit(job(number, role(instances=2, gpu=1)))
    held = [world.live[ref].gpus for ref in sorted(world.live)]
    assert held == [(0,), (1,), (2,), (3,)]
    world.end(world.refs(1)[1])
    world.end(world.refs(1)[0])
    world.submit(job(3, role(gpu=2)))
    assert world.live[world.refs(3)[0]].gpus == (0, 1)


def test_gangs_keep_together_and_fill_nodes_that_are_in_use():
    nodes = (Node("n1", 8, 8192, (0, 1, 2, 3)), Node("n2", 8, 8192, (0, 1, 2, 3)))
    world = World(nodes)
    world.submit(job(1, role(gpu=1)))
    world.submit(job(2, role(gpu=1)))
    world.submit(job(3, role(instances=2, gpu=2)))
    where = {number: {world.live[ref].node for ref in world.refs(number)} for number in (1, 2, 3)}
    assert where == {1: {"n1"}, 2: {"n1"}, 3: {"n2"}}
    world.submit(job(4, role(instances=2, gpu=1)))
    assert {world.live[ref].node for ref in world.refs(4)} == {"n1"}


def test_ports_follow_the_contract_or_are_the_next_free_ones():
    world = World()
    world.submit(job(1, role(ports=[("tb", 2)])))
    (ref,) = world.refs(1)
    uid = world.tasks[("1", 0, "worker", 0)]["uid"]
    assert world.live[ref].ports == {
        "tb": (allot_port(uid, "tb", 0), allot_port(uid, "tb", 1)),
        "ssh": (allot_port(uid, "ssh", 0),),
        "http": (allot_port(uid, "http", 0),),
    }
    taken = allot_port(uid, "ssh", 0)
    for in_use in ({taken}, lambda port: port == taken):
        other = World(port_in_use=in_use)
        other.submit(job(1))
        assert other.live[other.refs(1)[0]].ports["ssh"] == (taken + 1,)


def test_a_job_waits_where_no_port_is_left():
    free = {20000, 20001, 30000}
    world = World(port_in_use=lambda port: port not in free)
    world.submit(job(1))
    world.submit(job(2))
    assert world.live[world.refs(1)[0]].ports.keys() == {"ssh", "http"} and not world.refs(2)
    world.end(world.refs(1)[0])
    assert world.refs(2)


def test_prod_goes_before_test_and_test_before_oppo():
    world = World()
    world.submit(job(1, role(gpu=4)))
    for number, priority in ((2, "oppo"), (3, "test"), (4, "prod")):
        world.submit(job(number, role(gpu=4), priority=priority))
    assert world.scheduler.queue() == ["4", "3", "2"]
    order = []
    while world.live:
        (ref,) = world.live
        order.append(ref.job_id)
        world.end(ref)
    assert order == ["1", "4", "3", "2"]


def test_prod_does_not_kill_test():
    world = World()
    world.submit(job(1, role(gpu=4)))
    assert kills(world.submit(job(2, role(gpu=4), priority="prod"))) == []


def test_oppo_is_evicted_free_of_charge_and_keeps_its_place():
    world = World()
    world.submit(job(1, role(gpu=2), priority="oppo"))
    world.submit(job(2, role(gpu=2), priority="oppo"))
    world.submit(job(5, role(gpu=1), priority="oppo"))
    actions = world.submit(job(6, role(gpu=1)))
    assert kills(actions) == ["2"], "the last submitted goes first"
    assert "room is being made" in world.scheduler.why("6", world.now).text
    world.submit(job(7, role(gpu=1), priority="oppo"))
    world.end_killed()
    assert world.rows["2"]["code"] is None and world.rows["2"]["counted_retries"] == 0
    assert world.refs(6) and world.refs(5), "what was evicted beyond need is used"
    assert world.scheduler.queue() == ["2", "7"]
    assert [r.reason for r in world.records if r.job_id == "2"] == ["Scheduled", "Preempted", "Retry"]


def test_nobody_is_evicted_in_vain():
    world = World()
    world.submit(job(1, role(gpu=3)))
    world.submit(job(2, role(gpu=1), priority="oppo"))
    assert kills(world.submit(job(3, role(gpu=2)))) == []


def test_only_those_are_evicted_who_make_room():
    nodes = (Node("n1", 8, 8192, (0, 1)), Node("n2", 8, 8192, (0, 1)))
    world = World(nodes)
    world.submit(job(1, role(gpu=2), priority="oppo"))
    world.submit(job(2, role(gpu=1), priority="oppo"))
    world.submit(job(3, role(gpu=1)))
    assert kills(world.submit(job(4, role(gpu=2)))) == ["1"]


def test_single_tasks_of_a_job_without_gang_are_evicted_singly():
    world = World()
    world.submit(job(1, role(instances=4, gpu=1), gang=False, priority="oppo"))
    actions = world.submit(job(2, role(gpu=1)))
    assert [ref.index for a in actions if isinstance(a, KillTasks) for ref in a.tasks] == [3]
    world.end_killed()
    assert world.refs(2) and len(world.refs(1)) == 3 and world.rows["1"]["retries"] == 0


def test_room_that_is_being_freed_is_kept_for_whom_it_is_freed():
    world = World()
    world.submit(job(1, role(instances=2, gpu=2), priority="oppo"))
    world.submit(job(2, role(gpu=4)))
    first, second = world.refs(1)
    world.end(first, 143)
    world.submit(job(3, role(gpu=1)))
    assert not world.refs(3)
    world.end(second, 143)
    assert world.refs(2) and not world.refs(3)


def test_a_virtual_cluster_uses_what_others_leave_idle_and_gives_it_back():
    world = World(clusters=BOTH)
    for number in (1, 2, 3, 4):
        world.submit(job(number, role(gpu=1)))
    assert len(world.live) == 4, "two on its own share, two borrowed"
    actions = world.submit(job(5, role(gpu=1), vc="lab"))
    assert kills(actions) == ["4"]
    actions = world.submit(job(6, role(gpu=1), vc="lab"))
    assert kills(actions) == ["3"]
    assert kills(world.submit(job(7, role(gpu=1), vc="lab"))) == [], "beyond its own share nobody is evicted"
    world.end_killed()
    assert world.refs(5) and world.refs(6) and not world.refs(7)
    assert "share of `lab` is used" in world.scheduler.why("7", world.now).text


def test_the_own_share_comes_before_borrowing():
    world = World(clusters=BOTH)
    world.submit(job(1, role(gpu=2), vc="lab"))
    world.submit(job(2, role(gpu=2)))
    world.submit(job(3, role(gpu=2), priority="prod"))
    world.submit(job(4, role(gpu=2), vc="lab"))
    world.end(world.refs(1)[0])
    assert world.refs(4) and not world.refs(3), "3 would borrow, 4 is inside its share"


def test_a_job_larger_than_its_share_runs_on_what_is_idle():
    world = World(clusters=BOTH)
    world.submit(job(1, role(gpu=4)))
    assert world.refs(1)
    assert kills(world.submit(job(2, role(gpu=1), vc="lab"))) == ["1"]


def test_quotas_are_held_for_resources_and_jobs():
    world = World(quotas={"ann": Quota(gpu=2), "*": Quota(jobs=1)})
    world.submit(job(1, role(gpu=2)))
    world.submit(job(2, role(gpu=1)))
    world.submit(job(3, role()))
    assert not world.refs(2) and world.refs(3)
    for number in (4, 5):
        world.submit(job(number, user="bob"))
    assert world.refs(4) and not world.refs(5)
    world.end(world.refs(4)[0])
    assert world.refs(5) and not world.refs(2)
    world.quotas = {}
    world.send(LimitsChanged(world.clusters, {}))
    assert world.refs(2)


def test_a_quota_is_given_out_in_order():
    world = World(quotas={"ann": Quota(gpu=2)})
    world.submit(job(1, role(gpu=1)))
    world.submit(job(2, role(gpu=2)))
    world.submit(job(3, role(gpu=1)))
    assert not world.refs(3), "3 would hold 2 back for ever"
    world.send(StopRequested("2"))
    assert world.refs(3)


def test_others_are_not_held_back_by_somebodys_quota():
    world = World(quotas={"ann": Quota(jobs=0, gpu=0)}, nodes=(Node("n1", 400, 819200, tuple(range(99))),))
    for number in range(1, 200):
        info = job(number, role(memory_mb=number))
        world.rows[info.id] = {"job": info, "sub_state": "AttemptCreationPending", "attempt": 0, "retries": 0}
    world.crash()
    assert not world.live
    world.submit(job(500, user="bob"))
    assert world.refs(500)


def test_small_jobs_pass_a_large_one_but_not_for_ever():
    world = World()
    world.submit(job(1, role(gpu=1)))
    world.submit(job(2, role(gpu=4)))
    number = 2
    while not world.refs(2):
        number += 1
        assert number < 3 + 4 * OVERTAKEN_AT_MOST
        world.submit(job(number, role(gpu=1)))
        if number % 2:
            world.end(min(world.live))
    passed = sum(1 for ref in world.launched if int(ref.job_id) > 2)
    assert OVERTAKEN_AT_MOST <= passed <= OVERTAKEN_AT_MOST + 4


def test_what_does_not_touch_the_kept_room_still_passes():
    world = World()
    world.submit(job(1, role(gpu=1)))
    world.submit(job(2, role(cpu=1, gpu=4)))
    world.submit(job(3, role(gpu=1)))
    world.now += PATIENCE + 1
    world.submit(job(4, role(gpu=3)))
    world.end(world.refs(1)[0])
    world.submit(job(5, role(gpu=1)))
    assert not world.refs(5) and "kept for ann~job2" in world.scheduler.why("5", world.now).text
    world.submit(job(6, role(gpu=0)))
    assert world.refs(6)
    world.end(world.refs(3)[0])
    assert world.refs(2)


def test_another_virtual_clusters_share_is_not_kept_from_it():
    world = World(clusters=BOTH)
    world.submit(job(1, role(gpu=1)))
    world.submit(job(2, role(gpu=2)))
    world.submit(job(3, role(gpu=1), vc="lab"))
    world.end(world.refs(1)[0])
    assert world.refs(2)
    world.submit(job(4, role(gpu=1), vc="lab"))
    assert world.refs(4)


def test_tasks_on_a_node_that_left_stay_until_they_are_lost():
    nodes = (Node("n1", 2, 800, (0,)), Node("n2", 2, 800, (0,)))
    world = World(nodes)
    world.submit(job(1, role(gpu=1)))
    world.submit(job(2, role(gpu=1)))
    world.nodes = nodes[:1]
    world.send(NodesChanged(world.nodes))
    world.submit(job(3, role()))
    assert world.live[world.refs(3)[0]].node == "n1"
    world.end(world.refs(2)[0], -1001)
    assert set(world.scheduler.usage().nodes) == {"n1"} and not world.refs(2)


def test_usage_tells_shares_and_what_is_used_of_them():
    world = World(clusters=BOTH)
    world.submit(job(1, role(gpu=1, cpu=2)))
    world.submit(job(2, role(gpu=1), priority="oppo"))
    world.submit(job(3, role(gpu=3), vc="lab"))
    usage = world.scheduler.usage()
    default, lab = usage.virtual_clusters["default"], usage.virtual_clusters["lab"]
    assert (default.used.gpu, default.guaranteed.gpu, default.total.gpu, default.running_jobs) == (2, 2, 4, 2)
    assert (lab.used.gpu, lab.waiting_jobs, lab.running_jobs) == (0, 1, 0)
    assert usage.nodes["n1"].used.cpu == 3 and usage.nodes["n1"].total.memory_mb == 8192


def test_a_thousand_waiting_jobs_cost_nothing_that_is_not_needed():
    world = World()
    world.submit(job(1, role(gpu=4)))
    assert all(world.submit(job(number, role(gpu=4))) == [] for number in range(2, 1002))
    launches = [a for a in world.end(world.refs(1)[0]) if isinstance(a, LaunchTasks)]
    assert [launch.job_id for launch in launches] == ["2"]
