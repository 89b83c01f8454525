from __future__ import annotations

import pytest
from scheduler_world import World, job, role

from openpaisdk.errors import NotFoundError, QuotaError
from openpaisdk.scheduler import Node, NodesChanged, Quota, Scheduler, StopRequested, VirtualCluster, job_info
from openpaisdk.scheduler.wording import duration, memory, place_in_line


def refusal(scheduler, info):
    with pytest.raises(QuotaError) as caught:
        scheduler.admit(info)
    return caught.value.message, caught.value.hint


def test_what_could_never_run_is_refused_with_a_way_out():
    scheduler = Scheduler([Node("n1", 2, 24576, (0,))])
    assert refusal(scheduler, job(1, role(gpu=9))) == (
        "the job asks for 9 GPUs, this cluster has 1",
        "it would wait for ever; ask for at most 1, or submit to another cluster with -a",
    )
    assert refusal(scheduler, job(1, role(memory_mb=24577)))[0] == (
        "the job asks for 24577 MB of memory, this cluster has 24 GB"
    )
    assert refusal(scheduler, job(1, role(instances=3)))[0] == "the job asks for 3 CPUs, this cluster has 2"
    assert refusal(Scheduler([Node("n1", 2, 100)]), job(1, role(gpu=1))) == (
        "the job asks for 1 GPU, this cluster has none",
        "it would wait for ever; ask for none, or submit to another cluster with -a",
    )
    scheduler.admit(job(1, role(instances=3), gang=False))


def test_what_fits_the_sum_but_no_node_is_refused():
    scheduler = Scheduler([Node("n1", 4, 1024, (0, 1)), Node("n2", 8, 1024)])
    message, hint = refusal(scheduler, job(1, role(cpu=9)))
    assert message == "each task of worker asks for 9 CPUs, the largest node of this cluster has 8"
    assert hint.startswith("it would wait for ever; ask for at most 8")
    message, _ = refusal(scheduler, job(1, role(cpu=5, gpu=1)))
    assert message == "no node of this cluster has all that a task of worker asks for at once"
    message, hint = refusal(scheduler, job(1, role(instances=4, cpu=3)))
    assert message == "the tasks of the job do not fit onto the nodes of this cluster at the same time"
    assert "gangAllocation" in hint


def test_a_job_beyond_its_users_quota_is_refused():
    scheduler = Scheduler(
        [Node("n1", 64, 65536)], quotas={"ann": Quota(cpu=4, memory_mb=2048), "eve": Quota(jobs=0)}
    )
    assert refusal(scheduler, job(1, role(cpu=5)))[0] == "the job asks for 5 CPUs, the quota of ann is 4"
    assert refusal(scheduler, job(1, role(memory_mb=4096)))[0] == (
        "the job asks for 4 GB of memory, the quota of ann is 2 GB"
    )
    assert refusal(scheduler, job(1, user="eve"))[0] == "eve may run no jobs here"
    scheduler.admit(job(1, role(cpu=5), user="bob"))


def test_why_names_what_is_wanted_what_is_free_and_who_holds_it():
    world = World()
    world.submit(job(1, role(gpu=3), user="user1", name="user1~gpt"))
    world.start(world.refs(1)[0])
    world.submit(job(2, role(gpu=2), name="ann~bert-2"))
    world.submit(job(3, role(gpu=2), priority="oppo"))
    world.now += 2 * 3600
    assert world.scheduler.why("2", world.now).text == (
        "bert-2 waits: 2 GPUs wanted, 1 free; user1~gpt holds 3 and has run for 2 h. "
        "First in the queue of `default`."
    )
    assert world.scheduler.why("3", world.now).text.endswith(
        "First in the queue of `default`, priority oppo."
    )
    assert world.scheduler.why("1", world.now).text == "gpt has run for 2 h: 1 task on n1 with 3 GPUs."
    world.submit(job(4, role(cpu=4)))
    assert world.scheduler.why("4", world.now).text == (
        "job4 waits: 4 CPUs wanted, 3 free; user1~gpt holds 1 and has run for 2 h. "
        "Second in the queue of `default`."
    )


def test_why_counts_the_others():
    world = World()
    for number in (1, 2, 3):
        world.submit(job(number, role(gpu=1)))
    world.submit(job(4, role(gpu=4)))
    assert "1 free; ann~job1 holds 1; 2 other jobs hold 2." in world.scheduler.why("4", 0.0).text


def test_why_tells_of_quotas():
    world = World(quotas={"ann": Quota(gpu=2), "bob": Quota(jobs=1)})
    world.submit(job(1, role(gpu=2)))
    world.submit(job(2, role(gpu=1)))
    found = world.scheduler.why("2", world.now)
    assert "1 GPU wanted, the quota of ann is 2, 2 in use" in found.text and "larger quota" in found.hint
    world.submit(job(3, user="bob"))
    world.submit(job(4, user="bob"))
    assert "the quota of bob allows 1 job at once, 1 run" in world.scheduler.why("4", world.now).text


def test_why_tells_of_a_cluster_that_shrank():
    world = World()
    world.submit(job(1, role(gpu=4)))
    world.submit(job(2, role(gpu=4)))
    world.nodes = (Node("n1", 4, 8192, (0,)),)
    world.send(NodesChanged(world.nodes))
    found = world.scheduler.why("2", world.now)
    assert "it asks for 4 GPUs, this cluster has 1 now" in found.text and found.hint


def test_why_tells_of_starting_stopping_retrying_and_single_tasks():
    world = World()
    world.submit(job(1))
    assert world.scheduler.why("1", world.now).text == "job1 is being started: 1 task on n1."
    world.send(StopRequested("1"))
    assert world.scheduler.why("1", world.now).text == "job1 is being stopped: 1 task still to end."
    world.end_killed()
    with pytest.raises(NotFoundError):
        world.scheduler.why("1", world.now)
    world.submit(job(2))
    world.end(world.refs(2)[0], 251)
    text = world.scheduler.why("2", world.now).text
    assert text.startswith("job2 waits ") and "251 (JobGangAllocationTimeout)" in text
    world.submit(job(3, role(instances=6), gang=False))
    assert "job3 (2 tasks of 6) still wait: 1 CPU wanted" in world.scheduler.why("3", world.now).text


def test_why_tells_when_no_single_node_has_it():
    world = World((Node("n1", 4, 1024, (0, 1)), Node("n2", 4, 1024, (0, 1))))
    world.submit(job(1, role(instances=2, cpu=3, gpu=1)))
    world.submit(job(2, role(cpu=2)))
    assert "no node has enough of everything free at once" in world.scheduler.why("2", world.now).text


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 days")]
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_numbers_in_words():
    assert [memory(n) for n in (512, 1024, 1536, 24577)] == ["512 MB", "1 GB", "1.5 GB", "24577 MB"]
    assert [place_in_line(n) for n in (1, 2, 3, 4, 11, 21, 112)] == [
        "First",
        "Second",
        "Third",
        "4th",
        "11th",
        "21st",
        "112th",
    ]


def test_job_info_reads_a_spec():
    spec = {
        "name": "bert",
        "jobRetryCount": 2,
        "taskRoles": {
            "Ps_1": {"resourcePerInstance": {"cpu": 1, "memoryMB": 10, "gpu": 0}, "commands": ["true"]},
            "worker": {
                "instances": 3,
                "completion": {"minFailedInstances": 2, "minSucceededInstances": -1},
                "taskRetryCount": 4,
                "resourcePerInstance": {"cpu": 2, "memoryMB": 20, "gpu": 1, "ports": {"tb": 2}},
                "commands": ["true"],
            },
        },
        "defaults": {"virtualCluster": "lab"},
        "extras": {"gangAllocation": False, "hivedScheduler": {"jobPriorityClass": "oppo"}},
    }
    info = job_info(spec, id="7", user="ann", number=7, submitted_at=1.0)
    assert (info.name, info.vc, info.priority, info.gang, info.job_retry_count) == (
        "ann~bert",
        "lab",
        "oppo",
        False,
        2,
    )
    ps, worker = info.roles
    assert (ps.name, ps.instances, ps.min_failed, ps.min_succeeded) == ("ps1", 1, 1, 1)
    assert (worker.min_failed, worker.min_succeeded, worker.task_retry_count) == (2, -1, 4)
    assert worker.request.all_ports() == {"tb": 2, "ssh": 1, "http": 1}


def test_shares_in_numbers_and_fractions():
    shares = [VirtualCluster("a", share=0.29), VirtualCluster("b", gpu=2, cpu=500)]
    usage = Scheduler([Node("n", 100, 1000, (0, 1, 2, 3))], shares).usage().virtual_clusters
    assert (usage["a"].guaranteed.cpu, usage["a"].guaranteed.gpu) == (29, 1)
    assert (usage["b"].guaranteed.cpu, usage["b"].guaranteed.gpu, usage["b"].guaranteed.memory_mb) == (
        100,
        2,
        1000,
    )


def test_why_names_what_a_job_gave_way_to():
    world = World()
    world.submit(job(1, role(gpu=4), priority="oppo"))
    world.start(world.refs(1)[0])
    world.submit(job(2, role(gpu=2), user="bob"))
    world.end_killed()
    assert world.scheduler.why("1", world.now).text == (
        "job1 gave way to bob~job2 and waits: 4 GPUs wanted, 2 free; bob~job2 holds 2. "
        "First in the queue of `default`, priority oppo."
    )
    world.end(world.refs(2)[0])
    assert "gave way" not in world.scheduler.why("1", world.now).text


def test_a_discreet_cluster_names_nobody_elses_jobs():
    world = World(discreet=True)
    world.submit(job(1, role(gpu=4), priority="oppo"))
    world.start(world.refs(1)[0])
    world.submit(job(2, role(gpu=3), user="bob"))
    world.end_killed()
    world.submit(job(3, role(gpu=2), user="bob"))
    others = [world.scheduler.why("1", world.now).text, *(record.message for record in world.records)]
    assert not [text for text in others if "bob~" in text]
    assert "gave way to a job of another user and waits" in others[0]
    assert "a job of another user holds 3" in others[0]
    assert "bob~job2 holds 3" in world.scheduler.why("3", world.now).text


def test_a_quota_of_memory_is_told_in_its_unit():
    world = World(quotas={"ann": Quota(memory_mb=2048)})
    world.submit(job(1, role(memory_mb=1536)))
    world.submit(job(2, role(memory_mb=1024)))
    found = world.scheduler.why("2", world.now).text
    assert "1 GB of memory wanted, the quota of ann is 2 GB, 1.5 GB in use" in found
