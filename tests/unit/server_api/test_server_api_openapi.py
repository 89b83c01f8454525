"""The OpenAPI description: complete, consistent and the same as the code."""

from __future__ import annotations

import json
import re
from typing import Any

from openpaisdk.server.app import collect_endpoints


def test_it_describes_every_endpoint(anonymous: Any) -> None:
    described = anonymous.get("/api/v2/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    for found in collect_endpoints():
        path = found.paths[0].replace(":path}", "}")
        method = "get" if found.method == "*" else found.method.lower()
        operation = described["paths"][path][method]
        assert operation["summary"], f"{found} has no summary"
        assert str(found.status) in operation["responses"]
        named = set(re.findall(r"\{(\w+)\}", path))
        assert named == {item["name"] for item in operation.get("parameters", []) if item["in"] == "path"}
        assert ("security" in operation) == (found.guard != "none")


def test_references_lead_somewhere_and_operations_have_one_name_each(anonymous: Any) -> None:
    text = anonymous.get("/api/v2/openapi.json").text
    described = json.loads(text)
    for name in set(re.findall(r'"#/components/schemas/([^"]+)"', text)):
        assert name in described["components"]["schemas"]
    names = [operation["operationId"] for item in described["paths"].values() for operation in item.values()]
    assert len(names) == len(set(names))


def test_bodies_and_queries_are_described(anonymous: Any) -> None:
    described = anonymous.get("/api/v2/openapi.json").json()
    created = described["paths"]["/api/v2/users"]["post"]
    reference = created["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = described["components"]["schemas"][reference]
    assert schema["required"] == ["username", "password"] and schema["additionalProperties"] is False
    assert {"201", "400", "401", "403", "404", "409", "413", "429"} <= set(created["responses"])
    listed = described["paths"]["/api/v2/virtual-clusters"]["get"]["parameters"]
    assert [item["name"] for item in listed] == ["nodes"]


def test_headers_that_matter_are_described(anonymous: Any) -> None:
    paths = anonymous.get("/api/v2/openapi.json").json()["paths"]
    submit = paths["/api/v2/jobs"]["post"]["parameters"]
    assert {item["name"] for item in submit if item["in"] == "header"} == {"Idempotency-Key", "Prefer"}
    log = next(item["get"] for path, item in paths.items() if path.endswith("/logs/{name}"))
    assert "206" in log["responses"] and "Range" in {item["name"] for item in log["parameters"]}
