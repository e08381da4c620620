# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Kill a server at random moments; whatever it acknowledged must be there.

python tests/server/drill.py --perseus build/release/src/cli/perseus --kills 200

One thread registers, profiles (also again, while plans are in force), straggles,
moves points, finishes and deletes; SIGKILL comes at a random moment; a new process on
the same store must know every fact that was acknowledged, and give every rank of a
complete job its plan.

With --store postgresql (or pgbouncer: through that in transaction mode) the
thread speaks to --servers servers on one PostgreSQL, of which one is active, through a
balancer; at a random moment one of them or PostgreSQL gets SIGKILL, while the thread
goes on.

With --stops 50 (and --store postgresql or pgbouncer) nobody is killed: the active one of two
servers is stopped so often, with requests at it whose clients give up; see stops.py.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
from cluster import Cluster
from serving import GoneError, Server
from stops import run_stops

PROFILE = "stage,instruction,frequency,time,energy\n" + "".join(
    f"{stage},{name},{clock},{base * 1400 / clock},{100 * base * (clock / 1400) ** 2}\n"
    for stage, name, base in (
        (0, "forward", 1.0),
        (0, "backward", 2.0),
        (1, "forward", 1.5),
        (1, "backward", 3.0),
    )
    for clock in (1400, 1200, 1000)
)
SETTINGS = {
    "schedule": "1f1b",
    "microbatches": 2,
    "stages": 2,
    "data_parallel": 2,
    "blocking_power": 20,
    "effort": 0.05,
}
RANKS = 4
# Generous: only a hang misses it. --plan-seconds 5 is what we promise.
PLAN_SECONDS = 30.0
# Through a database that was killed: until it has recovered.
RECOVERY_SECONDS = 30.0


class UnavailableError(Exception):
    """A server said that it could not do it now, or does not know whether it did."""


@dataclass
class Known:
    """What a server acknowledged of one job, and what it may have done besides."""

    key: str
    has_profile: bool
    id: str = ""
    ranks: set[int] = field(default_factory=set)
    measured: set[int] = field(default_factory=set)
    # Of the sweep that the ranks are at: (stage, type, clock) by rank.
    rows: dict[int, set[tuple[int, str, int]]] = field(default_factory=dict)
    sweeps: bool = False  # Again, under the plans of before.
    perhaps_sweeps: bool = False
    is_planned: bool = False
    stragglers: set[int] = field(default_factory=set)
    cleared: set[int] = field(default_factory=set)
    perhaps_cleared: set[int] = field(default_factory=set)
    targets: set[str] = field(default_factory=lambda: {"1.0x"})
    finished: bool = False
    deleted: bool = False
    perhaps_deleted: bool = False
    perhaps_finished: bool = False
    version: int = 0
    settled: bool = False  # Over, and seen so by a later server.

    def begin_sweep(self) -> None:
        """Forget what ranks measured before."""
        self.sweeps = True
        self.perhaps_sweeps = False
        self.measured = set()
        self.rows = {}


class Drill:
    """The facts of one run, over all servers of it."""

    def __init__(self, seed: int, plan_seconds: float) -> None:
        self.plan_seconds = plan_seconds
        self.random = random.Random(seed)
        self.jobs: list[Known] = []
        self.acknowledged = 0
        self.slowest_plan = 0.0
        self.lost = 0  # Requests without an answer.
        self.refused = 0  # With 503.
        self.failure: BaseException | None = None

    def work(self, server: Server) -> None:
        """Do random things until the server is gone."""
        try:
            while True:
                self._step(server)
        except GoneError:
            return

    def work_until(self, cluster: Cluster, stop: threading.Event) -> None:
        """Do random things whatever happens to servers, until told to stop."""
        while not stop.is_set():
            try:
                self._step(cluster)
            except GoneError:
                self.lost += 1
            except UnavailableError:
                self.refused += 1
                time.sleep(0.01)
            except BaseException as error:
                self.failure = error
                return

    def _step(self, server: Server | Cluster) -> None:
        alive = [job for job in self.jobs if not (job.deleted or job.perhaps_deleted)]
        unfinished = [job for job in alive if not (job.finished or job.perhaps_finished)]
        if len(unfinished) < 3 or (len(unfinished) < 6 and self.random.random() < 0.05):
            job = Known(f"key {len(self.jobs)}", self.random.random() < 0.5)
            self.jobs.append(job)
            self._create(server, job)
            return
        job = self.random.choice(unfinished)
        if not job.id:
            self._create(server, job)
        elif len(job.ranks) < RANKS:
            self._register(server, job)
        elif (job.sweeps or not job.has_profile) and len(job.measured) < RANKS:
            self._measure(server, job)
        else:
            self._operate(server, job)

    def _create(self, server: Server | Cluster, job: Known) -> None:
        body = {"client_key": job.key, "name": job.key, "job": SETTINGS}
        if job.has_profile:
            body["profile_csv"] = PROFILE
        status, answer = _do(server, "POST", "/api/v1/jobs", body)
        assert status in (200, 201), (status, answer)
        job.id = answer["id"]
        self.acknowledged += 1

    def _path(self, job: Known) -> str:
        return f"/api/v1/jobs/{job.id}"

    def _register(self, server: Server | Cluster, job: Known) -> None:
        rank = self.random.randrange(RANKS)
        body = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2, "tp_rank": 0, "node": "n"}
        status, answer = _do(server, "POST", self._path(job) + "/ranks", body)
        assert status == 200, (status, answer)
        job.ranks.add(rank)
        self.acknowledged += 1

    def _measure(self, server: Server | Cluster, job: Known) -> None:
        rank = self.random.choice([r for r in range(RANKS) if r not in job.measured])
        told = job.rows.setdefault(rank, set())
        # One clock at a time, as a sweep goes.
        clock_now = min((1400, 1200, 1000), key=lambda c: sum(row[2] == c for row in told))
        rows = []
        keys: set[tuple[int, str, int]] = set()
        for line in PROFILE.splitlines()[1:]:
            stage, name, clock, seconds, joules = line.split(",")
            if int(stage) == rank % 2 and int(clock) == clock_now:
                keys.add((int(stage), name, int(clock)))
                rows.append(
                    {
                        "stage": int(stage),
                        "instruction": name,
                        "frequency": int(clock),
                        "time": float(seconds),
                        "energy": float(joules),
                    }
                )
        done = len(told | keys) == 6
        body = {"rank": rank, "rows": rows, "done": done, "blocking_power_w": 20}
        status, answer = _do(server, "POST", self._path(job) + "/measurements", body)
        # 409: it was durable, though not acknowledged, and the profile is complete.
        assert status in (200, 409), (status, answer)
        told |= keys
        if done or status == 409:
            job.measured.add(rank)
        if len(job.measured) == RANKS:
            job.is_planned = True
            job.sweeps = False
        self.acknowledged += 1

    def _operate(self, server: Server | Cluster, job: Known) -> None:
        choice = self.random.random()
        path = self._path(job)
        if choice < 0.4:
            body = {"pipeline": self.random.randrange(2), "factor": 1 + self.random.random()}
            status, answer = _do(server, "POST", path + "/stragglers", body)
            assert status == 201, (status, answer)
            job.stragglers.add(answer["straggler_id"])
        elif choice < 0.7 and job.stragglers:
            straggler = self.random.choice(sorted(job.stragglers))
            job.perhaps_cleared.add(straggler)
            job.stragglers.discard(straggler)
            status, answer = _do(server, "DELETE", f"{path}/stragglers/{straggler}")
            assert status == 204, (status, answer)
            job.perhaps_cleared.discard(straggler)
            job.cleared.add(straggler)
        elif choice < 0.9:
            target = self.random.choice(["1.0x", "1.05x", "1.2x", "min-energy", "tstar"])
            job.targets.add(target)
            status, answer = _do(server, "PUT", path + "/point", {"at": target})
            assert status == 200, (status, answer)
            job.targets = {target}
        elif choice < 0.93:
            job.perhaps_sweeps = True
            status, answer = _do(server, "POST", path + "/reprofile")
            # 409: the first plan is being made.
            assert status in (200, 409), (status, answer)
            if status == 200 and answer["profiling"]["again"]:
                job.begin_sweep()
            job.perhaps_sweeps = False
        elif choice < 0.97:
            job.perhaps_finished = True
            status, answer = _do(server, "POST", path + "/finish")
            assert status == 200, (status, answer)
            job.finished = True
        else:
            job.perhaps_deleted = True
            status, answer = _do(server, "DELETE", path)
            assert status == 204, (status, answer)
            job.deleted = True
        self.acknowledged += 1

    def check(self, server: Server | Cluster, everything: bool = False) -> None:
        """Compare what was acknowledged with what a new server knows.

        Jobs that are over are looked at once, and again where `everything` is.
        """
        for job in self.jobs:
            if job.id and (everything or not job.settled):
                self._check(server, job)
                job.settled = job.finished or job.deleted

    def _check(self, server: Server | Cluster, job: Known) -> None:
        status, shown = _look(server, self._path(job))
        if job.deleted:
            assert status == 404, (job, shown)
            return
        if job.perhaps_deleted and status == 404:
            job.deleted = True
            return
        assert status == 200, (job, shown)
        _, answer = _look(server, self._path(job) + "/ranks")
        assert job.ranks <= {rank["rank"] for rank in answer["ranks"]}, (job, answer)
        if job.perhaps_sweeps and shown["profiling"]["again"]:
            job.begin_sweep()
        job.perhaps_sweeps = False
        self._check_measurements(server, job, shown)
        there = {straggler["straggler_id"] for straggler in shown["stragglers"]}
        assert job.stragglers <= there, (job, shown)
        assert not job.cleared & there, (job, shown)
        job.cleared |= job.perhaps_cleared - there
        job.stragglers |= job.perhaps_cleared & there
        job.perhaps_cleared = set()
        assert shown["at"] in job.targets, (job, shown)
        job.targets = {shown["at"]}
        assert shown["state"] != "failed", shown
        if job.finished:
            assert shown["state"] == "finished", (job, shown)
        elif shown["state"] == "finished":
            assert job.perhaps_finished, (job, shown)
            job.finished = True
        else:
            job.perhaps_finished = False
        is_profiled = job.has_profile or job.is_planned
        if len(job.ranks) == RANKS and is_profiled:
            self._check_plans(server, job)

    def _check_measurements(self, server: Server | Cluster, job: Known, shown: Any) -> None:
        assert shown["ranks_measured"] >= len(job.measured), (job, shown)
        for rank, told in job.rows.items():
            status, answer = _look(server, f"{self._path(job)}/measurements?rank={rank}")
            assert status == 200, (job, status, answer)
            there = {(row["stage"], row["instruction"], row["frequency"]) for row in answer["rows"]}
            assert told <= there, (job, rank, answer)
            assert answer["done"] or rank not in job.measured, (job, rank, answer)

    def _check_plans(self, server: Server | Cluster, job: Known) -> None:
        start = time.monotonic()
        for rank in range(RANKS):
            known = f"&after={job.version - 1}" if job.version > 0 else ""
            path = f"{self._path(job)}/plan?rank={rank}{known}&wait={self.plan_seconds}"
            status, plan = _look(server, path)
            assert status == 200, (job, status, plan)
            assert plan["version"] >= job.version, (job, plan)
            job.version = plan["version"]
            assert (plan["reason"] == "no_plan") == job.finished, (job, plan)
        self.slowest_plan = max(self.slowest_plan, time.monotonic() - start)


def _do(server: Server | Cluster, method: str, path: str, body: object = None) -> tuple[int, Any]:
    status, answer = server.call(method, path, body)
    if status == 503 and isinstance(server, Cluster):
        raise UnavailableError(answer)
    return status, answer


def _look(server: Server | Cluster, path: str) -> tuple[int, Any]:
    if isinstance(server, Cluster):
        return server.ask("GET", path, RECOVERY_SECONDS)
    return server.call("GET", path)


def run(binary: Path, kills: int, seed: int, plan_seconds: float = PLAN_SECONDS) -> Drill:
    """Kill `kills` servers, one after the other, on one store."""
    drill = Drill(seed, plan_seconds)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "jobs.db"
        for _ in range(kills):
            server = Server(binary, store)
            drill.check(server)
            worker = threading.Thread(target=drill.work, args=(server,))
            worker.start()
            time.sleep(drill.random.uniform(0, 0.8))
            server.kill()
            worker.join()
        server = Server(binary, store)
        drill.check(server, everything=True)
        assert server.stop() == 0, server.log()
    return drill


def run_cluster(
    binary: Path,
    kills: int,
    seed: int,
    *,
    servers: int = 2,
    pooled: bool = False,
    plan_seconds: float = PLAN_SECONDS,
) -> Drill:
    """Kill servers and the PostgreSQL under them while work goes on."""
    drill = Drill(seed, plan_seconds)
    with Cluster(binary, servers, pooled=pooled) as cluster:
        for _ in range(kills):
            stop = threading.Event()
            worker = threading.Thread(target=drill.work_until, args=(cluster, stop))
            worker.start()
            time.sleep(drill.random.uniform(0, 0.8))
            victim = cluster.strike(drill.random)
            # The others, where there are, go on.
            time.sleep(drill.random.uniform(0, 0.3))
            if victim == "postgresql" or servers == 1:
                cluster.mend(victim)
                victim = ""
            stop.set()
            worker.join()
            if drill.failure is not None:
                raise drill.failure
            drill.check(cluster)
            if victim:
                cluster.mend(victim)
        drill.check(cluster, everything=True)
        cluster.stop()
    return drill


def main() -> int:
    """Run the drill and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perseus", type=Path, default=os.environ.get("PERSEUS_BINARY"))
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plan-seconds", type=float, default=PLAN_SECONDS)
    kinds = ("sqlite", "postgresql", "pgbouncer")
    parser.add_argument("--store", choices=kinds, default="sqlite")
    parser.add_argument("--servers", type=int, default=2, help="on one PostgreSQL")
    parser.add_argument("--stops", type=int, default=0, help="SIGSTOP instead of kills")
    arguments = parser.parse_args()
    binary = Path(arguments.perseus)
    if arguments.stops > 0:
        if arguments.store == "sqlite":
            parser.error("--stops needs two servers: --store postgresql or pgbouncer")
        job = {"job": SETTINGS, "profile_csv": PROFILE}
        pooled = arguments.store == "pgbouncer"
        overwritten = run_stops(binary, arguments.stops, arguments.seed, job, pooled)
        print("\n".join([*overwritten, f"{arguments.stops} stops, {len(overwritten)} overwrote"]))
        return 1 if overwritten else 0
    if arguments.store == "sqlite":
        drill = run(binary, arguments.kills, arguments.seed, arguments.plan_seconds)
    else:
        drill = run_cluster(
            binary,
            arguments.kills,
            arguments.seed,
            servers=arguments.servers,
            pooled=arguments.store == "pgbouncer",
            plan_seconds=arguments.plan_seconds,
        )
        print(f"{drill.lost} requests without an answer, {drill.refused} answered 503")
    print(
        f"{arguments.kills} kills, {drill.acknowledged} acknowledged facts, "
        f"{len(drill.jobs)} jobs: none missing; slowest plans of a job's {RANKS} ranks after a "
        f"restart: {drill.slowest_plan:.3f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
