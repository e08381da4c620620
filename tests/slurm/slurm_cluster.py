# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of one node, with our plug-in, a server, an agent and a relay; as root."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from perseus import simulate  # noqa: E402

LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
BINARY = os.path.abspath(os.environ.get("PERSEUS_BINARY", ""))
PLUGIN = os.environ.get("PERSEUS_SPANK_PLUGIN", "")
PATIENCE = 120.0  # Seconds that only a hang misses.
USER = 65534  # nobody: whom the agent and the relay allow.
CLOCKS = (1410, 1260, 1110, 960)
FORWARD, BACKWARD = 0.010, 0.020

CONFIGURATION = """\
ClusterName=perseus
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
PlugStackConfig={folder}/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=1
SlurmdTimeout=10
MinJobAge=600
{site}
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


def profile() -> str:
    """Return what the computations of both stages cost; the first waits for the second."""
    rows = ["stage,instruction,frequency,time,energy"]
    for stage, factor in ((0, 0.7), (1, 1.0)):
        for kind, length in (("forward", FORWARD), ("backward", BACKWARD)):
            for mhz in CLOCKS:
                seconds = factor * length * (0.3 + 0.7 * CLOCKS[0] / mhz)
                watts = 85 + 295 * (mhz / CLOCKS[0]) ** 2.2
                rows.append(f"{stage},{kind},{mhz},{seconds},{seconds * watts}")
    return "\n".join(rows) + "\n"


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until it holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not in {PATIENCE:.0f} s: {what}"
        time.sleep(0.1)


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """Slurm and Perseus on this machine.

    Parameters
    ----------
    folder
        For everything; every user may read it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = socket.gethostname().partition(".")[0]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.server_url = f"http://127.0.0.1:{free_port()}"
        self.agent_socket = folder / "agent.sock"
        self.relay_socket = folder / "relay.sock"
        for name in ("munge", "state", "spool", "work"):
            (folder / name).mkdir()
        os.chown(folder / "work", USER, USER)
        folder.chmod(0o755)
        (folder / "profile.csv").write_text(profile())
        # Files of users, in a place that they may read: this repository may be anywhere.
        shutil.copytree(ROOT / "python" / "perseus", folder / "python" / "perseus")
        shutil.copy(LIBRARY, folder / "libperseus_client.so")
        shutil.copy(Path(__file__).parent / "slurm_rank.py", folder)
        gpus = "[[gpus]]\ncount = 2\nclocks_mhz = [960, 1110, 1260, 1410]\ncall_ms = 5\n"
        simulate.create(folder / "gpus", gpus)
        (folder / "gpus").chmod(0o666)
        self.gpus = simulate.Gpus(folder / "gpus")
        self.environment = {
            **{"PATH": os.environ["PATH"], "SLURM_CONF": str(folder / "slurm.conf")},
            **{"FOLDER": str(folder), "HOME": str(folder / "work")},
            "PYTHONPATH": str(folder / "python"),
            "PERSEUS_CLIENT_LIBRARY": str(folder / "libperseus_client.so"),
        }

    def start(self, name: str, command: Sequence[str], ready: Callable[[], bool]) -> None:
        """Start a process that stays in the foreground, and wait until it is ready."""
        with (self.folder / f"{name}.out").open("ab") as out:
            self.processes[name] = subprocess.Popen(
                command, env=self.environment, stdout=out, stderr=out, start_new_session=True
            )
        eventually(ready, f"{name} is ready; see {self.folder}/{name}.out")

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a process."""
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(PATIENCE)

    def start_perseus(self) -> None:
        """Start the server, the relay and the agent."""
        address = self.server_url.removeprefix("http://")
        store = f"sqlite:{self.folder}/jobs.db"
        serve = [BINARY, "serve", "--store", store, "--listen", address]
        self.start("server", serve, lambda: self.reached(("127.0.0.1", int(address.split(":")[1]))))
        self.start_relay()
        self.start_agent()

    def start_agent(self) -> None:
        """Start the node's agent."""
        command = [BINARY, "agent", "run", "--driver", f"simulated:{self.folder}/gpus"]
        command += ["--socket", str(self.agent_socket), "--allow-user", str(USER)]
        command += ["--journal", str(self.folder / "agent.journal")]
        self.start("agent", command, lambda: self.reached(self.agent_socket))

    def start_relay(self) -> None:
        """Start the node's way to the server."""
        command = [BINARY, "agent", "relay", "--server", self.server_url]
        command += ["--socket", str(self.relay_socket), "--allow-user", str(USER)]
        self.start("relay", command, lambda: self.reached(self.relay_socket))

    def reached(self, address: Path | tuple[str, int]) -> bool:
        """Whether somebody listens there."""
        family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
        with socket.socket(family) as probe, contextlib.suppress(OSError):
            probe.connect(str(address) if isinstance(address, Path) else address)
            return True
        return False

    def start_slurm(self, plugin: str = PLUGIN, site: str = "") -> None:
        """Start munge, slurmctld and slurmd."""
        words = f"server=unix:{self.relay_socket} agent={self.agent_socket}"
        (self.folder / "plugstack.conf").write_text(f"optional {plugin} {words}\n")
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=self.host,
                controller_port=free_port(),
                node_port=free_port(),
                folder=self.folder,
                site=site,
                cpus=os.cpu_count(),
            )
        )
        munge = self.folder / "munge"
        munge.chmod(0o755)
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o600)
        command = [shutil.which("munged") or "/usr/sbin/munged", "--foreground", "--force"]
        command += [f"--socket={munge}/socket", f"--key-file={munge}/key"]
        command += [
            f"--pid-file={munge}/pid",
            f"--log-file={munge}/log",
            f"--seed-file={munge}/seed",
        ]
        self.start("munged", command, (munge / "socket").exists)
        self.start_controller()
        self.start_node()

    def start_controller(self) -> None:
        """Start slurmctld."""
        self.start("slurmctld", ["slurmctld", "-D"], lambda: "UP" in self.slurm("scontrol", "ping"))

    def start_node(self) -> None:
        """Start slurmd."""
        self.start("slurmd", ["slurmd", "-D", "-N", self.host], lambda: self.node() == "idle")

    def slurm(self, *command: str, input_text: str | None = None) -> str:
        """Run a command of Slurm as the user; return what it says."""
        result = subprocess.run(
            ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *command],
            env=self.environment,
            cwd=self.folder / "work",
            input=input_text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        return result.stdout.strip()

    def jobs(self) -> str:
        """Return the server's list of jobs."""
        command = [BINARY, "job", "list", "--server", self.server_url]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def node(self) -> str:
        """Return the node's state."""
        return self.slurm("sinfo", "--noheader", "--format=%t")

    def submit(self, script: str, *options: str) -> int:
        """Submit a batch script; return the job's number."""
        said = self.slurm(
            *("sbatch", "--parsable", "--output=%j.out", "--open-mode=append", *options),
            input_text=f"#!/bin/bash\n{script}\n",
        )
        assert said.splitlines()[-1].isdigit(), said
        return int(said.splitlines()[-1])

    def state(self, job: int) -> str:
        """Return a job's state: RUNNING, say."""
        return self.slurm("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T")

    def output(self, job: int) -> str:
        """Return what a job has said so far."""
        file = self.folder / "work" / f"{job}.out"
        return file.read_text() if file.exists() else ""

    def ended(self, job: int) -> str:
        """Wait until a job has ended; return its state."""
        last = ("COMPLETED", "CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT")
        eventually(lambda: self.state(job) in last, f"job {job} ends; {self.output(job)}")
        return self.state(job)

    def locked(self) -> list[int]:
        """Return the clock that each GPU is locked at; 0: none."""
        return [self.gpus.read(gpu).locked_mhz for gpu in range(len(self.gpus))]

    def close(self) -> None:
        """End everything."""
        with contextlib.suppress(subprocess.SubprocessError, OSError):
            self.slurm("scancel", f"--user={USER}", "--signal=KILL")
        for name in reversed(list(self.processes)):
            self.processes[name].kill()
            self.processes[name].wait()
        subprocess.run(["pkill", "--signal", "KILL", "--full", str(self.folder)], check=False)


@contextlib.contextmanager
def cluster_in(folder: Path) -> Iterator[Cluster]:
    """Start a cluster, and end all of it."""
    cluster = Cluster(folder)
    try:
        cluster.start_perseus()
        cluster.start_slurm()
        yield cluster
    finally:
        cluster.close()
