"""Jobs: list, look at, start and stop, tag, and explain."""

from __future__ import annotations

from openpaisdk.errors import NotFoundError, UnavailableError, UsageError
from openpaisdk.rest.calls import Calls, lacks_api

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

STATES = ("WAITING", "RUNNING", "STOPPING", "SUCCEEDED", "STOPPED", "FAILED")
TERMINAL = ("SUCCEEDED", "FAILED", "STOPPED")
PAGE = 500


class Jobs(Calls):
    """Jobs."""

    def jobs(
        self,
        *,
        username: str | Sequence[str] | None = None,
        all_users: bool = False,
        state: str | Sequence[str] | None = None,
        vc: str | Sequence[str] | None = None,
        keyword: str | None = None,
        priority: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        without_tags: str | Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        order: str | None = None,
        name_only: bool = False,
    ) -> list[Any]:
        """Jobs, mine unless told, newest first: rows as the server gives them, or names with `name_only`.

        `order` is `field,ASC` or `field,DESC`. Names of other people's jobs are `user~name`.
        """
        query = _filters(username, state, vc, keyword, priority, tags, without_tags)
        if not all_users and username is None:
            query["username"] = self.user
        query.update(limit=limit, offset=offset or None, order=order)
        rows = self._rows(query)
        if any("submissionTime" not in row for row in rows[:1]):
            rows = _select(rows, query)
        return [self._name(row) for row in rows] if name_only else list(rows)

    def _rows(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        found = self._json("GET", "/api/v2/jobs", query=query, shape=(dict, list))
        rows = found.get("data", []) if isinstance(found, dict) else found
        if not all(isinstance(row, dict) and "name" in row for row in rows[:1]):
            raise UnavailableError(
                f"{self.portal_uri} answered with something that is not a list of jobs",
                hint="check that pai_uri is the address of an OpenPAI cluster (`opai cluster list`)",
            )
        return list(rows)

    def _name(self, row: dict[str, Any]) -> str:
        mine = not row.get("username") or row["username"] == self.user
        return str(row["name"]) if mine else f"{row['username']}~{row['name']}"

    def iter_jobs(self, *, page: int = PAGE, limit: int | None = None, **filters: Any) -> Iterator[Any]:
        """The same, page by page, for lists that should not be held at once."""
        offset = filters.pop("offset", 0)
        left = limit
        while left is None or left > 0:
            wanted = page if left is None else min(page, left)
            rows = self.jobs(limit=wanted, offset=offset, **filters)
            yield from rows
            if len(rows) < wanted:
                return
            offset += len(rows)
            left = None if left is None else left - len(rows)

    def jobs_page(
        self,
        *,
        username: str | Sequence[str] | None = None,
        all_users: bool = False,
        state: str | Sequence[str] | None = None,
        vc: str | Sequence[str] | None = None,
        keyword: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        order: str | None = None,
    ) -> dict[str, Any]:
        """One page and how many there are in all: `{"totalCount": n, "data": [...]}`."""
        query = _filters(username, state, vc, keyword, None, None, None)
        if not all_users and username is None:
            query["username"] = self.user
        query.update(limit=limit, offset=offset or None, order=order, withTotalCount=True)
        found = self._json("GET", "/api/v2/jobs", query=query, shape=(dict, list))
        if isinstance(found, dict):
            return found
        whole = _select(found, {**query, "limit": None, "offset": None})
        end = None if limit is None else offset + limit
        return {"totalCount": len(whole), "data": whole[offset:end]}

    def job(self, name: str, user: str | None = None, attempt: int | None = None) -> dict[str, Any]:
        """One job in detail, at its latest attempt unless told."""
        path = self.job_path(name, user)
        if attempt is None:
            return self._object("GET", path)
        try:
            return self._object("GET", f"{path}/attempts/{int(attempt)}")
        except NotFoundError as error:
            if not lacks_api(error):
                raise
        # Servers before 1.3 show the latest attempt only.
        found = self._object("GET", path)
        if found.get("jobStatus", {}).get("attemptId", attempt) != attempt:
            raise NotFoundError(
                f"attempt {attempt} of {name!r} is over, and this server shows the latest only",
                code="NoJobError",
            )
        return found

    def job_config_text(self, name: str, user: str | None = None) -> str:
        """The spec a job was submitted with, secrets masked, as the server gives it (mostly JSON)."""
        return self.request("GET", self.job_path(name, user) + "/config").text

    def job_config(self, name: str, user: str | None = None) -> dict[str, Any]:
        """The spec a job was submitted with, secrets masked."""
        return parse_spec(self.job_config_text(name, user))

    def stop(self, name: str, user: str | None = None) -> dict[str, Any]:
        """Ask a job to stop; one that is over stays as it is."""
        return self._execute(name, user, "STOP")

    def start(self, name: str, user: str | None = None) -> dict[str, Any]:
        """Ask a job to start; OpenPAI accepts it but does not revive a stopped job."""
        return self._execute(name, user, "START")

    def _execute(self, name: str, user: str | None, value: str) -> dict[str, Any]:
        path = self.job_path(name, user) + "/executionType"
        return self._object("PUT", path, send={"value": value}, safe=True)

    def add_tag(self, name: str, tag: str) -> dict[str, Any]:
        """Tag a job; twice is once."""
        return self._object("PUT", self.job_path(name) + "/tag", send={"value": _tag(tag)}, safe=True)

    def remove_tag(self, name: str, tag: str) -> dict[str, Any]:
        """Take a tag off a job."""
        return self._object("DELETE", self.job_path(name) + "/tag", send={"value": _tag(tag)})

    def events(self, name: str, type: str | None = None) -> list[dict[str, Any]]:
        """What happened to a job, newest first; `type` Normal or Warning. None on servers before 1.3."""
        try:
            found = self._json("GET", self.job_path(name) + "/events", query={"type": type})
        except NotFoundError as error:
            if lacks_api(error):
                return []
            raise
        return list(found.get("data", []) if isinstance(found, dict) else found)

    def delete_job(self, name: str, user: str | None = None) -> None:
        """Delete a finished job and its files; only our own server can."""
        self.request("DELETE", self.job_path(name, user))

    def ssh_info(self, name: str, user: str | None = None) -> list[dict[str, Any]]:
        """Where each running task can be reached by ssh: `task`, `host`, `port`, `node`."""
        detail = self.job(name, user)
        rows = []
        for role, found in detail.get("taskRoles", {}).items():
            for status in found.get("taskStatuses", []):
                port = str((status.get("containerPorts") or {}).get("ssh", "")).partition(",")[0]
                if status.get("containerIp") and port.isdigit():
                    rows.append(
                        {
                            "task": f"{role}/{status.get('taskIndex', 0)}",
                            "host": status["containerIp"],
                            "port": int(port),
                            "node": status.get("containerNodeName"),
                            "state": status.get("taskState"),
                        }
                    )
        return rows

    def why(self, name: str, user: str | None = None) -> dict[str, Any]:
        """Why a job waits, or how it ended, in words: `job`, `state`, `text`, `hint`."""
        try:
            return self._object("GET", self.job_path(name, user) + "/why")
        except NotFoundError as error:
            if not lacks_api(error):
                raise
        from openpaisdk.rest.reasons import reason

        return reason(
            name, self.job(name, user), self.events(name if "~" in name or not user else f"{user}~{name}")
        )


def parse_spec(text: str) -> dict[str, Any]:
    """A job spec from JSON or YAML text; YAML is loaded only where it is needed."""
    import json

    try:
        found = json.loads(text)
    except ValueError:
        from openpaisdk.protocol import load

        found = load(text).data
    if not isinstance(found, dict):
        raise UsageError("the job spec is not a mapping")
    return found


def _tag(tag: str) -> str:
    if not tag or "," in tag:
        raise UsageError(f"{tag!r} cannot be a tag", hint="a tag is any text without a comma")
    return tag


def _filters(
    username: str | Sequence[str] | None,
    state: str | Sequence[str] | None,
    vc: str | Sequence[str] | None,
    keyword: str | None,
    priority: str | Sequence[str] | None,
    tags: str | Sequence[str] | None,
    without_tags: str | Sequence[str] | None,
) -> dict[str, Any]:
    wanted = _words(state)
    states = [item.upper() for item in wanted] if wanted else None
    unknown = [item for item in states or [] if item not in STATES]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not the state of a job", hint="states are " + ", ".join(STATES))
    return {
        "username": _words(username),
        "state": states,
        "vc": _words(vc),
        "keyword": keyword,
        "jobPriority": _words(priority),
        "tagsContain": _words(tags),
        "tagsNotContain": _words(without_tags),
    }


def _words(value: str | Sequence[str] | None) -> list[str] | None:
    if value is None:
        return None
    return [item for item in value.split(",") if item] if isinstance(value, str) else list(value)


def _select(rows: list[dict[str, Any]], query: dict[str, Any]) -> list[dict[str, Any]]:
    """Filter, sort and cut what a server before 1.2 sent, which knows only `username`."""
    word = query.get("keyword")
    users = query.get("username")
    users = [users] if isinstance(users, str) else users
    found = [
        row
        for row in rows
        if (not users or row.get("username") in users)
        and (not query.get("state") or row.get("state") in query["state"])
        and (not query.get("vc") or row.get("virtualCluster") in query["vc"])
        and (not word or any(word in str(row.get(key)) for key in ("username", "name", "virtualCluster")))
    ]
    field, _, direction = (query.get("order") or "submissionTime,DESC").partition(",")
    key = {
        "jobName": "name",
        "submissionTime": "createdTime",
        "vc": "virtualCluster",
        "completionTime": "completedTime",
    }.get(field, field)
    found.sort(key=lambda row: (row.get(key) is not None, row.get(key) or 0), reverse=direction != "ASC")
    offset = query.get("offset") or 0
    limit = query.get("limit")
    return found[offset:] if limit is None else found[offset : offset + limit]
