// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `perseus agent`: run, status and release. What runs here is privileged and knows no network; the
// relay is in relay.cc.

#include "agent/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "agent/protocol.h"
#include "agent/release.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/value_parsers.h"
#include "cli/node/metrics_file.h"
#include "cli/node/node.h"
#include "common/signal_hold.h"
#include "device/device.h"

namespace perseus::cli {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(6000);

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

// Simulated GPUs belong to their file, and whoever can write that.
std::string GivenGpuLocks(const AgentFlags& flags) {
  constexpr std::string_view kSimulated = "simulated:";
  if (!flags.gpu_locks.empty()) return flags.gpu_locks;
  if (!flags.driver.starts_with(kSimulated)) return agent::kDefaultGpuLocks;
  return flags.driver.substr(kSimulated.size()) + ".locks";
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

// A figure of each GPU, by its UUID; none: the GPU has none now.
struct GpuMetric {
  prometheus::MetricFamily (*make)(const char* name, const char* help);
  const char* name;
  const char* help;
  std::optional<double> (*value)(const agent::GpuStatus& gpu, double now_seconds);
};
using OptionalFigure = std::optional<double>;
const GpuMetric kGpuMetrics[] = {
    {metrics::Gauge, "perseus_agent_gpu_leased", "1: a process has the GPU's clock.",
     [](const auto& gpu, double) { return OptionalFigure(gpu.owner ? 1 : 0); }},
    {metrics::Gauge, "perseus_agent_gpu_owner_heard_timestamp_seconds",
     "When that process was last heard, seconds since 1970.",
     [](const auto& gpu, double now) {
       return gpu.owner ? OptionalFigure(now - gpu.owner->silent_seconds) : std::nullopt;
     }},
    {metrics::Gauge, "perseus_agent_gpu_locked_hertz", "The clock that is set now.",
     [](const auto& gpu, double) {
       return gpu.locked_mhz ? OptionalFigure(1e6 * *gpu.locked_mhz) : std::nullopt;
     }},
    {metrics::Counter, "perseus_agent_gpu_clock_sets_total", "Clocks that were set.",
     [](const auto& gpu, double) { return OptionalFigure(gpu.sets); }},
    {metrics::Counter, "perseus_agent_gpu_clock_restores_total", "Clocks that were given back.",
     [](const auto& gpu, double) { return OptionalFigure(gpu.restores); }},
    {metrics::Counter, "perseus_agent_gpu_superseded_total",
     "Clocks that were not set, as a newer request came first.",
     [](const auto& gpu, double) { return OptionalFigure(gpu.superseded); }},
    {metrics::Counter, "perseus_agent_gpu_driver_failures_total", "Calls that the driver refused.",
     [](const auto& gpu, double) { return OptionalFigure(gpu.failures); }},
    {metrics::Gauge, "perseus_agent_gpu_restore_pending",
     "1: a clock could not be given back yet; it is tried again.",
     [](const auto& gpu, double) { return OptionalFigure(gpu.restore_pending ? 1 : 0); }},
    {metrics::Gauge, "perseus_agent_gpu_clock_conflicts",
     "What holds the GPU below its clock now: a power cap, heat, a power profile.",
     [](const auto& gpu, double) { return OptionalFigure(gpu.conflicts.size()); }},
};

// An agent's status for Prometheus. `now_seconds`: time of day.
metrics::Families AgentFamilies(const agent::StatusAnswer& status, double now_seconds) {
  metrics::Families families = {metrics::Gauge(
      "perseus_agent_gpu_info", "1, with UUID, index and name of a GPU of this node.")};
  for (const agent::GpuStatus& gpu : status.gpus) {
    metrics::AddValue(
        &families.back(), 1,
        {{"gpu", gpu.uuid}, {"index", std::to_string(gpu.index)}, {"name", gpu.name}});
  }
  for (const GpuMetric& metric : kGpuMetrics) {
    prometheus::MetricFamily& family = families.emplace_back(metric.make(metric.name, metric.help));
    for (const agent::GpuStatus& gpu : status.gpus) {
      if (const auto value = metric.value(gpu, now_seconds)) {
        metrics::AddValue(&family, *value, {{"gpu", gpu.uuid}});
      }
    }
  }
  families.push_back(metrics::BuildInfo("perseus_agent_build_info", {{"driver", status.driver}}));
  families.push_back(metrics::Gauge("perseus_agent_start_time_seconds",
                                    "When the agent began, seconds since 1970.",
                                    now_seconds - status.uptime_seconds));
  families.push_back(metrics::Gauge("perseus_agent_observes", "1: it sets no clock (--observe).",
                                    status.observe ? 1 : 0));
  // Without the one that asked for this.
  families.push_back(metrics::Gauge("perseus_agent_connections",
                                    "Open connections of trainers and others.",
                                    status.connections - 1));
  families.push_back(metrics::Counter("perseus_agent_leases_total",
                                      "Leases of GPUs that were given.",
                                      static_cast<double>(status.leases)));
  prometheus::MetricFamily& refused = families.emplace_back(metrics::Counter(
      "perseus_agent_refused_requests_total", "Requests that were refused, by code."));
  agent::RefusalCounts counts = status.refused;
  for (const agent::Refusal code : agent::kAllRefusals) {
    metrics::AddValue(&refused, static_cast<double>(counts.Of(code)),
                      {{"code", std::string(agent::RefusalName(code))}});
  }
  return families;
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
  if (auto good = MetricsFile::Check(flags.metrics_file); !good) {
    return tl::unexpected(good.error());
  }
  const StopSignals signals;  // Before the driver makes threads.
  Result<std::unique_ptr<device::Driver>> driver = device::OpenDriver(options->driver);
  if (!driver) return tl::unexpected(driver.error());
  const auto log = std::make_shared<Log>([](const std::string& line) { WriteStandardError(line); });
  const auto agent = agent::Agent::Start(*options, *std::move(driver), log);
  if (!agent) return tl::unexpected(agent.error());
  const auto file = MetricsFile::Start(flags.metrics_file, AgentFigures(options->socket_path), log);
  if (!file) return tl::unexpected(file.error());
  if (auto ended = (*agent)->Run(signals.descriptor()); !ended) {
    return tl::unexpected(ended.error());
  }
  return Printout("");
}

Result<Printout> ServeRanks(const AgentFlags& flags) {
  const Result<agent::AccessList> access = AccessListOf(flags);
  if (!access) return tl::unexpected(access.error());
  return RunRelay(flags, *access);
}

Result<Printout> DescribeRelease(const agent::ReleaseAllAnswer& answer) {
  if (!answer.failed.empty()) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{} given back, but {}", CountOf(answer.released, "clock"),
                                 fmt::join(answer.failed, "; ")));
  }
  return Printout(fmt::format("{} given back.\n", CountOf(answer.released, "clock")));
}

// Adds the remedy to the error that no agent answers.
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
      *std::move(driver), GivenOr(flags.journal, defaults.journal_path), scope, kPatience);
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
  const Result<agent::ReleaseAllAnswer> released =
      agent::ReleaseThroughAgent(GivenOr(flags.socket, defaults.socket_path), scope, kPatience);
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
    for (const std::string& conflict : gpu.conflicts) {
      notes += fmt::format("Note     GPU {}: {}.\n", gpu.index, conflict);
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

Result<double> ParseAgentTime(std::string_view text, double least, double most) {
  Result<double> seconds = ParseLongDuration(text);
  if (!seconds || (*seconds >= least && *seconds <= most)) return seconds;
  return InvalidInput(
      fmt::format("expected a time from {} s to {} s, found '{}'", least, most, text));
}

void AddDriverOption(CommandParser* parser, AgentFlags* flags) {
  parser->AddText("--driver", "SPEC",
                  "How to reach the GPUs: nvml (default), nvml:/path/lib.so, or simulated:FILE.",
                  CommandParser::NotEmpty(&flags->driver), {});
}

void AddSocketOption(CommandParser* parser, AgentFlags* flags, const std::string& whose,
                     const char* usual) {
  parser->AddText("--socket", "PATH", fmt::format("{} socket (default {}).", whose, usual),
                  CommandParser::NotEmpty(&flags->socket), {ValueKind::kFile, {}});
}

// Options that distinguish one agent from another.
void AddPlaceOptions(CommandParser* parser, AgentFlags* flags) {
  AddDriverOption(parser, flags);
  AddSocketOption(parser, flags, "The agent's", agent::kDefaultSocketPath);
  parser->AddText("--journal", "FILE",
                  fmt::format("Where the agent records which clocks it has changed (default {}).",
                              agent::kDefaultJournalPath),
                  CommandParser::NotEmpty(&flags->journal), {ValueKind::kFile, {}});
  parser->AddText("--gpu-locks", "DIR",
                  fmt::format("Folder of lock files. They prevent two agents of a machine from "
                              "using the same GPU (default {}; for simulated GPUs FILE.locks).",
                              agent::kDefaultGpuLocks),
                  CommandParser::NotEmpty(&flags->gpu_locks), {ValueKind::kDirectory, {}});
}

void AddMetricsOption(CommandParser* parser, AgentFlags* flags) {
  parser->AddText("--metrics-file", "FILE",
                  "Keep figures for Prometheus in this file, whose name ends in .prom: for the "
                  "textfile collector of node_exporter (default: no file).",
                  CommandParser::NotEmpty(&flags->metrics_file), {ValueKind::kFile, {}});
}

void AddAccessOptions(CommandParser* parser, AgentFlags* flags, const std::string& what) {
  parser->AddRepeated(
      "--allow-user", "NAME",
      fmt::format("A user who may {}, besides root and the user that runs this; a name or a "
                  "number. May be given several times.",
                  what),
      CommandParser::AppendedTo(&flags->users, "the name is empty"));
  parser->AddRepeated("--allow-group", "NAME", "The same for the members of a group.",
                      CommandParser::AppendedTo(&flags->groups, "the name is empty"));
}

void AddRunOptions(CommandParser* parser, AgentFlags* flags) {
  parser->AddRepeated("--operator", "NAME",
                      "A user who may also give back the clocks of others (release).",
                      CommandParser::AppendedTo(&flags->operators, "the name is empty"));
  parser->AddFlag(&flags->observe, "--observe", "Set no clock; only show GPUs and conditions.");
  parser->AddValue<double>(&flags->min_interval_seconds, "--min-interval", "TIME",
                           "Change the clock of a GPU at most once in this time (default 10ms).",
                           [](std::string_view text) { return ParseAgentTime(text, 0, 60); });
  parser->AddValue<double>(&flags->max_silence_seconds, "--max-silence", "TIME",
                           "If a trainer holds a locked clock and sends nothing for this time, for "
                           "example because it is stopped, give the clock back (default 5s).",
                           [](std::string_view text) { return ParseAgentTime(text, 0.1, 86400); });
  parser->AddValue<double>(&flags->poll_seconds, "--poll", "TIME",
                           "How often to look for reasons why a GPU does not reach its locked "
                           "clock: power caps, heat (default 10s).",
                           [](std::string_view text) { return ParseAgentTime(text, 1, 86400); });
  AddMetricsOption(parser, flags);
}

void AddRunAction(CommandParser* parser, AgentFlags* flags) {
  parser->AddAction(
      &flags->action, "run",
      "Serve trainers until SIGTERM: they lease GPUs, and the agent sets clocks.\n\n"
      "Trainers lease GPUs over the agent's Unix socket. However a trainer ends, the agent gives "
      "its clocks back at once. If an agent is killed, the next one gives back the clocks that it "
      "left. Needs root or CAP_SYS_ADMIN, or --observe.",
      {{"as root, for the members of a group", "perseus agent run --allow-group trainers"},
       {"on simulated GPUs",
        "perseus agent run --driver simulated:/tmp/gpus --socket /tmp/agent.sock --journal "
        "/tmp/agent.journal"}});
  parser->SetGroup("Where");
  AddPlaceOptions(parser, flags);
  parser->SetGroup("Who may do what");
  AddAccessOptions(parser, flags, "lease GPUs");
  AddRunOptions(parser, flags);
}

void AddReleaseAction(CommandParser* parser, AgentFlags* flags) {
  parser->AddAction(&flags->action, "release",
                    "Give clocks back, whichever process set them.\n\nThe agent does it. If no "
                    "agent answers, this command calls the driver itself.",
                    {{"every clock of the node", "perseus agent release --all"}});
  parser->SetGroup("Which clocks");
  parser->AddFlag(&flags->all, "--all", "The clocks of all GPUs of the node.");
  parser->AddText("--gpu", "GPU", "Only the clock of this GPU: its UUID or index.",
                  CommandParser::NotEmpty(&flags->gpu), {});
  parser->AddFlag(
      &flags->journaled, "--journaled",
      "Only the clocks that the journal of a dead agent names. The service manager uses this.");
  parser->SetGroup("Where");
  AddPlaceOptions(parser, flags);
  // The service manager gives it all options of run.
  parser->SetGroup("");
  AddAccessOptions(parser, flags, "lease GPUs");
  AddRunOptions(parser, flags);
}

void AddRelayAction(CommandParser* parser, AgentFlags* flags) {
  parser->AddAction(
      &flags->action, "relay",
      "Pass requests from the ranks of this node to the server. Needs no privilege.\n\n"
      "Ranks give unix:PATH, the relay's socket, as their server, and need no token. The node then "
      "has two connections to the server instead of two per rank. The relay's own token has the "
      "role train; ranks never see it.",
      {{"as a user of its own",
        "perseus agent relay --server https://perseus:7787 --token-file token --allow-group "
        "trainers"}});
  AddSocketOption(parser, flags, "The relay's", kDefaultRelaySocket);
  AddAccessOptions(parser, flags, "reach the server through it");
  AddMetricsOption(parser, flags);
  AddServerOptions(parser, &flags->server);
}

}  // namespace

Result<agent::StatusAnswer> AskAgentStatus(const std::string& socket, const std::string& name) {
  Result<agent::Control> control = agent::Control::Connect(socket, name, kPatience);
  if (!control) return tl::unexpected(control.error());
  const Result<agent::Answer> answer = control->Ask({.operation = agent::Operation::kStatus});
  if (!answer) return tl::unexpected(answer.error());
  const auto* status = std::get_if<agent::StatusAnswer>(&answer->body);
  if (status == nullptr) return MakeError(ErrorCode::kIo, "the agent does not say how it is");
  return *status;
}

std::string AgentStatusJson(const agent::StatusAnswer& status) {
  return agent::FormatAnswer({std::nullopt, agent::Operation::kStatus, status});
}

Result<Printout> RunAgent(const AgentFlags& flags, const Style& style) {
  if (flags.action == "status") return ShowAgentStatus(flags, style);
  if (flags.action == "release") return ReleaseClocks(flags);
  if (flags.action == "relay") return ServeRanks(flags);
  return ServeAgent(flags);
}
void AddAgentCommand(CommandParser* parser, Invocation* invocation) {
  AgentFlags* flags = &invocation->agent;
  parser->AddCommand("agent",
                     "Set the clocks of a node's GPUs for its trainers.\n\nThe agent runs as root, "
                     "so that trainers need no privilege. The relay passes requests of ranks to "
                     "the server and needs no privilege, either.",
                     {{"on a node, as root, for the members of a group",
                       "perseus agent run --allow-group trainers"},
                      {"which process has which GPU", "perseus agent status"},
                      {"give every clock of the node back", "perseus agent release --all"}});
  AddRunAction(parser, flags);
  parser->AddAction(&flags->action, "status", "Show which process has which GPU.");
  AddSocketOption(parser, flags, "The agent's", agent::kDefaultSocketPath);
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
  AddReleaseAction(parser, flags);
  AddRelayAction(parser, flags);
}

}  // namespace perseus::cli
