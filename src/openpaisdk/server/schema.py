"""The tables about jobs: a row per job, job attempt, task, task attempt and event; counters for the list."""

from __future__ import annotations

# Times are epoch milliseconds. `version` grows with every visible change of a job: caches compare it.
# Every index below serves an order or a filter that the portal and the command line offer; SQLite appends the
# row id to each, so that equal values keep a stable order. `jobs_name` covers what keywords are sought in.
# A job without a priority class has '~', which sorts after every class as the contract wants nulls to.
SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user TEXT NOT NULL, name TEXT NOT NULL, debug_id TEXT NOT NULL, uid TEXT NOT NULL,
    state TEXT NOT NULL, sub_state TEXT NOT NULL, execution_type TEXT NOT NULL DEFAULT 'START',
    retries INTEGER NOT NULL DEFAULT 0, user_retries INTEGER NOT NULL DEFAULT 0, retry_at REAL,
    retry_delay REAL,
    submitted INTEGER NOT NULL, created INTEGER, launched INTEGER, completed INTEGER, exit_code INTEGER,
    vc TEXT NOT NULL, gpus INTEGER NOT NULL, tasks INTEGER NOT NULL, roles INTEGER NOT NULL,
    priority TEXT NOT NULL DEFAULT '~',
    tags TEXT NOT NULL DEFAULT '[]', role_names TEXT NOT NULL, attempt INTEGER,
    submit_key TEXT, version INTEGER NOT NULL DEFAULT 0,
    UNIQUE (user, name)
);
CREATE UNIQUE INDEX IF NOT EXISTS jobs_submit_key ON jobs (user, submit_key) WHERE submit_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_live ON jobs (id) WHERE sub_state <> 'Completed';
CREATE INDEX IF NOT EXISTS jobs_submitted ON jobs (submitted);
CREATE INDEX IF NOT EXISTS jobs_user ON jobs (user, submitted);
CREATE INDEX IF NOT EXISTS jobs_user_state ON jobs (user, state, submitted);
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (state, submitted);
CREATE INDEX IF NOT EXISTS jobs_vc ON jobs (vc, submitted);
CREATE INDEX IF NOT EXISTS jobs_vc_state ON jobs (vc, state, submitted);
CREATE INDEX IF NOT EXISTS jobs_priority ON jobs (priority, submitted);
CREATE INDEX IF NOT EXISTS jobs_name ON jobs (name, user, vc);
CREATE INDEX IF NOT EXISTS jobs_retries ON jobs (retries);
CREATE INDEX IF NOT EXISTS jobs_tasks ON jobs (tasks);
CREATE INDEX IF NOT EXISTS jobs_gpus ON jobs (gpus);
CREATE INDEX IF NOT EXISTS jobs_completed ON jobs (completed IS NULL, completed);

CREATE TABLE IF NOT EXISTS job_specs (
    job_id INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE, spec TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS job_tags (
    tag TEXT NOT NULL, job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, job_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS job_tags_job ON job_tags (job_id);

CREATE TABLE IF NOT EXISTS job_attempts (
    job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, attempt INTEGER NOT NULL,
    uid TEXT NOT NULL, sub_state TEXT NOT NULL,
    created INTEGER, launched INTEGER, completed INTEGER, exit_code INTEGER, trigger TEXT, outcome TEXT,
    PRIMARY KEY (job_id, attempt)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tasks (
    job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, attempt INTEGER NOT NULL,
    role TEXT NOT NULL, idx INTEGER NOT NULL, uid TEXT NOT NULL, sub_state TEXT NOT NULL,
    task_attempt INTEGER NOT NULL DEFAULT 0, retries INTEGER NOT NULL DEFAULT 0,
    user_retries INTEGER NOT NULL DEFAULT 0, retry_at REAL,
    created INTEGER, launched INTEGER, completed INTEGER, exit_code INTEGER,
    PRIMARY KEY (job_id, attempt, role, idx)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task_attempts (
    job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, attempt INTEGER NOT NULL,
    role TEXT NOT NULL, idx INTEGER NOT NULL, task_attempt INTEGER NOT NULL,
    uid TEXT NOT NULL, sub_state TEXT NOT NULL, node TEXT, ip TEXT, ports TEXT NOT NULL DEFAULT '{}',
    gpus TEXT NOT NULL DEFAULT '', handle TEXT, kill_code INTEGER,
    created INTEGER, launched INTEGER, completed INTEGER, exit_code INTEGER, outcome TEXT,
    PRIMARY KEY (job_id, attempt, role, idx, task_attempt)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS job_events (
    id INTEGER PRIMARY KEY, job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    role TEXT, idx INTEGER, pod_uid TEXT, type TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL,
    first INTEGER NOT NULL, last INTEGER NOT NULL, count INTEGER NOT NULL DEFAULT 1, component TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS job_events_job ON job_events (job_id);

CREATE TABLE IF NOT EXISTS job_counts (
    user TEXT NOT NULL, vc TEXT NOT NULL, state TEXT NOT NULL, priority TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (user, vc, state, priority)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS jobs_counted AFTER INSERT ON jobs BEGIN
    INSERT INTO job_counts VALUES (NEW.user, NEW.vc, NEW.state, NEW.priority, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER IF NOT EXISTS jobs_recounted AFTER UPDATE OF state ON jobs WHEN OLD.state <> NEW.state BEGIN
    UPDATE job_counts SET n = n - 1
        WHERE user = OLD.user AND vc = OLD.vc AND state = OLD.state AND priority = OLD.priority;
    INSERT INTO job_counts VALUES (NEW.user, NEW.vc, NEW.state, NEW.priority, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER IF NOT EXISTS jobs_uncounted AFTER DELETE ON jobs BEGIN
    UPDATE job_counts SET n = n - 1
        WHERE user = OLD.user AND vc = OLD.vc AND state = OLD.state AND priority = OLD.priority;
END;
"""
