// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `perseus doctor`: can this node follow plans? With --server: is a server well?

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agent/protocol.h"
#include "cli/cluster/server_examination.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/value_parsers.h"
#include "common/json_text.h"
#include "common/signal_hold.h"
#include "device/device.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

// Faster reading would raise the power of an idle card and so falsify the result.
constexpr std::chrono::milliseconds kReadEvery(10);
constexpr std::chrono::milliseconds kHelloPatience(2000);
// A counter and a power reading that differ by more are worth a word.
constexpr double kPowerTolerance = 0.1;
constexpr const char* kUnknown = "-";

constexpr const char* kStartAgent =
    "run 'perseus agent run' as root on this node (docs/explanation/agent.md); jobs then set "
    "clocks through it without any right of their own";

// How an energy counter moved while it was read every kReadEvery.
struct CounterReads {
  int reads = 0;
  int changes = 0;  // Reads that differ from the one before.
  // Time between steps of the counter; absent: it moved less than twice. Where every read differs,
  // the step is this long at most.
  std::optional<double> period_seconds;
  bool period_is_upper_bound = false;
  std::optional<double> counter_watts;  // Between its first and last step.
  std::optional<double> reading_watts;  // The power reading, a mean of ten.
  std::optional<Error> error;           // Of the counter, where it cannot be read.
};

// Reads one counter, and finds its steps.
class CounterWatch {
 public:
  explicit CounterWatch(device::Gpu* gpu) : gpu_(gpu) {}

  void Read(double now_seconds) {
    if (found_.error) return;
    const Result<double> joules = gpu_->EnergyJoules();
    if (!joules) {
      found_.error = joules.error();
      return;
    }
    if (found_.reads++ > 0 && *joules != joules_) {
      if (found_.changes++ == 0) first_ = {now_seconds, *joules};
      last_ = {now_seconds, *joules};
    }
    joules_ = *joules;
    if (found_.reads % 10 != 1 || watts_.size() == 10) return;
    if (const Result<double> watts = gpu_->PowerWatts()) watts_.push_back(*watts);
  }

  CounterReads Finish() {
    const double passed = last_.first - first_.first;
    if (found_.changes >= 2 && passed > 0) {
      found_.period_seconds = passed / (found_.changes - 1);
      found_.period_is_upper_bound = found_.changes == found_.reads - 1;
      found_.counter_watts = (last_.second - first_.second) / passed;
    }
    if (!watts_.empty()) {
      found_.reading_watts =
          std::accumulate(watts_.begin(), watts_.end(), 0.0) / static_cast<double>(watts_.size());
    }
    return std::move(found_);
  }

 private:
  device::Gpu* gpu_;
  CounterReads found_;
  double joules_ = 0;
  std::pair<double, double> first_;  // Seconds and joules of the first step,
  std::pair<double, double> last_;   // and of the last one.
  std::vector<double> watts_;
};

struct ExaminedGpu {
  device::GpuInfo info;
  std::optional<device::GpuConditions> conditions;
  CounterReads counter;
};

// The findings on a node. A plain value.
struct Examination {
  std::string driver;  // As asked for.
  std::vector<ExaminedGpu> gpus;
  std::optional<bool> may_set_clocks;  // This process; absent: no driver.
  std::string agent_socket;
  bool agent_sets_clocks = false;  // It answers, and is not there to watch only.
  std::vector<Finding> findings;

  bool can_follow_plans() const { return CountOfLevel(findings, FindingLevel::kFault) == 0; }
};

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
    AskAgent();
    OpenDriver();
    if (driver_ != nullptr) {
      LookAtRights();
      for (ExaminedGpu& gpu : found_.gpus) LookAtGpu(&gpu);
      ReadCounters(hold);
    }
    LookAtAgent();
    if (hold.IsWaiting()) return MakeError(ErrorCode::kCancelled, "asked to stop");
    return std::move(found_);
  }

 private:
  void Add(FindingLevel level, std::string about, std::string message, std::string fix = "") {
    found_.findings.push_back({level, std::move(about), std::move(message), std::move(fix)});
  }
  device::Gpu& GpuOf(const ExaminedGpu& gpu) const {
    return *driver_->gpus()[static_cast<std::size_t>(&gpu - found_.gpus.data())];
  }
  static std::string NameOf(const ExaminedGpu& gpu) {
    return fmt::format("GPU {}", gpu.info.index);
  }

  void AskAgent() {
    const Result<agent::Control> control =
        agent::Control::Connect(found_.agent_socket, "perseus doctor", kHelloPatience);
    if (!control) {
      agent_error_ = control.error();
      return;
    }
    agent_ = control->hello();
    found_.agent_sets_clocks = !agent_->observe;
  }

  void OpenDriver() {
    Result<std::unique_ptr<device::Driver>> driver = device::OpenDriver(flags_.driver);
    if (!driver) return Add(FindingLevel::kFault, "driver", driver.error().message);
    driver_ = *std::move(driver);
    Add(FindingLevel::kOk, "driver",
        fmt::format("{} shows {}", flags_.driver,
                    CountOf(static_cast<long long>(driver_->gpus().size()), "GPU")));
    for (const std::string& fault : driver_->faults()) {
      Add(FindingLevel::kWarning, "driver", fault);
    }
    for (const auto& gpu : driver_->gpus()) {
      found_.gpus.push_back({.info = gpu->info(), .conditions = {}, .counter = {}});
    }
  }

  void LookAtRights() {
    found_.may_set_clocks = driver_->MaySetClocks().value_or(false);
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

  void LookAtGpu(ExaminedGpu* gpu) {
    const std::string name = NameOf(*gpu);
    if (gpu->info.clocks_mhz.size() < 2) {
      Add(FindingLevel::kFault, name,
          fmt::format("it offers one clock only ({} MHz), so that there is nothing to choose",
                      gpu->info.clocks_mhz.front()),
          "plan for GPUs whose driver lists their clocks: no MIG slice, no virtual GPU");
    }
    const Result<device::GpuConditions> conditions = GpuOf(*gpu).Conditions();
    if (!conditions) return Add(FindingLevel::kWarning, name, conditions.error().message);
    gpu->conditions = *conditions;
    for (const std::string& conflict : device::ClockConflicts(*conditions, /*is_locked=*/false)) {
      Add(FindingLevel::kWarning, name, conflict);
    }
    const std::vector<std::string> held = device::ThrottleNames(conditions->throttle_reasons);
    if (!held.empty()) {
      Add(FindingLevel::kWarning, name,
          fmt::format("its clock is held back now ({}): computations take longer than planned",
                      fmt::join(held, ", ")),
          "find out why before profiling: cooling, the power supply, a power limit");
    }
    if (conditions->mig) {
      Add(FindingLevel::kWarning, name,
          "it is cut into slices (MIG), whose clocks and energy are those of the whole GPU",
          "switch MIG off where a job is to follow a plan");
    }
  }

  void ReadCounters(const SignalHold& hold) {
    ProgressLine progress("");
    progress.Announce(fmt::format("Reading energy counters for {} s", flags_.seconds));
    std::vector<CounterWatch> watches;
    for (const ExaminedGpu& gpu : found_.gpus) watches.emplace_back(&GpuOf(gpu));
    const auto begin = std::chrono::steady_clock::now();
    for (double seconds = 0; seconds <= flags_.seconds && !hold.IsWaiting();) {
      for (CounterWatch& watch : watches) {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        seconds = passed.count();
        watch.Read(seconds);
      }
      std::this_thread::sleep_for(kReadEvery);
    }
    for (std::size_t i = 0; i < watches.size(); ++i) {
      found_.gpus[i].counter = watches[i].Finish();
      LookAtCounter(NameOf(found_.gpus[i]), found_.gpus[i].counter);
    }
  }

  void LookAtCounter(const std::string& name, const CounterReads& counter) {
    if (counter.error) {
      Add(FindingLevel::kWarning, name, counter.error->message,
          "profile on a card with an energy counter (Volta or newer), or measure power outside");
    } else if (!counter.period_seconds) {
      Add(FindingLevel::kWarning, name,
          fmt::format("its energy counter moved less than twice in {} s", flags_.seconds),
          "look for longer (--seconds 10); a counter that stands still cannot be profiled with");
    } else if (counter.reading_watts && std::abs(*counter.reading_watts - *counter.counter_watts) >
                                            kPowerTolerance * *counter.counter_watts) {
      Add(FindingLevel::kWarning, name,
          fmt::format("energy counter and power reading disagree: {} and {}",
                      FormatWatts(*counter.counter_watts), FormatWatts(*counter.reading_watts)),
          "look again on an idle GPU (--seconds 10); where they still differ, use one of the two "
          "for a whole profile");
    }
  }

  void LookAtAgent() {
    if (agent_ && !agent_->observe) {
      Add(FindingLevel::kOk, "agent",
          fmt::format("an agent answers at {} and may set clocks", found_.agent_socket));
    } else if (agent_) {
      Add(FindingLevel::kWarning, "agent",
          fmt::format("the agent at {} only watches: it sets no clock", found_.agent_socket),
          "start it with the right to set clocks, and without --observe");
    } else if (agent_error_.code == ErrorCode::kDenied) {
      Add(FindingLevel::kWarning, "agent",
          fmt::format("the agent at {} does not let you in: {}", found_.agent_socket,
                      agent_error_.message),
          "ask whoever runs it");
    } else if (found_.may_set_clocks.value_or(false)) {
      Add(FindingLevel::kWarning, "agent",
          fmt::format("no agent ({}): a job that is killed would leave its clocks locked",
                      agent_error_.message),
          kStartAgent);
    } else {
      Add(FindingLevel::kNote, "agent", fmt::format("no agent ({})", agent_error_.message),
          kStartAgent);
    }
  }

  const DoctorFlags& flags_;
  Examination found_;
  std::unique_ptr<device::Driver> driver_;  // Its GPUs in the order of found_.gpus.
  std::optional<agent::HelloAnswer> agent_;
  Error agent_error_;  // Where there is no agent_.
};

std::string Milliseconds(double seconds) { return WithThousands(1e3 * seconds, 1) + " ms"; }

std::string CounterText(const CounterReads& counter) {
  if (counter.error) return "none";
  if (!counter.period_seconds) return "stands still";
  return fmt::format("every {}{}", counter.period_is_upper_bound ? "<= " : "",
                     Milliseconds(*counter.period_seconds));
}

std::string WattsText(const std::optional<double>& watts) {
  return watts ? FormatWatts(*watts) : kUnknown;
}

std::string GpuTable(const Examination& examination, const Style& style) {
  std::vector<Align> alignment(6, Align::kRight);
  alignment[1] = Align::kLeft;
  Table table({"GPU", "name", "clocks", "counter steps", "power", "limit"}, alignment);
  for (const ExaminedGpu& gpu : examination.gpus) {
    const std::vector<int>& clocks = gpu.info.clocks_mhz;
    const device::GpuConditions conditions = gpu.conditions.value_or(device::GpuConditions());
    table.AddRow({fmt::format("{}", gpu.info.index), gpu.info.name,
                  fmt::format("{} of {}-{} MHz", clocks.size(), clocks.front(), clocks.back()),
                  CounterText(gpu.counter), WattsText(gpu.counter.reading_watts),
                  WattsText(conditions.power_limit_watts)});
  }
  // Explain the table's columns to a first reader.
  const std::string notes = fmt::format(
      "Clocks: those that a plan can choose from. Counter: the energy counter, read {} times, "
      "every {}; a measurement should span many of its steps. Power and limit: now.",
      examination.gpus.front().counter.reads, Milliseconds(1e-3 * kReadEvery.count()));
  return table.Format(style.rule()) + Wrap(notes, style.columns, 0) + "\n";
}

std::string Verdict(const Examination& examination, const Style& style) {
  const auto count = [&](FindingLevel level) { return CountOfLevel(examination.findings, level); };
  if (!examination.can_follow_plans()) {
    return style.Bold("This node cannot follow plans") +
           fmt::format(": see {} above.\n", CountOf(count(FindingLevel::kFault), "fault"));
  }
  const auto warnings = count(FindingLevel::kWarning);
  return style.Bold("This node can follow plans") +
         (warnings == 0 ? ".\n" : fmt::format("; see {} above.\n", CountOf(warnings, "warning")));
}

std::string NodeText(const Examination& examination, const Style& style) {
  std::string text;
  if (!examination.gpus.empty()) {
    text += style.Bold("GPUs of this node") + "\n" + GpuTable(examination, style) + "\n";
  }
  return text + FormatFindings(examination.findings, style) + "\n" + Verdict(examination, style);
}

Json NumberOrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json GpuJson(const ExaminedGpu& gpu) {
  const CounterReads& counter = gpu.counter;
  Json json = {{"index", gpu.info.index},
               {"uuid", gpu.info.uuid},
               {"name", gpu.info.name},
               {"clocks_mhz", gpu.info.clocks_mhz}};
  json["energy_counter"] = {{"readable", !counter.error.has_value()},
                            {"period_s", NumberOrNull(counter.period_seconds)},
                            {"period_is_upper_bound", counter.period_is_upper_bound},
                            {"reads", counter.reads},
                            {"read_every_s", 1e-3 * kReadEvery.count()},
                            {"power_w", NumberOrNull(counter.counter_watts)}};
  json["power_w"] = NumberOrNull(counter.reading_watts);
  if (!gpu.conditions) return json;
  json["power_limit_w"] = NumberOrNull(gpu.conditions->power_limit_watts);
  json["default_power_limit_w"] = NumberOrNull(gpu.conditions->default_power_limit_watts);
  json["temperature_c"] = NumberOrNull(gpu.conditions->temperature_celsius);
  json["throttled_by"] = device::ThrottleNames(gpu.conditions->throttle_reasons);
  json["power_profiles"] = gpu.conditions->power_profiles;
  json["power_floor_w"] = NumberOrNull(gpu.conditions->power_floor_watts);
  json["mig"] = gpu.conditions->mig;
  return json;
}

// For programs (docs/how-to/troubleshoot.md).
std::string ExaminationJson(const Examination& examination) {
  Json json = {
      {"schema_version", 1},
      {"can_follow_plans", examination.can_follow_plans()},
      {"driver", examination.driver},
      {"may_set_clocks", examination.may_set_clocks ? Json(*examination.may_set_clocks) : Json()},
      {"agent",
       {{"socket", examination.agent_socket}, {"sets_clocks", examination.agent_sets_clocks}}}};
  json["gpus"] = Json::array();
  for (const ExaminedGpu& gpu : examination.gpus) json["gpus"].push_back(GpuJson(gpu));
  json["findings"] = FindingsJson(examination.findings);
  return FormatByLine(json);
}

Result<Printout> ReportOnServer(const DoctorFlags& flags, const Style& style) {
  if (!flags.agent_socket.empty()) {
    return InvalidInput("--socket is for a node, and --server for a server: give one of them");
  }
  const Result<ServerExamination> examination = ExamineServer(flags.server);
  if (!examination) return tl::unexpected(examination.error());
  Printout printout(flags.json ? ServerExaminationJson(*examination)
                               : FormatServerExamination(*examination, style));
  printout.is_refusal = !examination->is_well();
  return printout;
}

}  // namespace

Result<std::string> NodeJson(const DoctorFlags& flags) {
  const Result<Examination> examination = Examiner(flags).Run();
  if (!examination) return tl::unexpected(examination.error());
  return ExaminationJson(*examination);
}

Result<Printout> RunDoctor(const DoctorFlags& flags, const Style& style) {
  if (!flags.server.server.empty()) return ReportOnServer(flags, style);
  if (!flags.server.token_file.empty() || !flags.server.ca_file.empty()) {
    return InvalidInput(
        fmt::format("{} is for a server: give its address with --server URL",
                    flags.server.token_file.empty() ? "--ca-file" : "--token-file"));
  }
  const Result<Examination> examination = Examiner(flags).Run();
  if (!examination) return tl::unexpected(examination.error());
  Printout printout(flags.json ? ExaminationJson(*examination) : NodeText(*examination, style));
  printout.is_refusal = !examination->can_follow_plans();
  return printout;
}

void AddNodeOptions(CommandParser* parser, std::string* driver, std::string* agent_socket) {
  constexpr const char* kNothing = "expected a name, got nothing";
  parser->AddText(
      "--driver", "DRIVER",
      "How to reach the GPUs: nvml (default), nvml:LIBRARY, zeusd:SOCKET, or simulated:FILE.",
      CommandParser::NotEmpty(driver, kNothing), {ValueKind::kText, {}});
  parser->AddText("--socket", "PATH",
                  fmt::format("The agent's socket (default {}).", agent::kDefaultSocketPath),
                  CommandParser::NotEmpty(agent_socket, kNothing), {ValueKind::kFile, {}});
}

void AddDoctorCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "doctor",
      "Check whether this node's GPUs can follow a plan, or whether a server is well.\n\nOn a "
      "node: looks for the driver, the right to set clocks, an agent, and whatever else changes "
      "the GPUs' clocks (power limits, power profiles, throttling). Measures how often their "
      "energy counters step. Changes nothing on a GPU.\n\nWith --server: "
      "looks at a server's store, certificate and limits, and at what its jobs complain of. "
      "Changes nothing.\n\nThe exit code is 2 if something is a fault, else 0.",
      {{"look at this node", "perseus doctor"},
       {"look at a server and its jobs", "perseus doctor --server https://perseus.example:7787"},
       {"for a program", "perseus doctor --json"}});
  DoctorFlags* flags = &invocation->doctor;
  parser->SetGroup("Where to look");
  AddNodeOptions(parser, &flags->driver, &flags->agent_socket);
  parser->AddValue<double>(&flags->seconds, "--seconds", "SECONDS",
                           "How long energy counters are read, 100 times a second (default 2).",
                           [](std::string_view text) {
                             return ParseQuantity(text, {0.1, 60}, job::kInSeconds);
                           });
  AddServerOptions(parser, &flags->server,
                   "Look at this server in place of this node: http://HOST:PORT, "
                   "https://HOST:PORT or unix:PATH.");
  parser->SetGroup("Output");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
