# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What a client and a command line of 0.1 send still works.

data/client_0.1.json has their requests in the order of a job's life, one a line. They were written
by hand from the sources of 773427d, so that no old build is needed: `src/client/server_messages.cc`
(bodies), `plan_poller.cc` and `reporter.cc` (paths, and the members that are read of an answer),
`src/relay/plan_answers.cc`, and `src/cli/job_client_command.cc` and `profile_command.cc`.
"""

from __future__ import annotations

import json
from pathlib import Path

from serving import Server

pytest_plugins = ["server_fixture"]

REQUESTS = Path(__file__).parent / "data/client_0.1.json"


def test_requests_of_a_client_of_0_1_are_answered(server: Server) -> None:
    """Each has the status that it had, and the members that the old client reads."""
    job = ""
    for line in json.loads(REQUESTS.read_text()):
        path = line["path"].replace("{job}", job)
        status, answer = server.call(line["method"], path, line["body"])
        assert status == line["status"], (line["method"], path, answer)
        assert all(member in answer for member in line["has"]), (path, answer)
        job = job or f"/api/v1/jobs/{answer['id']}"
