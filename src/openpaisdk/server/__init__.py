"""The embedded cluster: OpenPAI's REST API in front of a durable queue, started as `python -m openpaisdk.server`."""
