# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus.Job`, its timeline by events, and layouts: without a library, a server or PyTorch."""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import perseus  # noqa: E402
from perseus.hooks import layout  # noqa: E402
from perseus.hooks.attached import Attached  # noqa: E402
from perseus.hooks.speaker import Speaker  # noqa: E402
from perseus.hooks.timeline import EventTimeline, find_timeline  # noqa: E402
from recording import Recorder, Store, recorder, said_by  # noqa: E402

PATIENCE = 20.0  # Seconds that only a hang misses.


def job_with(**options: Any) -> tuple[perseus.Job, list[list[Any]]]:
    """Return a job and what its client is told."""
    client: Any = recorder()
    return perseus.Job(client=client, **options), client.log


class BreakError(Exception):
    """What a trainer raises."""


def test_a_step_and_its_computations_are_told_in_order() -> None:
    """Kinds, stages, microbatches and work as given."""
    job, log = job_with(timeline="host")
    with job.step() as step:
        with job.forward(2, stage=5, work=128):
            pass
        with job.backward_input(2, stage=5), job.backward_weight(0):
            pass
        with job.recompute(1, stage=5):
            pass
        step.tokens = 4096
    assert log == [
        ["step_begin", 0],
        ["instruction_work", 128],
        ["instruction_begin", "forward", 5, 2],
        ["instruction_end", "forward", 5, 2],
        ["instruction_begin", "backward_input", 5, 2],
        ["instruction_begin", "backward_weight", -1, 0],
        ["instruction_end", "backward_weight", -1, 0],
        ["instruction_end", "backward_input", 5, 2],
        ["instruction_begin", "recompute", 5, 1],
        ["instruction_end", "recompute", 5, 1],
        ["step_end", 4096],
    ]


def test_an_exception_abandons_the_step_and_passes_through() -> None:
    """The next step is a new one."""
    job, log = job_with(timeline="host")
    with pytest.raises(BreakError), job.step(), job.forward(0):
        raise BreakError
    with job.step():
        pass
    assert [entry[0] for entry in log] == [
        "step_begin",
        "instruction_begin",
        "instruction_end",
        "step_abandon",
        "step_begin",
        "step_end",
    ]
    assert job.report()["abandoned_steps"] == 1
    assert job.report()["steps"] == 2


def test_a_closed_job_keeps_its_last_report() -> None:
    """But for its state, and what went wrong as it was closed."""
    job, _ = job_with(timeline="host")
    with job.step():
        pass
    client: Any = job.client
    client.job_id = "j-7"
    job.close()
    client.job_id, client.plan_version, client.state = "", -1, perseus.State.CLOSED
    job.close()
    report = job.report()
    assert (report["job_id"], report["plan_version"], report["steps"]) == ("j-7", 1, 1)
    assert (report["state"], report["last_error"]) == ("closed", "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job.fail("it is not taken off", about="off")
        said_by(job)
    assert job.report()["last_error"] == "it is not taken off"


def test_no_device_is_not_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for none gets none."""
    monkeypatch.setenv("PERSEUS_DEVICE", "no such device")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with perseus.Job("", job_id="j-1", device="") as job:
            assert job.state != "closed"
        with perseus.Job("", job_id="j-1") as job:
            assert job.state == "closed"


def test_metrics_are_numbers_by_name() -> None:
    """Those of the client; none once it is closed, or where nothing is attached."""
    job, _ = job_with(timeline="host")
    assert job.metrics() == {}
    counters: dict[str, Any] = {name: 0 for name in perseus.Stats.__dataclass_fields__}
    counters.update(clock_mhz=1305, plan_version=4, late=2, missed=1, calls=9)
    counters.update(state=perseus.State.FOLLOWING)
    counters.update(joules=120.5, saving_percent=9.5, saving_least_percent=math.nan)
    counters.update(saving_most_percent=math.nan)
    stats = perseus.Stats(**{**counters, "overhead_share": 0.02})
    job.client.stats = lambda: stats  # type: ignore[method-assign]
    metrics = job.metrics()
    assert all(type(value) in (int, float) for value in metrics.values())
    expected: dict[str, float] = {
        "following": 1,
        "clock_mhz": 1305,
        "plan_version": 4,
        "clocks_late": 3,
    }
    expected.update(joules=120.5, saving_percent=9.5)
    assert metrics.items() >= expected.items()
    assert "saving_least_percent" not in metrics  # Not known.
    assert metrics["overhead_percent"] == pytest.approx(2)
    assert Attached(job).metrics() == metrics
    assert Attached(None, "no schedule").metrics() == {}


def test_waiting_for_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is there, the time is over, or it can come no more."""
    job, _ = job_with(timeline="host")
    client: Any = job.client
    client.state = perseus.State.WAITING
    assert not job.wait_until("following", timeout=0)
    timer = threading.Timer(0.05, lambda: setattr(client, "state", perseus.State.FOLLOWING))
    timer.start()
    assert job.wait_until("following", timeout=PATIENCE)
    assert Attached(job).wait_until("following", timeout=0)
    timer.join()
    client.state = perseus.State.CLOSED
    with pytest.raises(ValueError, match="folowing"):
        job.wait_until("folowing")

    def no_sleep(_seconds: float) -> None:
        raise AssertionError("nothing is to be waited for")

    monkeypatch.setattr(time, "sleep", no_sleep)
    assert not job.wait_until("following", timeout=PATIENCE)
    assert not Attached(None, "no schedule").wait_until("following", timeout=PATIENCE)


def test_nested_steps_and_those_of_other_threads_are_ignored_and_counted() -> None:
    """The outer step is the iteration."""
    job, log = job_with(timeline="host")

    def other() -> None:
        with job.step():
            pass

    with job.step():
        with job.step():
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert [entry[0] for entry in log] == ["step_begin", "step_end"]
    assert job.report()["ignored_steps"] == 2


def test_nothing_is_recorded_within_skip_or_outside_of_a_step() -> None:
    """Evaluation, and what runs between steps."""
    job, log = job_with(timeline="host")
    with job.skip(), job.step(), job.forward(0):
        pass
    with job.forward(0):
        pass
    assert log == []
    assert job.report()["outside"] == 1
    with job.step(), job.skip(), job.forward(0):
        pass
    assert [entry[0] for entry in log] == ["step_begin", "step_end"]


def test_closing_within_a_step_abandons_it() -> None:
    """A client that was given stays open."""
    job, log = job_with(timeline="host")
    assert job.step_begin()
    job.close()
    assert [entry[0] for entry in log] == ["step_begin", "step_abandon"]


def test_computations_are_not_told_while_nobody_asks() -> None:
    """Before there is a plan or a sweep; the step in which one comes does not count."""
    job, log = job_with(timeline="host")
    client: Any = job.client
    client.listens = False
    with job.step(), job.forward(0):
        pass
    with job.step(), job.forward(0):
        client.listens = True
    with job.step(), job.forward(0):
        pass
    steps = [entry[0] for entry in log]
    computation = ["step_begin", "instruction_begin", "instruction_end", "step_end"]
    assert steps == ["step_begin", "step_end", "step_begin", "step_abandon", *computation]


class Device:
    """A stream whose work takes time, and a host that queues it; both clocks are numbers."""

    def __init__(self, drift: float = 0.0) -> None:
        self.host = 100.0
        self.free = 100.0  # When the stream is idle again, on the host's clock.
        self.drift = drift

    def now(self) -> float:
        """Return the host's clock."""
        return self.host

    def run(self, seconds: float) -> None:
        """Queue so much work, which costs the host 10 us."""
        self.host += 1e-5
        self.free = max(self.free, self.host) + seconds

    def event(self) -> DeviceEvent:
        """Return a new event."""
        return DeviceEvent(self)


class DeviceEvent:
    """An event of a `Device`: over when the work before it is."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.at = 0.0

    def record(self) -> None:
        """Queue it."""
        self.at = max(self.device.free, self.device.host)

    def query(self) -> bool:
        """Return whether it is over."""
        return self.at <= self.device.host

    def synchronize(self) -> None:
        """Wait for it."""
        self.device.host = max(self.device.host, self.at)

    def elapsed_time(self, end: DeviceEvent) -> float:
        """Milliseconds, by a clock that may go wrong."""
        return (end.at - self.at) * 1e3 * (1 + self.device.drift)


def steps_on(device: Device, steps: int, ahead: float) -> tuple[list[list[Any]], list[Any]]:
    """Run steps of F 20 ms and B 40 ms; the host is `ahead` seconds early in the end of each."""
    timeline = EventTimeline(device.event, device.now)
    job, log = job_with(timeline=timeline)
    truth = []
    for _ in range(steps):
        with job.step():
            begin = device.now()
            times = []
            for kind, seconds in (("forward", 0.02), ("backward", 0.04)):
                start = max(device.free, device.host)
                job.begin(kind, 0)
                device.run(seconds)
                job.end(kind, 0)
                times.append((start - begin, device.free - begin))
            truth.append(times)
        # The optimizer, and the host waits for what it prints.
        device.run(0.005)
        device.host = max(device.host, device.free - ahead)
    return [entry for entry in log if entry[0] == "step_times"], truth


@pytest.mark.parametrize("ahead", [0.0, 0.03])
def test_device_times_are_those_of_the_events(ahead: float) -> None:
    """Also where the host queues ahead of the device; an iteration late."""
    told, truth = steps_on(Device(), 12, ahead)
    assert [entry[1] for entry in told] == list(range(len(told)))
    assert 10 <= len(told) < 12
    for _, iteration, begins, ends in told:
        for (begin, end), seen_begin, seen_end in zip(truth[iteration], begins, ends, strict=True):
            assert seen_begin == pytest.approx(begin, abs=5e-5)
            assert seen_end == pytest.approx(end, abs=5e-5)


def test_a_device_clock_that_drifts_is_set_right_without_waiting() -> None:
    """100 parts per million over 500 iterations are 3 ms; what is seen is off by less."""
    told, truth = steps_on(Device(drift=-1e-4), 500, 0.0)
    _, iteration, begins, _ = told[-1]
    assert iteration > 490
    assert begins[0] == pytest.approx(truth[iteration][0][0], abs=1e-4)


def test_times_that_come_too_late_are_dropped_and_counted() -> None:
    """A device that is seconds behind."""
    device = Device()
    timeline = EventTimeline(device.event, device.now)
    job, log = job_with(timeline=timeline)
    for _ in range(10):
        with job.step():
            job.begin("forward", 0)
            device.run(5.0)
            job.end("forward", 0)
    assert not [entry for entry in log if entry[0] == "step_times"]
    assert job.report()["timeline_dropped"] == 6


def test_an_abandoned_step_leaves_no_times() -> None:
    """Those of the others keep their iteration."""
    device = Device()
    timeline = EventTimeline(device.event, device.now)
    job, log = job_with(timeline=timeline)
    for i in range(6):
        try:
            with job.step():
                job.begin("forward", 0)
                device.run(0.01)
                if i == 2:
                    raise BreakError
                job.end("forward", 0)
        except BreakError:
            pass
        device.host = device.free
    assert [entry[1] for entry in log if entry[0] == "step_times"] == [0, 1, 3, 4]


def test_a_timeline_that_breaks_is_given_up_and_said_once() -> None:
    """The host's clock goes on."""

    class Broken(EventTimeline):
        def begin(self) -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    device = Device()
    job, log = job_with(timeline=Broken(device.event, device.now))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            with job.step(), job.forward(0):
                pass
        job.close()
    assert len(seen) == 1
    assert "illegal memory access" in str(seen[0].message)
    assert [entry[0] for entry in log].count("instruction_begin") == 3
    assert job.report()["timeline"] == "host"


def complaints_of(job: perseus.Job, sentences: list[str]) -> list[str]:
    """Return the warnings of steps in which the client complains so, and of the end."""
    client: Any = job.client
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for client.last_error in sentences:
            with job.step(), job.forward(0):
                pass
            said_by(job)
        job.close()
    return [str(warning.message) for warning in seen]


def test_what_the_client_complains_of_is_said_once() -> None:
    """Who trains reads no report."""
    away, refused = "the server is away", "the clock was not set"
    job, _ = job_with(timeline="host")
    assert complaints_of(job, ["", away, away, refused, away, refused]) == [
        f"perseus: {away}; training goes on",
        f"perseus: {refused}; training goes on",
    ]
    job, _ = job_with(timeline="host")
    numbered = [f"iteration {k} is not used." for k in range(9)]
    assert complaints_of(job, numbered) == [
        "perseus: iteration 0 is not used; training goes on",
    ]


def test_complaints_have_an_end() -> None:
    """However many different ones there are."""
    job, _ = job_with(timeline="host")
    assert len(complaints_of(job, ["x" * k for k in range(1000)])) == 20


def test_a_complaint_is_one_line_of_what_can_be_printed() -> None:
    """A proxy's page is no part of it."""
    job, _ = job_with(timeline="host")
    assert complaints_of(job, ["status 502: <html>\r\n  \x1b[2J"]) == [
        "perseus: status 502: <html> \\x1b[2J; training goes on",
    ]


def test_a_client_that_cannot_be_opened_is_spoken_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all ranks, and it stays so."""

    def load() -> None:
        raise OSError("the library lies sideways")

    monkeypatch.setattr("perseus.client.abi.load", load)
    store = Store()
    speakers = [Speaker(store, rank, 2) for rank in range(2)]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        jobs = [perseus.Job("http://x", speaker=each) for each in speakers]
        deadline = time.monotonic() + PATIENCE
        while len(store.values) < 3 and time.monotonic() < deadline:
            time.sleep(0.001)
        for job in jobs:
            with job.step(), job.forward(0):
                pass
            assert "sideways" in job.last_error
            job.close()
        for speaker in speakers:
            speaker.close()
    (said,) = [str(one.message) for one in seen]
    assert "sideways" in said
    assert "all 2 ranks" in said


def test_an_error_ends_with_the_step_that_had_it() -> None:
    """What lasts is recovered by its name."""
    job, _ = job_with(timeline="host")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        job.fail("the function for tokens failed", ValueError(3))
        job.fail("the device is lost", about="device")
        job.fail("the function for work failed")
        assert job.last_error == "the function for work failed"
        with job.step():
            assert job.last_error == "the device is lost"
        job.recover("device")
        assert job.last_error == ""
        job.client.step_begin = None  # type: ignore[method-assign, assignment]
        assert not job.guarded(job.step_begin)
        assert "not recorded" in job.last_error
        said_by(job)
    assert len(seen) == 4


@pytest.mark.parametrize("at", ["step", "computation"])
def test_what_a_cuda_graph_records_is_left_alone(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """No event is asked there, which would break the recording; it is said once, and for good."""
    recording = [False]
    torch: Any = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(
        is_initialized=lambda: True, is_current_stream_capturing=lambda: recording[0]
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    device = Device()
    asked: list[bool] = []

    class Timeline(EventTimeline):
        def begin(self) -> None:
            asked.append(recording[0])
            super().begin()

        def end(self) -> None:
            asked.append(recording[0])
            super().end()

    job, log = job_with(timeline=Timeline(device.event, device.now))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for k in range(4):
            recording[0] = k == 2 and at == "step"
            with job.step():
                for microbatch in range(2):
                    recording[0] = k == 2 and (at == "step" or microbatch == 1)
                    with job.forward(microbatch):
                        device.run(0.01)
            recording[0] = False
        said_by(job)
    assert not any(asked)
    assert "close" in [entry[0] for entry in log]
    begins = [entry[0] for entry in log].count("instruction_begin")
    assert begins == (4 if at == "step" else 5)
    (said,) = [str(one.message) for one in seen]
    assert "CUDA graph" in said
    assert "CUDA graph" in job.last_error


def test_a_job_without_a_server_warns_when_it_is_closed() -> None:
    """Where no step was as long as an answer takes."""
    job, _ = job_with(timeline="host")
    client: Any = job.client
    client.last_error = "Cannot reach http://127.0.0.1:9: Connection refused."
    with pytest.warns(RuntimeWarning, match="Cannot reach"):
        job.close()


def test_a_job_without_a_server_says_why_no_plan_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It trains, and nothing is wrong with its loop."""
    monkeypatch.delenv("PERSEUS_SERVER", raising=False)
    with perseus.Job(device="") as job:
        assert job.state == "waiting"
        assert "PERSEUS_SERVER" in job.last_error
        assert job.report()["last_error"] == job.last_error


def test_warnings_that_are_errors_do_not_reach_the_trainer() -> None:
    """With python -W error."""
    job, log = job_with(timeline="hots")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with job.step(), job.forward(0):
            pass
        said_by(job)  # Else it is said in the next test.
    assert "hots" in job.last_error
    assert log[-1] == ["step_end", 0]


def test_there_is_no_timeline_of_a_device_without_pytorch() -> None:
    """And importing perseus imports no PyTorch."""
    assert find_timeline("auto", None) is None
    assert find_timeline("host", None) is None
    with pytest.raises(ValueError, match="'auto', 'cuda' or 'host'"):
        find_timeline("gpu", None)
    assert "torch" not in sys.modules


def test_a_token_is_read_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be read is said."""
    monkeypatch.setenv("PERSEUS_CLIENT_LIBRARY", "/nowhere/lib.so")
    monkeypatch.setenv("PERSEUS_TOKEN_FILE", str(tmp_path / "missing"))
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        job = perseus.Job()
    assert "PERSEUS_TOKEN_FILE" in job.last_error


def test_certificates_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the trainer names others."""
    made: list[dict[str, object]] = []

    class Made(Recorder):
        def __init__(self, *_: object, **options: object) -> None:
            super().__init__()
            made.append(options)

    monkeypatch.setattr("perseus.hooks.job._Client", Made)
    monkeypatch.setenv("PERSEUS_CA_FILE", "/etc/ours.pem")
    perseus.Job("https://server")
    perseus.Job("https://server", ca_file="/etc/theirs.pem")
    assert [options["ca_file"] for options in made] == ["/etc/ours.pem", "/etc/theirs.pem"]


def test_a_loop_of_ones_own_makes_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on all ranks; what is missing is asked for at once."""
    opened: list[dict[str, Any]] = []

    def client(server: str, **options: Any) -> Recorder:
        opened.append({"server": server, **options})
        return Recorder()

    monkeypatch.setattr("perseus.hooks.job._Client", client)
    for variable in ("PERSEUS_RUN", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "PERSEUS_SERVER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PERSEUS_DEVICE", "simulated:/gpus")
    monkeypatch.setenv("LOCAL_RANK", "5")
    for rank in (0, 1):
        perseus.Job.for_pipeline(
            "interleaved-1f1b",
            4,
            8,
            run="a",
            pp=2,
            dp=3,
            rank=rank,
            pp_rank=rank,
            dp_rank=0,
            settings={"at": "1.1x"},
            labels={"team": "vision"},
        )
    first, second = (one["job"] for one in opened)
    assert first == second
    assert first["job"] == {
        "schedule": "interleaved-1f1b",
        "virtual_stages": 2,
        "stages": 4,
        "microbatches": 8,
        "dp": 3,
        "tp": 1,
        "at": "1.1x",
    }
    assert first["labels"] == {"team": "vision"}
    assert first["client_key"].startswith("a-")
    assert opened[1]["rank"] == 1
    assert [one["gpu_index"] for one in opened] == [5, 5]
    assert opened[0]["server"] == layout.DEFAULT_SERVER
    assert opened[0]["device"] == "simulated:/gpus"
    assert opened[0]["profile"] is True
    with pytest.raises(ValueError, match="run="):
        perseus.Job.for_pipeline("1f1b", 4, 8)
    # Ranks that all are the first would wait for each other for ever.
    with pytest.raises(ValueError, match=r"8 ranks.* rank=, dp_rank=$"):
        perseus.Job.for_pipeline("1f1b", 4, 8, run="a", dp=2, pp_rank=1)
    with pytest.raises(ValueError, match="4 stages"):
        perseus.Job.for_pipeline("1f1b", 4, 8, run="a", pp=3)
    with pytest.raises(OSError, match=r"none\.csv"):
        perseus.Job.for_pipeline("1f1b", 1, 8, run="a", profile="none.csv")


def test_callbacks_may_skip_as_blocks_do() -> None:
    """More ends than begins change nothing."""
    job, log = job_with(timeline="host")
    job.skip_end()
    job.skip_begin()
    with job.step(), job.forward(0):
        pass
    assert log == []
    job.skip_end()
    with job.step():
        pass
    assert [e[0] for e in log] == ["step_begin", "step_end"]


def test_who_trains_does_not_wait_for_a_log() -> None:
    """A handler that stands still, as where a pipe is full: steps go on."""
    job, log = job_with(timeline="host")
    goes_on = threading.Event()
    waited: list[bool] = []

    class Stuck(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            waited.append(goes_on.wait(PATIENCE))

    handler = Stuck()
    logging.getLogger("perseus").addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with job.step():
                job.fail("the device is lost", about="device")
            client: Any = job.client
            client.last_error = "the server is away"
            with job.step():
                pass
            goes_on.set()
            said_by(job)
    finally:
        logging.getLogger("perseus").removeHandler(handler)
    assert waited == [True, True]
    assert [entry[0] for entry in log] == ["step_begin", "step_end"] * 2
