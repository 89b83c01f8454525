"""Submitting a job once: a submit whose answer was an error is looked up before it is tried again."""

from __future__ import annotations

import json
import os

from openpaisdk.errors import (
    ConflictError,
    InvalidJobError,
    NotFoundError,
    OpenPAIError,
    RateLimitedError,
    ServerError,
    UnavailableError,
)
from openpaisdk.rest.calls import Calls
from openpaisdk.rest.jobs import parse_spec
from openpaisdk.transport.retry import may_pass, seconds_from, wait_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LARGEST = 100 * 1024
ATTEMPTS = 4
PATIENCE = 180.0


class Submission(Calls):
    """Submitting jobs."""

    def submit(self, spec: Mapping[str, Any] | str | bytes, *, key: str | None = None) -> dict[str, Any]:
        """Submit a job spec, as data or as text, and return at least its `user` and `name`.

        Never submits twice: where the answer is lost or an error of the server, the job is looked up first.
        `key` names this submission, so that our own server gives the same job again for the same key.
        """
        text = _text(spec, keep_json=self._is_local)
        if len(text) > LARGEST:
            raise InvalidJobError(
                f"the job spec has {len(text)} bytes, servers take at most {LARGEST}",
                hint="move long scripts and data into files",
            )
        data = dict(spec) if not isinstance(spec, (str, bytes)) else parse_spec(text.decode())
        name = data.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidJobError("name: the job spec has no name")
        headers = {
            "content-type": "text/yaml",
            "idempotency-key": key or os.urandom(16).hex(),
            "prefer": "refuse-unfit",
        }
        found = self._submit_once(name, data, text, headers)
        return {"user": self.user, "name": name, **found}

    def _submit_once(
        self, name: str, data: dict[str, Any], text: bytes, headers: dict[str, str]
    ) -> dict[str, Any]:
        began = self._clock()
        waited = 0.0
        attempt = 0
        in_doubt = unchecked = False
        while True:
            if not unchecked:
                try:
                    return self._post(text, headers)
                except ConflictError:
                    if in_doubt and self._was_accepted(name, data, began):
                        return {"status": 202}
                    raise
                except (UnavailableError, ServerError) as error:
                    failed: OpenPAIError = error
                    unchecked = _may_have_arrived(error)
                    in_doubt = in_doubt or unchecked
            repeat = may_pass(failed)
            if unchecked:
                accepted = self._was_accepted(name, data, began)
                if accepted:
                    return {"status": 202}
                unchecked = accepted is None
                repeat = repeat or unchecked
            wait = wait_before(failed, attempt)
            attempt += 1
            if not repeat or attempt >= ATTEMPTS or waited + wait > PATIENCE:
                if unchecked:
                    failed.hint = (
                        f"it may have been accepted: look with `opai job status {name}` before you repeat it"
                    )
                raise failed
            if self._notice is not None:
                self._notice(f"{failed.message}; submitting {name} again in {wait:g} s")
            self._sleep(wait)
            waited += wait

    def _post(self, text: bytes, headers: dict[str, str]) -> dict[str, Any]:
        response = self.request("POST", "/api/v2/jobs", headers=headers, body=text, safe=False)
        found = _object(response.text)
        if not found:
            from openpaisdk.rest.failures import not_json

            raise not_json(response)
        return found

    def _was_accepted(self, name: str, data: dict[str, Any], began: float) -> bool | None:
        """Whether the job that the server has under this name is this one; None where it cannot tell now."""
        try:
            response = self.request("GET", self.job_path(name))
            config = parse_spec(self.request("GET", self.job_path(name) + "/config").text)
        except NotFoundError:
            return False
        except (UnavailableError, ServerError):
            return None
        status = _object(response.text).get("jobStatus", {})
        return _same(config, data) and _recent(
            status.get("submissionTime"), response.headers.get("date"), self._clock() - began
        )


def _may_have_arrived(error: OpenPAIError) -> bool:
    """Whether the server may have acted on a request that ended with this error."""
    if isinstance(error, RateLimitedError):
        return False
    return bool(getattr(error, "sent", True)) and getattr(error, "reason", "") not in ("garbled", "tls")


def _text(spec: Mapping[str, Any] | str | bytes, keep_json: bool) -> bytes:
    if isinstance(spec, bytes):
        return spec
    if isinstance(spec, str):
        return spec.encode()
    if spec.get("secrets") and not keep_json:
        # OpenPAI hides secrets only in YAML text; sent as JSON they would be shown to everybody.
        from openpaisdk.protocol import dump

        return dump(dict(spec)).encode()
    return json.dumps(spec, ensure_ascii=False).encode()


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _same(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    def comparable(spec: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in spec.items() if key != "secrets"}
        kept["protocolVersion"] = str(kept.get("protocolVersion"))
        return kept

    # Through JSON, so that tuples are lists and keys are texts on both sides.
    return comparable(json.loads(json.dumps(theirs))) == comparable(json.loads(json.dumps(ours)))


def _recent(submitted_ms: Any, server_date: str | None, elapsed: float) -> bool:
    """Whether a submission time lies after the begin of this submit, by the server's own clock.

    Tells our job from an older one with the same name and spec. Times are cut to whole seconds.
    """
    if not isinstance(submitted_ms, (int, float)) or not server_date:
        return True
    since_epoch = seconds_from(server_date, now=0.0)
    return since_epoch is None or submitted_ms / 1000 >= since_epoch - elapsed - 2.0
