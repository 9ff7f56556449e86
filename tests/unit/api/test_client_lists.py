# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of lists, and lists that are restarted."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, status

NODES = Resource("", "v1", "Node", "nodes", False)


def page(*names: str, token: str = "", version: str = "10", remaining: int | None = None) -> Answer:
    metadata: dict = {"resourceVersion": version, "continue": token}
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return Answer(
        body={
            "kind": "NodeList",
            "apiVersion": "v1",
            "metadata": metadata,
            "items": [{"metadata": {"name": name}} for name in names],
        }
    )


def names(items: list[dict]) -> list[str]:
    return [item["metadata"]["name"] for item in items]


EXPIRED = status(410, "the provided continue parameter is too old", "Expired")


def test_pages_follow_the_token(fake: Fake, client: Client) -> None:
    fake.answers = [page("a", "b", token="t1", remaining=1), page("c")]
    pages = list(client.pages(NODES, label_selector="x=y", field_selector="f=g"))
    assert [names(entry.items) for entry in pages] == [["a", "b"], ["c"]]
    assert pages[0].remaining == 1 and pages[1].resource_version == "10"
    assert fake.received[0].query == {"labelSelector": "x=y", "fieldSelector": "f=g", "limit": "500"}
    assert fake.received[1].query["continue"] == "t1" and fake.received[1].query["labelSelector"] == "x=y"


def test_items_have_their_kind_also_as_metadata_only(fake: Fake, client: Client) -> None:
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}
    fake.answers = [
        Answer(body={"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "1"}, "items": [partial]})
    ]
    item = client.list(NODES, metadata_only=True).items[0]
    assert (item["apiVersion"], item["kind"]) == ("v1", "Node")
    assert fake.received[0].headers["Accept"] == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def test_an_expired_token_restarts_and_repeats_no_item(fake: Fake, client: Client) -> None:
    fake.answers = [
        page("a", "b", token="t1", version="10"),
        EXPIRED,
        page("a", "b", "b2", token="t2", version="20"),
        page("c", version="20"),
    ]
    pages = list(client.pages(NODES))
    assert [name for entry in pages for name in names(entry.items)] == ["a", "b", "b2", "c"]
    # A watch from the version of the first list also has the changes to items of its first page.
    assert {entry.resource_version for entry in pages} == {"10"}


def test_a_list_is_consistent(fake: Fake, client: Client) -> None:
    fake.answers = [
        page("a", "deleted", token="t1", version="10"),
        EXPIRED,
        page("a", token="t2", version="20"),
        page("c", version="20"),
    ]
    found = client.list(NODES)
    assert (names(found.items), found.resource_version) == (["a", "c"], "20")


def test_a_list_that_always_expires_fails(fake: Fake, client: Client) -> None:
    fake.answers = lambda request: EXPIRED if "continue" in request.query else page("a", token="t")
    with pytest.raises(e.Gone):
        client.list(NODES)
    assert len(fake.received) == 6


def test_an_incomplete_page_is_requested_again(fake: Fake, client: Client) -> None:
    fake.answers = [page("a", token="t1"), Answer(body=page("b" * 300).body, cut=80), status(503), page("b")]
    assert names(client.list(NODES).items) == ["a", "b"]
    assert [request.query.get("continue") for request in fake.received] == [None, "t1", "t1", "t1"]


def test_rows_have_the_names_of_their_columns(fake: Fake, client: Client) -> None:
    def table(*cells: str, token: str = "") -> Answer:
        columns = [{"name": "Name", "type": "string"}, {"name": "Nominated Node", "type": "string"}] if token else []
        rows = [{"cells": [cell, "<none>"], "object": None} for cell in cells]
        return Answer(
            body={"kind": "Table", "metadata": {"continue": token}, "columnDefinitions": columns, "rows": rows}
        )

    fake.answers = [table("a", "b", token="t1"), table("c")]
    rows = list(client.rows(NODES))
    assert rows == [{"name": name, "nominated node": "<none>"} for name in ("a", "b", "c")]
    assert fake.received[0].headers["Accept"] == "application/json;as=Table;g=meta.k8s.io;v=v1"
    assert fake.received[0].query == {"includeObject": "None", "limit": "500"}
    assert fake.received[1].query["continue"] == "t1"
