"""The few v1 job routes that shipped clients still ask for, answered by their successors."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from openpaisdk.server.http import Call, endpoint
from openpaisdk.server.routes import jobs

_OF_USER = "/api/v1/user/{user}/jobs"
_JOB = _OF_USER + "/{name}"


def _as_v2(call: Call) -> Call:
    call.path = {"job": f"{call.path['user']}~{call.path['name']}"}
    return call


@endpoint("GET", "/api/v1/jobs", query=jobs.ListQuery, rate="list", returns=list[dict[str, Any]])
async def list_jobs(call: Call) -> Any:
    """The job list at its old address."""
    return await jobs.list_jobs(call)


@endpoint("GET", _OF_USER, query=jobs.ListQuery, rate="list", returns=list[dict[str, Any]])
async def list_jobs_of(call: Call) -> Any:
    """The jobs of one user."""
    call.query = replace(call.query, username=call.path["user"])
    return await jobs.list_jobs(call)


@endpoint("GET", _JOB, returns=dict[str, Any])
async def get_job(call: Call) -> Any:
    """One job; VS Code asks here whether a name is still free."""
    return await jobs.get_job(_as_v2(call))


@endpoint("GET", _JOB + "/config", returns=dict[str, Any], media="text/yaml")
async def get_job_config(call: Call) -> Any:
    """The spec of a job at its old address."""
    return await jobs.get_job_config(_as_v2(call))


@endpoint(
    "PUT",
    _JOB + "/executionType",
    body=jobs.ExecutionType,
    status=202,
    returns=jobs.Accepted,
    errors=(403,),
)
async def set_execution_type(call: Call) -> Any:
    """Stop a job at its old address."""
    return await jobs.set_execution_type(_as_v2(call))


@endpoint("GET", _JOB + "/ssh")
async def get_ssh(call: Call) -> Any:
    """Always refused, as at the new address."""
    return await jobs.get_ssh(_as_v2(call))


ENDPOINTS = [list_jobs, list_jobs_of, get_job, get_job_config, set_execution_type, get_ssh]
