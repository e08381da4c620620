// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/node/doctor_examination.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "agent/control.h"
#include "agent/fights.h"
#include "agent/protocol.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/node/doctor_report.h"
#include "cli/node/lent_gpus.h"
#include "common/signal_hold.h"
#include "device/cuda_kernel.h"
#include "device/simulated/simulated_gpu.h"
#include "device/simulated/simulated_kernel.h"
#include "device/timed_kernel.h"

namespace perseus::cli {
namespace {

constexpr double kReadEverySeconds = 0.010;
constexpr int kClockCalls = 10;
constexpr int kEffectSwitches = 24;
constexpr int kDisturbedBlocks = 5;
constexpr int kRoundsTogether = 6;
constexpr std::chrono::milliseconds kHelloPatience(2000);
// A counter and a power reading that differ by more are worth a word.
constexpr double kPowerTolerance = 0.1;

constexpr const char* kStartAgent =
    "run 'perseus agent run' as root on this node (docs/explanation/agent.md); jobs then set "
    "clocks through it without any right of their own";

class Examiner {
 public:
  explicit Examiner(const DoctorFlags& flags) : flags_(flags) {
    found_.driver = flags.driver;
    found_.agent_socket =
        flags.agent_socket.empty() ? agent::kDefaultSocketPath : flags.agent_socket;
  }

  Result<Examination> Run() {
    // From before the driver is loaded, so that its threads hold them back, too.
    const SignalHold hold;
    stop_ = [&hold] { return hold.IsWaiting(); };
    AskAgent();
    // From before the driver is opened here, which does not survive in another process.
    if (flags_.set_clocks) own_agent_ = OwnAgent::Start(flags_.driver);
    OpenDriver();
    if (driver_ != nullptr) {
      LookAtRights();
      LookAtGpus();
      ReadCounters();
      if (flags_.set_clocks) {
        const Result<void> set = SetClocks();
        if (!set) return tl::unexpected(set.error());
      }
    }
    LookAtAgent();
    if (hold.IsWaiting()) {
      return MakeError(ErrorCode::kCancelled, "asked to stop; every clock is given back");
    }
    return found_;
  }

 private:
  void Add(FindingLevel level, std::string about, std::string message, std::string fix = "") {
    found_.findings.push_back({level, std::move(about), std::move(message), std::move(fix)});
  }
  static std::string NameOf(const device::GpuInfo& info) {
    return fmt::format("GPU {}", info.index);
  }

  void AskAgent() {
    Result<agent::Control> control =
        agent::Control::Connect(found_.agent_socket, "perseus doctor", kHelloPatience);
    if (!control) {
      agent_error_ = control.error().message;
      is_denied_ = control.error().code == ErrorCode::kDenied;
      return;
    }
    agent_ = control->hello();
    found_.agent_sets_clocks = !agent_->observe;
  }

  void OpenDriver() {
    Result<std::unique_ptr<device::Driver>> driver = device::OpenDriver(flags_.driver);
    if (!driver) {
      Add(FindingLevel::kFault, "driver", driver.error().message);
      return;
    }
    driver_ = *std::move(driver);
    Add(FindingLevel::kOk, "driver",
        fmt::format("{} shows {}", flags_.driver,
                    CountOf(static_cast<long long>(driver_->gpus().size()), "GPU")));
    for (const std::string& fault : driver_->faults()) {
      Add(FindingLevel::kWarning, "driver", fault);
    }
    for (const auto& gpu : driver_->gpus()) {
      gpus_.push_back(gpu.get());
      found_.gpus.push_back({});
      found_.gpus.back().info = gpu->info();
    }
  }

  void LookAtRights() {
    const Result<bool> may = driver_->MaySetClocks();
    found_.may_set_clocks = may.value_or(false);
    if (*found_.may_set_clocks) {
      Add(FindingLevel::kOk, "rights", "this process may set clocks");
    } else if (found_.agent_sets_clocks) {
      Add(FindingLevel::kOk, "rights",
          "this process may not set clocks, and need not: the agent does");
    } else {
      Add(FindingLevel::kFault, "rights",
          "nobody may set clocks here: this process lacks the right (root, or CAP_SYS_ADMIN), and "
          "no agent does it for others",
          kStartAgent);
    }
  }

  void LookAtGpus() {
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      ExaminedGpu& gpu = found_.gpus[i];
      const std::string name = NameOf(gpu.info);
      if (gpu.info.clocks_mhz.size() < 2) {
        Add(FindingLevel::kFault, name,
            fmt::format("it offers one clock only ({} MHz), so that there is nothing to choose",
                        gpu.info.clocks_mhz.front()),
            "plan for GPUs whose driver lists their clocks: no MIG slice, no virtual GPU");
      }
      const Result<device::GpuConditions> conditions = gpus_[i]->Conditions();
      if (!conditions) {
        Add(FindingLevel::kWarning, name, conditions.error().message);
        continue;
      }
      gpu.conditions = *conditions;
      LookAtConditions(name, *conditions);
    }
  }

  void LookAtConditions(const std::string& name, const device::GpuConditions& conditions) {
    for (const std::string& fight : agent::FightsOf(conditions, /*is_locked=*/false)) {
      Add(FindingLevel::kWarning, name, fight);
    }
    const std::vector<std::string> held = device::ThrottleNames(conditions.throttle_reasons);
    if (!held.empty()) {
      Add(FindingLevel::kWarning, name,
          fmt::format("its clock is held back now ({}): computations take longer than planned",
                      fmt::join(held, ", ")),
          "find out why before profiling: cooling, the power supply, a power limit");
    }
    if (conditions.mig) {
      Add(FindingLevel::kWarning, name,
          "it is cut into slices (MIG), whose clocks and energy are those of the whole GPU",
          "switch MIG off where a job is to follow a plan");
    }
  }

  void ReadCounters() {
    ProgressLine progress("");
    progress.Announce(fmt::format("Reading energy counters for {} s", flags_.seconds));
    const auto probes = device::ProbeCounters(gpus_, flags_.seconds, kReadEverySeconds, stop_);
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      found_.gpus[i].counter = probes[i];
      LookAtCounter(NameOf(found_.gpus[i].info), probes[i]);
    }
  }

  void LookAtCounter(const std::string& name, const device::CounterProbe& probe) {
    if (probe.error) {
      Add(FindingLevel::kWarning, name, probe.error->message,
          "profile on a card with an energy counter (Volta or newer), or measure power outside");
    } else if (!probe.period_seconds) {
      Add(FindingLevel::kWarning, name,
          fmt::format("its energy counter moved less than twice in {} s", flags_.seconds),
          "look for longer (--seconds 10); a counter that stands still cannot be profiled with");
    } else if (probe.reading_watts && probe.counter_watts &&
               std::abs(*probe.reading_watts - *probe.counter_watts) >
                   kPowerTolerance * *probe.counter_watts) {
      Add(FindingLevel::kWarning, name,
          fmt::format("energy counter and power reading disagree: {} and {}",
                      FormatWatts(*probe.counter_watts), FormatWatts(*probe.reading_watts)),
          "look again on an idle GPU (--seconds 10); where they still differ, use one of the two "
          "for a whole profile");
    }
  }

  Result<void> SetClocks() {
    if (agent_) {
      for (const ExaminedGpu& gpu : found_.gpus) {
        const auto owned = [&](const auto& other) { return other.uuid == gpu.info.uuid; };
        if (std::any_of(agent_->gpus.begin(), agent_->gpus.end(), owned)) {
          return InvalidInput(fmt::format(
              "--set-clocks: an agent (at {}) has the clocks of this node, and jobs may "
              "be using them; stop the agent first, or leave --set-clocks out",
              found_.agent_socket));
        }
      }
    }
    if (auto lent = LendAll(); !lent) {
      // Found out the hard way, where the capability alone did not tell.
      const bool denied = lent.error().code == ErrorCode::kDenied;
      if (denied) found_.may_set_clocks = false;
      Add(FindingLevel::kFault, "rights", "clocks cannot be set: " + lent.error().message);
      return {};
    }
    ProgressLine progress("");
    for (std::size_t i = 0; i < gpus_.size() && !stop_(); ++i) {
      const std::string name = NameOf(found_.gpus[i].info);
      progress.Announce("Setting clocks of " + name);
      const auto probe = device::ProbeClock(*lent_[i], kClockCalls, stop_);
      if (probe) {
        found_.gpus[i].clock = *probe;
        TimeKernels(i, &progress);
      } else {
        Missed(FindingLevel::kFault, name, "", probe.error());
      }
    }
    if (lent_.size() > 1 && !stop_()) MeasureTogether(&progress);
    lent_.clear();
    return {};
  }

  Result<void> LendAll() {
    if (!own_agent_) return {};
    if (!*own_agent_) return tl::unexpected(own_agent_->error());
    for (device::Gpu* const gpu : gpus_) {
      auto lent = (**own_agent_)->Lend(gpu);
      if (!lent) return tl::unexpected(lent.error());
      lent_.push_back(*std::move(lent));
    }
    return {};
  }

  // What was not measured is said; who asked to stop knows.
  void Missed(FindingLevel level, const std::string& about, const std::string& what,
              const Error& error) {
    if (error.code != ErrorCode::kCancelled) Add(level, about, what + error.message);
  }

  void MeasureTogether(ProgressLine* progress) {
    progress->Announce("Setting clocks of all GPUs at once");
    std::vector<device::Gpu*> gpus;
    for (const auto& gpu : lent_) gpus.push_back(gpu.get());
    const auto probe = device::ProbeTogether(gpus, kRoundsTogether, stop_);
    if (!probe) {
      Missed(FindingLevel::kFault, "clocks",
             "setting the clocks of all GPUs at once failed: ", probe.error());
      return;
    }
    found_.together = *probe;
    if (!probe->is_serial()) return;
    Add(FindingLevel::kNote, "clocks",
        fmt::format("the driver serves one call at a time: a call takes {} alone, and {} until the "
                    "last of {} GPUs that are called at once has its answer",
                    Milliseconds(probe->alone_seconds.value),
                    Milliseconds(probe->together_seconds.value), probe->gpus));
  }

  // CUDA's driver is looked for beside an NVML that was named by its path.
  std::string CudaLibrary() const {
    constexpr std::string_view kNvml = "nvml:";
    if (!flags_.driver.starts_with(kNvml)) return "";
    const std::filesystem::path beside =
        std::filesystem::path(flags_.driver.substr(kNvml.size())).parent_path() / "libcuda.so.1";
    std::error_code missing;
    return std::filesystem::exists(beside, missing) ? beside.string() : "";
  }

  // Work on a GPU whose length is known; nullptr: there is no such work there.
  Result<std::unique_ptr<device::TimedKernel>> OpenKernel(std::size_t i, bool is_transfer) {
    constexpr std::string_view kSimulated = "simulated:";
    if (!flags_.driver.starts_with(kSimulated)) {
      if (is_transfer) return nullptr;
      return device::OpenCudaKernel(CudaLibrary(), found_.gpus[i].info.uuid);
    }
    if (simulated_ == nullptr) {
      auto opened = device::SimulatedGpus::Open(flags_.driver.substr(kSimulated.size()));
      if (!opened) return tl::unexpected(opened.error());
      simulated_ = *std::move(opened);
    }
    return device::MakeSimulatedKernel(
        simulated_.get(), found_.gpus[i].info.index,
        is_transfer ? device::SimulatedWork::kTransfer : device::SimulatedWork::kCompute);
  }

  void TimeKernels(std::size_t i, ProgressLine* progress) {
    const std::string name = NameOf(found_.gpus[i].info);
    ExaminedGpu& gpu = found_.gpus[i];
    device::Gpu& lent = *lent_[i];
    const auto kernel = OpenKernel(i, /*is_transfer=*/false);
    if (!kernel) {
      Missed(FindingLevel::kNote, name,
             "how long a clock takes to be in effect, what calls cost and how late the energy "
             "counter is was not measured: ",
             kernel.error());
      return;
    }
    progress->Announce(fmt::format("Timing kernels of {} under changing clocks", name));
    if (auto effect = device::ProbeEffect(lent, **kernel, kEffectSwitches, stop_)) {
      gpu.effect = *std::move(effect);
    } else {
      Missed(FindingLevel::kNote, name,
             "how long a clock takes to be in effect was not measured: ", effect.error());
    }
    progress->Announce(fmt::format("Measuring what calls cost the work of {}", name));
    gpu.computation = Disturb(i, kernel->get(), "a computation");
    const auto transfer = OpenKernel(i, /*is_transfer=*/true);
    if (transfer && *transfer != nullptr) {
      gpu.transfer = Disturb(i, transfer->get(), "a transfer");
    } else {
      Add(FindingLevel::kNote, name,
          "what a call costs a transfer between GPUs (a send and its receive) was not measured: "
          "this program makes none on real GPUs");
    }
    progress->Announce(fmt::format("Measuring the energy counter of {} under a load", name));
    if (auto step = device::ProbeStep(lent, **kernel, stop_)) {
      gpu.step = *step;
    } else {
      Missed(FindingLevel::kNote, name,
             "how late the energy counter is was not measured: ", step.error());
    }
  }

  std::optional<device::DisturbanceProbe> Disturb(std::size_t i, device::TimedKernel* kernel,
                                                  const std::string& what) {
    const auto probe = device::ProbeDisturbance(*lent_[i], *kernel, flags_.call_interval_seconds,
                                                kDisturbedBlocks, stop_);
    if (probe) return *probe;
    Missed(FindingLevel::kNote, NameOf(found_.gpus[i].info),
           fmt::format("what a call costs {} was not measured: ", what), probe.error());
    return std::nullopt;
  }

  void LookAtAgent() {
    if (agent_ && !agent_->observe) {
      Add(FindingLevel::kOk, "agent",
          fmt::format("an agent answers at {} and may set clocks", found_.agent_socket));
    } else if (agent_) {
      Add(FindingLevel::kWarning, "agent",
          fmt::format("the agent at {} only watches: it sets no clock", found_.agent_socket),
          "start it with the right to set clocks, and without --observe");
    } else if (is_denied_) {
      Add(FindingLevel::kWarning, "agent",
          fmt::format("the agent at {} does not let you in: {}", found_.agent_socket, agent_error_),
          "ask whoever runs it");
    } else if (found_.may_set_clocks.value_or(false)) {
      Add(FindingLevel::kWarning, "agent",
          fmt::format("no agent ({}): a job that is killed would leave its clocks locked",
                      agent_error_),
          kStartAgent);
    } else {
      Add(FindingLevel::kNote, "agent", fmt::format("no agent ({})", agent_error_), kStartAgent);
    }
  }

  DoctorFlags flags_;
  Examination found_;
  device::StopFunction stop_;
  std::unique_ptr<device::Driver> driver_;
  std::vector<device::Gpu*> gpus_;  // Of driver_, in the order of found_.gpus.
  std::optional<agent::HelloAnswer> agent_;
  std::string agent_error_;
  bool is_denied_ = false;  // There is an agent, for others.
  // Absent: no clock is to be set.
  std::optional<Result<std::unique_ptr<OwnAgent>>> own_agent_;
  std::vector<std::unique_ptr<device::Gpu>> lent_;    // Of own_agent_, in the order of gpus_.
  std::unique_ptr<device::SimulatedGpus> simulated_;  // Opened for their kernels.
};

}  // namespace

bool Examination::can_follow_plans() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.level == FindingLevel::kFault; });
}

Result<Examination> ExamineNode(const DoctorFlags& flags) { return Examiner(flags).Run(); }

}  // namespace perseus::cli
