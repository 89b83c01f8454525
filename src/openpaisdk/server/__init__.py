"""The embedded cluster: OpenPAI's REST API and a durable queue; `python -m openpaisdk.server` starts it."""
