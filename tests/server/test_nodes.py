# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The list of nodes, from what ranks report."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, check, create, register_all
from drill import PROFILE, SETTINGS
from serving import Server

pytest_plugins = ["server_fixture"]

CONFLICT = "its power is capped at 300 W (default 400 W), so that high clocks may not be reached"


def nodes(server: Server, query: str = "") -> list[Any]:
    """Return the nodes."""
    status, answer = server.call("GET", "/api/v1/nodes" + query)
    assert status == 200, answer
    check(server, "NodeList", answer)
    return list(answer["nodes"])


def report(server: Server, path: str, *clients: dict[str, Any], relay: str = "") -> None:
    """Report as clients do, perhaps through a relay."""
    headers = {"Perseus-Relay": relay} if relay else {}
    body = json.dumps({"reports": [], "clients": clients}).encode()
    request = urllib.request.Request(server.url + path + "/iterations", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 202


def test_nodes_are_what_their_ranks_tell(server: Server) -> None:
    """Versions, refusals, clock conflicts, and when they were heard; null where nobody told."""
    assert nodes(server) == []
    path = create(server, name="job")
    register_all(server, path)
    silent = nodes(server)
    assert [node["node"] for node in silent] == ["n0", "n1"]
    assert [gpu["rank"] for gpu in silent[1]["gpus"]] == [2, 3]
    assert silent[0]["heard_at"] is None
    assert silent[0]["gpus"][0]["agent_version"] is None
    report(
        server,
        path,
        {
            "rank": 0,
            "client": "c0",
            "process": "pid 7 on n0",
            "version": "0.1.0",
            "state": "following",
            "refused": 3,
            "agent": {"version": "0.0.9", "clock_conflicts": [CONFLICT]},
        },
        {"rank": 1, "client": "c1", "state": "released", "error": "no agent"},
        relay="0.0.8",
    )
    told, other = nodes(server)
    assert other == silent[1]
    assert abs(told["heard_at"] - time.time()) < 60
    assert (told["refused"], told["complaining"], told["clock_conflicts"]) == (3, 1, 1)
    gpu, second = told["gpus"]
    assert gpu["clock_conflicts"] == [CONFLICT]
    assert gpu["process"] == "pid 7 on n0"
    versions = ("client_version", "agent_version", "relay_version")
    assert [gpu[name] for name in versions] == ["0.1.0", "0.0.9", "0.0.8"]
    assert [second[name] for name in versions] == [None, None, "0.0.8"]
    assert second["error"] == "no agent"
    assert (gpu["job_name"], f"/api/v1/jobs/{gpu['job']}") == ("job", path)
    # The next word counts, and a job that is over has no nodes.
    report(server, path, {"rank": 0, "client": "c0", "state": "closed"})
    assert nodes(server)[0]["gpus"][0]["relay_version"] is None
    assert server.call("POST", path + "/finish")[0] == 200
    assert nodes(server) == []


def test_nodes_are_searched_and_come_page_by_page(server: Server) -> None:
    """A query that does not fit is refused."""
    path = create(server)
    register_all(server, path)
    report(server, path, {"rank": 2, "client": "c", "state": "following", "refused": 1})
    assert [node["node"] for node in nodes(server, "?search=1")] == ["n1"]
    assert [node["node"] for node in nodes(server, "?troubled=1")] == ["n1"]
    assert nodes(server, "?search=n2") == []
    first = server.call("GET", "/api/v1/nodes?limit=1")[1]
    assert ([node["node"] for node in first["nodes"]], first["next"]) == (["n0"], "n0")
    last = server.call("GET", "/api/v1/nodes?limit=1&after=n0")[1]
    assert ([node["node"] for node in last["nodes"]], last["next"]) == (["n1"], None)
    for query in ("limit=0", "troubled=2", "node=n0"):
        assert server.call("GET", f"/api/v1/nodes?{query}")[0] == 422, query
    # A node need have no name.
    unnamed = create(server, client_key="unnamed")
    for rank in range(2):
        body = {"rank": rank, "dp_rank": 0, "pp_rank": rank}
        assert server.call("POST", unnamed + "/ranks", body)[0] == 200
    assert [node["node"] for node in nodes(server)] == ["", "n0", "n1"]
    assert server.call("GET", "/api/v1/nodes?limit=1&after=")[1]["nodes"][0]["node"] == "n0"


def test_an_answer_is_bounded_however_many_ranks_a_node_has(server: Server) -> None:
    """Sums are of all ranks; those in trouble are among the few that are shown."""
    names = [f"n{number:02}" for number in range(20)]
    each, most = 65, 64
    path = create(server, job=SETTINGS | {"data_parallel": len(names) * each // 2})
    for rank in range(len(names) * each):
        place = {"dp_rank": rank // 2, "pp_rank": rank % 2, "node": names[rank // each]}
        status, answer = server.call("POST", path + "/ranks", {"rank": rank, **place})
        assert status == 200, answer
    last = each - 1  # Of the first node.
    agent = {"version": "0.2.0"}
    client = {"client": "c", "state": "following", "refused": 2, "agent": agent}
    report(server, path, {"rank": last, **client}, {"rank": 0, **client, "refused": 0})
    first, *others = nodes(server, "?limit=1000")
    assert [node["node"] for node in (first, *others)] == names[:16], "16 times 64 GPUs"
    numbers = ("gpu_count", "leased", "refused", "complaining", "clock_conflicts")
    assert [first[name] for name in numbers] == [each, 2, 2, 0, 0]
    shown = [gpu["rank"] for gpu in first["gpus"]]
    assert shown == [*range(most - 1), last]
    assert all(len(node["gpus"]) == most for node in others)
    status, answer = server.call("GET", "/api/v1/nodes?limit=1000")
    assert answer["next"] == names[15]
    rest = server.call("GET", f"/api/v1/nodes?limit=1000&after={names[15]}")[1]
    assert ([node["node"] for node in rest["nodes"]], rest["next"]) == (names[16:], None)
    assert [node["node"] for node in nodes(server, "?troubled=1")] == names[:1]


def test_what_an_agent_says_is_bounded(server: Server) -> None:
    """A report that says too much is refused or cut, not kept whole."""
    path = create(server)
    register_all(server, path)
    long = {"rank": 0, "client": "c", "agent": {"version": "1" * 65}}
    body = {"reports": [], "clients": [long]}
    assert server.call("POST", path + "/iterations", body)[0] == 422
    report(
        server,
        path,
        {"rank": 0, "client": "c", "agent": {"clock_conflicts": ["x" * 1000] * 100}},
        relay="2" * 1000,
    )
    gpu = nodes(server)[0]["gpus"][0]
    assert len(gpu["clock_conflicts"]) == 16
    assert len(gpu["clock_conflicts"][0]) == 512
    assert len(gpu["relay_version"]) == 64


def test_a_bound_token_sees_its_jobs_nodes(tmp_path: Path) -> None:
    """Others' nodes are not its business."""
    tokens = tmp_path / "tokens"
    tokens.write_text("operate 0123456789abcdef all\nread fedcba9876543210 team key=team-\n")
    tokens.chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tokens))

    def ask(token: str, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(server.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    for key in ("team-1", "other-1"):
        job = {"client_key": key, "job": SETTINGS, "profile_csv": PROFILE}
        path = f"/api/v1/jobs/{ask('0123456789abcdef', 'POST', '/api/v1/jobs', job)['id']}"
        rank = {"rank": 0, "dp_rank": 0, "pp_rank": 0, "node": f"node-of-{key}"}
        ask("0123456789abcdef", "POST", path + "/ranks", rank)
    listed = ask("fedcba9876543210", "GET", "/api/v1/nodes")["nodes"]
    assert [node["node"] for node in listed] == ["node-of-team-1"]
    assert len(ask("0123456789abcdef", "GET", "/api/v1/nodes")["nodes"]) == 2
    assert server.stop() == 0
