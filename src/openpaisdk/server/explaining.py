"""How a finished job ended, in words."""

from __future__ import annotations

from openpaisdk.protocol import exit_spec
from openpaisdk.server import views
from openpaisdk.server.jobs import JobStore
from openpaisdk.server.rows import JobRow


def how_it_ended(store: JobStore, job: JobRow) -> tuple[str, str | None]:
    """(text, hint) about the last attempt of a job."""
    if job.exit_code == 0:
        return f"{job.path} succeeded", None
    if job.state == "STOPPED":
        return f"{job.path} was stopped", f"opai job clone {job.name} runs it again"
    spec = exit_spec(job.exit_code)
    attempt = None if job.attempt is None else store.attempt(job.id, job.attempt)
    outcome = views.outcome_of(attempt.outcome) if attempt else {}
    runtime = outcome.get("runtime") or {}
    raw = runtime.get("originUserExitCode")
    text = f"{job.path} failed with exit code {job.exit_code}"
    if raw not in (None, job.exit_code):
        text += f" (its command exited with {raw})"
    said = [text]
    if spec and (spec.reason or spec.phrase):
        said.append((spec.reason or spec.phrase).strip())
    if runtime.get("matchedUserLogString"):
        said.append(f"Its log says {runtime['matchedUserLogString']!r}")
    elif outcome.get("launcher"):
        said.append(str(outcome["launcher"]).strip())
    text = " ".join(f"{sentence.rstrip('.')}." for sentence in said)
    solution = list(spec.solution or ()) if spec else []
    return text, solution[0] if solution else f"look at opai job logs {job.name}"
