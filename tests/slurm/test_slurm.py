# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`sbatch --perseus` on a real Slurm with simulated GPUs: what a site's users meet.

`scripts/prove slurm` runs it: it needs root, and Debian's slurmctld, slurmd, slurm-client, munge.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import BINARY, LIBRARY, PATIENCE, PLUGIN, Cluster, cluster_in, eventually

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or not (
        LIBRARY
        and os.path.isfile(BINARY)
        and PLUGIN
        and shutil.which("slurmctld")
        and shutil.which("munged")
    ),
    reason="root, Slurm, and PERSEUS_CLIENT_LIBRARY, _BINARY and _SPANK_PLUGIN are needed",
)

TRAIN = "srun --ntasks=2 --overcommit /usr/bin/python3 -B $FOLDER/slurm_rank.py"
SHOW = "env | grep ^PERSEUS_ | grep -v LIBRARY | sort"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One for all tests: each leaves it as it was."""
    folder = Path(tempfile.mkdtemp(prefix="perseus-slurm-"))
    with cluster_in(folder) as made:
        yield made
    shutil.rmtree(folder)


def lines(text: str, word: str) -> list[str]:
    """Return the lines that hold a word."""
    return [line for line in text.splitlines() if word in line]


def follow(cluster: Cluster, *options: str) -> int:
    """Submit a job that trains for long, and wait until a GPU's clock is locked."""
    job = cluster.submit(f"{TRAIN} 100000", *options)
    eventually(lambda: any(cluster.locked()), f"a clock is locked; {cluster.output(job)}")
    return job


def gave_back(cluster: Cluster) -> bool:
    """Whether no clock is locked."""
    return not any(cluster.locked())


def healthy(cluster: Cluster) -> bool:
    """Whether the node takes jobs."""
    return cluster.node() in ("idle", "mix", "alloc")


def job_of(output: str) -> str:
    """Return the id of the job of Perseus that ranks followed last."""
    return lines(output, "follows j-")[-1].split()[3]


def test_a_job_trains_by_its_plan_and_gives_its_clocks_back(cluster: Cluster) -> None:
    """Two words on the command line are all."""
    job = cluster.submit(f"{TRAIN} 40", "--perseus=gpt3")
    assert cluster.ended(job) == "COMPLETED", cluster.output(job)
    output = cluster.output(job)
    assert len(lines(output, "follows j-")) == 2, output
    assert not lines(output, "administrator"), output
    eventually(lambda: gave_back(cluster), "clocks are back")
    assert lines(cluster.jobs(), "gpt3"), cluster.jobs()
    eventually(lambda: cluster.node() == "idle", "the node is free")


def test_a_later_run_of_this_name_has_its_plan_at_once(cluster: Cluster) -> None:
    """A training that is submitted again goes on with its job; another name is another job."""
    outputs = []
    for name in ("again", "again", "other"):
        job = cluster.submit(f"{TRAIN} 25", f"--perseus={name}")
        assert cluster.ended(job) == "COMPLETED", cluster.output(job)
        outputs.append(cluster.output(job))
    first, second, other = map(job_of, outputs)
    assert first == second != other, outputs


def test_without_a_name_a_job_that_is_requeued_has_its_plan(cluster: Cluster) -> None:
    """Slurm's number of a job stays."""
    job = follow(cluster, "--perseus", "--requeue")
    eventually(lambda: len(lines(cluster.output(job), "follows j-")) >= 2, "ranks follow")
    before = job_of(cluster.output(job))
    cluster.slurm("scontrol", "requeue", str(job))
    eventually(lambda: gave_back(cluster), "clocks are back")

    def follows_again() -> bool:
        if cluster.state(job) == "PENDING":  # Slurm would let two minutes pass.
            cluster.slurm("scontrol", "update", f"jobid={job}", "starttime=now")
        return len(lines(cluster.output(job), "follows j-")) >= 4

    eventually(follows_again, "ranks follow again")
    assert job_of(cluster.output(job)) == before
    cluster.slurm("scancel", str(job))
    cluster.ended(job)
    eventually(lambda: gave_back(cluster), "clocks are back")


def test_scancel_gives_clocks_back(cluster: Cluster) -> None:
    """Also with the signal that nobody can catch."""
    for options in ((), ("--signal=KILL", "--full")):
        job = follow(cluster, "--perseus=cancelled")
        cluster.slurm("scancel", *options, str(job))
        eventually(lambda: gave_back(cluster), "clocks are back")
        cluster.ended(job)
        assert healthy(cluster)


def test_a_node_that_dies_leaves_no_clock_behind(cluster: Cluster) -> None:
    """Everything of Slurm and of the job on the node is killed at one moment."""
    job = follow(cluster, "--perseus=lost", "--no-requeue")
    subprocess.run(["pkill", "-KILL", "-f", "slurmstepd: "], check=False)
    cluster.stop("slurmd", signal.SIGKILL)
    subprocess.run(["pkill", "-KILL", "-f", "slurm_rank.py 100000"], check=True)
    eventually(lambda: gave_back(cluster), "clocks are back")
    cluster.start_node()
    assert cluster.ended(job) in ("NODE_FAIL", "FAILED", "CANCELLED")
    assert healthy(cluster)


def test_training_goes_on_without_slurms_daemons(cluster: Cluster) -> None:
    """Neither the controller nor the node's daemon takes part in following a plan."""
    job = follow(cluster, "--perseus=daemons")
    cluster.stop("slurmctld")
    cluster.stop("slurmd", signal.SIGKILL)
    calls = cluster.gpus.read(0).set_calls
    eventually(lambda: cluster.gpus.read(0).set_calls > calls, "clocks still change")
    cluster.start_controller()
    cluster.start("slurmd", ["slurmd", "-D", "-N", cluster.host], lambda: healthy(cluster))
    assert cluster.state(job) == "RUNNING"
    cluster.slurm("scancel", str(job))
    cluster.ended(job)
    eventually(lambda: gave_back(cluster), "clocks are back")


def test_a_node_without_agent_and_relay_trains_and_says_so(cluster: Cluster) -> None:
    """Neither the job fails, nor is the node drained."""
    cluster.stop("agent")
    cluster.stop("relay")
    try:
        job = cluster.submit(f"{TRAIN} 5", "--perseus=alone")
        assert cluster.ended(job) == "COMPLETED", cluster.output(job)
        said = [line for line in lines(cluster.output(job), "perseus: ") if cluster.host in line]
        # Of the batch script, and of srun's first task.
        assert len(lines("\n".join(said), "no agent at")) == 2, cluster.output(job)
        assert len(lines("\n".join(said), "no relay at")) == 2, cluster.output(job)
        assert cluster.node() == "idle"
    finally:
        cluster.start_agent()
        cluster.start_relay()


def test_only_who_asks_gets_settings_and_his_own_stay(cluster: Cluster) -> None:
    """The plug-in sets nothing in other jobs, and replaces nothing."""
    without = cluster.submit(SHOW)
    assert cluster.ended(without) == "COMPLETED"
    assert cluster.output(without) == ""
    asked = cluster.submit(SHOW, "--perseus=shown")
    assert cluster.ended(asked) == "COMPLETED", cluster.output(asked)
    assert cluster.output(asked).splitlines() == [
        f"PERSEUS_DEVICE=agent:{cluster.agent_socket}",
        "PERSEUS_RUN=shown",
        f"PERSEUS_SERVER=unix:{cluster.relay_socket}",
    ]
    own = cluster.submit(SHOW, "--perseus=x", "--export=ALL,PERSEUS_SERVER=https://own:7787")
    assert cluster.ended(own) == "COMPLETED", cluster.output(own)
    assert "PERSEUS_SERVER=https://own:7787" in cluster.output(own).splitlines()


@pytest.mark.parametrize("name", ["two words", 'quo"te', "x" * 129, "zwölf"])
def test_a_name_that_cannot_be_is_said(cluster: Cluster, name: str) -> None:
    """The job runs, and is known by its number."""
    job = cluster.submit(SHOW, f"--perseus={name}")
    assert cluster.ended(job) == "COMPLETED", cluster.output(job)
    assert lines(cluster.output(job), "a run's name has at most 128 printable characters")
    assert not lines(cluster.output(job), "PERSEUS_RUN")


def test_words_of_the_administrator_that_nobody_knows(cluster: Cluster) -> None:
    """They are said, and what is right beside them holds."""
    stack = cluster.folder / "plugstack.conf"
    before = stack.read_text()
    stack.write_text(before.replace("server=", "sever="))
    try:
        job = cluster.submit(SHOW, "--perseus=word")
        assert cluster.ended(job) == "COMPLETED", cluster.output(job)
        output = cluster.output(job)
        assert lines(output, f"'sever=unix:{cluster.relay_socket}', which is none of server="), (
            output
        )
        assert f"PERSEUS_DEVICE=agent:{cluster.agent_socket}" in output.splitlines()
    finally:
        stack.write_text(before)


def test_a_plug_in_that_is_missing_stops_no_job(cluster: Cluster) -> None:
    """`optional` in plugstack.conf: jobs that do not ask for it run."""
    stack = cluster.folder / "plugstack.conf"
    before = stack.read_text()
    stack.write_text(before.replace(PLUGIN, "/nowhere/perseus.so"))
    try:
        job = cluster.submit("echo ran")
        assert cluster.ended(job) == "COMPLETED", cluster.output(job)
        assert lines(cluster.output(job), "ran")
        assert healthy(cluster)
    finally:
        stack.write_text(before)


def test_the_sites_own_prolog_may_fail(cluster: Cluster) -> None:
    """Then no clock was set, and once the node is back, jobs follow plans as before."""
    configuration = cluster.folder / "slurm.conf"
    before = configuration.read_text()
    prolog = cluster.folder / "prolog"
    prolog.write_text("#!/bin/sh\nexit 1\n")
    prolog.chmod(0o755)
    configuration.write_text(before + f"Prolog={prolog}\n")
    reconfigure = ["scontrol", "reconfigure"]
    subprocess.run(reconfigure, env=cluster.environment, check=True, timeout=PATIENCE)
    try:
        job = cluster.submit(f"{TRAIN} 10", "--perseus=prolog", "--no-requeue")
        eventually(lambda: cluster.node().startswith("drain"), "Slurm drains the node")
        assert gave_back(cluster)
        cluster.slurm("scancel", str(job))
    finally:
        configuration.write_text(before)
        subprocess.run(reconfigure, env=cluster.environment, check=True, timeout=PATIENCE)
    resume = ["scontrol", "update", f"nodename={cluster.host}", "state=resume"]
    subprocess.run(resume, env=cluster.environment, check=True, timeout=PATIENCE)
    eventually(lambda: cluster.node() == "idle", "the node is free")
    job = cluster.submit(f"{TRAIN} 25", "--perseus=prolog")
    assert cluster.ended(job) == "COMPLETED", cluster.output(job)
    assert lines(cluster.output(job), "follows j-")
