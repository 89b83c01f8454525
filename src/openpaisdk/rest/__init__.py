"""The operations of OpenPAI's REST API, one module per resource; `openpaisdk.core.Cluster` joins them."""
