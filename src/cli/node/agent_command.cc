// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/protocol.h"
#include "agent/release.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/node/agent_flags.h"
#include "cli/node/agent_metrics.h"
#include "cli/node/agent_relay.h"
#include "cli/node/agent_status.h"
#include "cli/node/gpu_locks.h"
#include "cli/node/metrics_file.h"
#include "common/signal_hold.h"
#include "device/device.h"

namespace perseus::cli {
namespace {

constexpr auto kReleasePatience = std::chrono::milliseconds(6000);

std::string GivenOr(const std::string& given, const std::string& otherwise) {
  return given.empty() ? otherwise : given;
}

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

template <typename Id, typename Lookup>
Result<void> AddIds(const std::vector<std::string>& names, std::string_view option,
                    const Lookup& lookup, std::vector<Id>* ids) {
  for (const std::string& name : names) {
    const Result<Id> id = lookup(name);
    if (!id) return InvalidInput(fmt::format("{}: {}", option, id.error().message));
    ids->push_back(*id);
  }
  return {};
}

Result<agent::AccessList> AccessListOf(const AgentFlags& flags) {
  agent::AccessList access;
  if (auto added = AddIds(flags.users, "--allow-user", agent::UserId, &access.users); !added) {
    return tl::unexpected(added.error());
  }
  if (auto added = AddIds(flags.groups, "--allow-group", agent::GroupId, &access.groups); !added) {
    return tl::unexpected(added.error());
  }
  if (auto added = AddIds(flags.operators, "--operator", agent::UserId, &access.operators);
      !added) {
    return tl::unexpected(added.error());
  }
  return access;
}

std::string GivenGpuLocks(const AgentFlags& flags) {
  return flags.gpu_locks.empty() ? GpuLocksOf(flags.driver) : flags.gpu_locks;
}

Result<agent::AgentOptions> AgentOptionsOf(const AgentFlags& flags) {
  agent::AgentOptions options;
  options.driver = GivenOr(flags.driver, options.driver);
  options.socket_path = GivenOr(flags.socket, options.socket_path);
  options.journal_path = GivenOr(flags.journal, options.journal_path);
  options.gpu_locks = GivenGpuLocks(flags);
  options.observe = flags.observe;
  if (flags.min_interval_seconds) {
    options.worker.min_interval = Nanoseconds(*flags.min_interval_seconds);
  }
  if (flags.poll_seconds) options.worker.poll = Nanoseconds(*flags.poll_seconds);
  if (flags.max_silence_seconds) options.max_silence = Nanoseconds(*flags.max_silence_seconds);
  Result<agent::AccessList> access = AccessListOf(flags);
  if (!access) return tl::unexpected(access.error());
  options.access = *std::move(access);
  return options;
}

// Figures come through the agent's socket, as for everybody: an agent that hangs writes none.
MetricsFile::Collect AgentFigures(const std::string& socket) {
  return [socket](double now_seconds) -> Result<metrics::Families> {
    const Result<agent::StatusAnswer> status = AskAgentStatus(socket, "metrics file");
    if (!status) return tl::unexpected(status.error());
    return AgentFamilies(*status, now_seconds);
  };
}

Result<Printout> ServeAgent(const AgentFlags& flags) {
  const Result<agent::AgentOptions> options = AgentOptionsOf(flags);
  if (!options) return tl::unexpected(options.error());
  if (!flags.metrics_file.empty()) {
    const Result<void> good = CheckMetricsFile(flags.metrics_file);
    if (!good) return tl::unexpected(good.error());
  }
  const StopSignals signals;  // Before the driver makes threads.
  Result<std::unique_ptr<device::Driver>> driver = device::OpenDriver(options->driver);
  if (!driver) return tl::unexpected(driver.error());
  const auto log = std::make_shared<Log>([](const std::string& line) { WriteStandardError(line); });
  const auto agent = agent::Agent::Start(*options, *std::move(driver), log);
  if (!agent) return tl::unexpected(agent.error());
  std::unique_ptr<MetricsFile> file;
  if (!flags.metrics_file.empty()) {
    auto started = MetricsFile::Start(flags.metrics_file, AgentFigures(options->socket_path), log);
    if (!started) return tl::unexpected(started.error());
    file = *std::move(started);
  }
  if (auto ended = (*agent)->Run(signals.descriptor()); !ended) {
    return tl::unexpected(ended.error());
  }
  return Printout("");
}

Result<Printout> ServeRanks(const AgentFlags& flags) {
  const Result<agent::AccessList> access = AccessListOf(flags);
  if (!access) return tl::unexpected(access.error());
  return ServeRelay(flags, *access);
}

Result<Printout> DescribeRelease(const agent::ReleaseAllAnswer& answer) {
  if (!answer.failed.empty()) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{} given back, but {}", CountOf(answer.released, "clock"),
                                 fmt::join(answer.failed, "; ")));
  }
  return Printout(fmt::format("{} given back.\n", CountOf(answer.released, "clock")));
}

// What a command says to whoever finds no agent.
std::string WithRemedy(const std::string& no_agent) {
  return fmt::format("{}{} 'sudo perseus agent run' starts one, and --socket names another",
                     no_agent, no_agent.ends_with('?') ? "" : ";");
}

Result<Printout> ReleaseOnDriver(const AgentFlags& flags, const agent::ReleaseScope& scope) {
  const agent::AgentOptions defaults;
  Result<std::unique_ptr<device::Driver>> driver =
      device::OpenDriver(GivenOr(flags.driver, defaults.driver));
  if (!driver) return tl::unexpected(driver.error());
  const Result<agent::ReleaseAllAnswer> released = agent::ReleaseDirectly(
      *std::move(driver), GivenOr(flags.journal, defaults.journal_path), scope, kReleasePatience);
  if (!released) return tl::unexpected(released.error());
  return DescribeRelease(*released);
}

Result<Printout> ReleaseClocks(const AgentFlags& flags) {
  if (static_cast<int>(flags.all) + static_cast<int>(flags.journaled) +
          static_cast<int>(!flags.gpu.empty()) !=
      1) {
    return InvalidInput(
        "which clocks? Give one of --all and --gpu, as in 'perseus agent release --all'");
  }
  const agent::AgentOptions defaults;
  const agent::ReleaseScope scope = {flags.gpu, flags.journaled, GivenGpuLocks(flags)};
  if (flags.journaled) {
    const auto named = agent::JournalNamesGpus(GivenOr(flags.journal, defaults.journal_path));
    if (!named) return tl::unexpected(named.error());
    return *named ? ReleaseOnDriver(flags, scope) : Printout("The journal names no GPU.\n");
  }
  const Result<agent::ReleaseAllAnswer> released = agent::ReleaseThroughAgent(
      GivenOr(flags.socket, defaults.socket_path), scope, kReleasePatience);
  if (released) return DescribeRelease(*released);
  if (released.error().code != ErrorCode::kIo) return tl::unexpected(released.error());
  Result<Printout> directly = ReleaseOnDriver(flags, scope);
  if (directly || directly.error().code == ErrorCode::kDenied) return directly;
  Error& error = directly.error();
  error.message =
      fmt::format("{}. Without an agent: {}", WithRemedy(released.error().message), error.message);
  return directly;
}

std::string OwnerText(const std::optional<agent::OwnerStatus>& owner) {
  if (!owner) return "-";
  return fmt::format("{} of {}{}", owner->pid, owner->user,
                     owner->client.empty() ? "" : fmt::format(", {}", owner->client));
}

std::string AgentStatusText(const agent::StatusAnswer& status, const Style& style) {
  std::string out = fmt::format("{}\nprocess {}, driver {}, up for {:.0f} s, {}{}\n\n",
                                style.Bold("Agent"), status.pid, status.driver,
                                status.uptime_seconds, CountOf(status.connections, "connection"),
                                status.observe ? ", observing only" : "");
  Table table({"GPU", "name", "clock", "owner", "set", "given back", "failed"},
              {Align::kLeft, Align::kLeft, Align::kRight, Align::kLeft, Align::kRight,
               Align::kRight, Align::kRight});
  std::string notes;
  for (const agent::GpuStatus& gpu : status.gpus) {
    table.AddRow({fmt::format("{}", gpu.index), gpu.name,
                  gpu.locked_mhz ? fmt::format("{} MHz", *gpu.locked_mhz) : "free",
                  OwnerText(gpu.owner), fmt::format("{}", gpu.sets),
                  fmt::format("{}", gpu.restores), fmt::format("{}", gpu.failures)});
    if (gpu.restore_pending) {
      notes += fmt::format("Note     GPU {}: its clock is not given back yet; it is tried again.\n",
                           gpu.index);
    }
    if (!gpu.last_error.empty()) {
      notes += fmt::format("Note     GPU {}: {}.\n", gpu.index, gpu.last_error);
    }
    for (const std::string& fight : gpu.fights) {
      notes += fmt::format("Note     GPU {}: {}.\n", gpu.index, fight);
    }
  }
  out += table.Format(style.rule());
  return notes.empty() ? out : out + "\n" + notes;
}

Result<Printout> ShowAgentStatus(const AgentFlags& flags, const Style& style) {
  const agent::AgentOptions defaults;
  const std::string socket = GivenOr(flags.socket, defaults.socket_path);
  const Result<agent::StatusAnswer> status = AskAgentStatus(socket, "perseus agent status");
  if (!status && status.error().code != ErrorCode::kIo) return tl::unexpected(status.error());
  if (!status) {
    return MakeError(ErrorCode::kIo, WithRemedy(status.error().message));
  }
  if (flags.json) {
    return Printout(AgentStatusJson(*status));
  }
  return Printout(AgentStatusText(*status, style));
}

}  // namespace

Result<Printout> RunAgent(const AgentFlags& flags, const Style& style) {
  if (flags.action == "status") return ShowAgentStatus(flags, style);
  if (flags.action == "release") return ReleaseClocks(flags);
  if (flags.action == "relay") return ServeRanks(flags);
  return ServeAgent(flags);
}

}  // namespace perseus::cli
