// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/protocol.h"
#include "agent/protocol_text.h"
#include "common/json_text.h"
#include "common/tree.h"
#include "common/tree_reader.h"

namespace perseus::agent {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> Strings(const TreeCursor& list) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < list.Size(); ++i) texts.push_back(list.At(i).String());
  return texts;
}

bool IsNull(const TreeCursor& at) {
  return std::holds_alternative<std::monostate>(at.node().value);
}

std::optional<TreeCursor> Present(const TreeCursor& table, std::string_view key) {
  std::optional<TreeCursor> found = table.Find(key);
  if (found && IsNull(*found)) found.reset();
  return found;
}

std::optional<double> OptionalNumber(const TreeCursor& table, std::string_view key) {
  const auto found = Present(table, key);
  return found ? std::optional(found->Number()) : std::nullopt;
}

HelloAnswer ReadHello(const TreeCursor& root) {
  HelloAnswer hello;
  hello.version = root.Get("version").Integer(1);
  if (const auto program = Present(root, "program_version")) {
    hello.program_version = program->String();
  }
  hello.observe = root.Get("observe").Bool();
  hello.max_silence_seconds = root.Get("max_silence_s").Number(kNotNegative);
  const TreeCursor gpus = root.Get("gpus");
  for (std::size_t i = 0; i < gpus.Size(); ++i) {
    const TreeCursor at = gpus.At(i);
    GpuSummary gpu;
    gpu.uuid = at.Get("uuid").String();
    gpu.name = at.Get("name").String();
    gpu.index = at.Get("index").Integer(0);
    const TreeCursor clocks = at.Get("clocks_mhz");
    for (std::size_t k = 0; k < clocks.Size(); ++k) {
      gpu.clocks_mhz.push_back(clocks.At(k).Integer(1, kMaxClockMhz));
    }
    if (const auto pid = Present(at, "owner_pid")) gpu.owner_pid = ReadWhole(*pid, 0);
    hello.gpus.push_back(std::move(gpu));
  }
  return hello;
}

SetAnswer ReadSet(const TreeCursor& root) {
  SetAnswer set;
  if (const auto mhz = root.Find("mhz")) set.mhz = mhz->Integer(0, kMaxClockMhz);
  if (const auto took = root.Find("took_us")) set.took_us = ReadWhole(*took, 0);
  if (const auto superseded = root.Find("superseded")) set.superseded = superseded->Bool();
  return set;
}

ConditionsAnswer ReadConditions(const TreeCursor& root) {
  ConditionsAnswer answer;
  const TreeCursor at = root.Get("conditions");
  device::GpuConditions& conditions = answer.conditions;
  conditions.power_limit_watts = OptionalNumber(at, "power_limit_w");
  conditions.default_power_limit_watts = OptionalNumber(at, "default_power_limit_w");
  conditions.temperature_celsius = OptionalNumber(at, "temperature_c");
  conditions.throttle_reasons =
      static_cast<std::uint64_t>(ReadWhole(at.Get("throttle_reasons"), 0));
  conditions.power_profiles = Strings(at.Get("power_profiles"));
  conditions.power_floor_watts = OptionalNumber(at, "power_floor_w");
  conditions.mig = at.Get("mig").Bool();
  answer.conflicts = Strings(root.Get("fights"));
  return answer;
}

GpuStatus ReadGpuStatus(const TreeCursor& at) {
  GpuStatus gpu;
  gpu.uuid = at.Get("uuid").String();
  gpu.name = at.Get("name").String();
  gpu.index = at.Get("index").Integer(0);
  if (const auto owner = Present(at, "owner")) {
    OwnerStatus& status = gpu.owner.emplace();
    status.pid = ReadWhole(owner->Get("pid"), 0);
    status.uid = ReadWhole(owner->Get("uid"), 0);
    status.user = owner->Get("user").String();
    status.client = owner->Get("client").String();
    status.held_seconds = owner->Get("held_s").Number(kNotNegative);
    status.silent_seconds = owner->Get("silent_s").Number(kNotNegative);
  }
  if (const auto mhz = Present(at, "locked_mhz")) gpu.locked_mhz = mhz->Integer(0, kMaxClockMhz);
  gpu.restore_pending = at.Get("restore_pending").Bool();
  gpu.last_error = at.Get("last_error").String();
  gpu.sets = ReadWhole(at.Get("sets"), 0);
  gpu.restores = ReadWhole(at.Get("restores"), 0);
  gpu.failures = ReadWhole(at.Get("failures"), 0);
  gpu.superseded = ReadWhole(at.Get("superseded"), 0);
  gpu.conflicts = Strings(at.Get("fights"));
  return gpu;
}

StatusAnswer ReadStatus(const TreeCursor& root) {
  StatusAnswer status;
  status.pid = ReadWhole(root.Get("pid"), 0);
  status.driver = root.Get("driver").String();
  status.observe = root.Get("observe").Bool();
  status.uptime_seconds = root.Get("uptime_s").Number(kNotNegative);
  status.max_silence_seconds = root.Get("max_silence_s").Number(kNotNegative);
  status.min_interval_seconds = root.Get("min_interval_s").Number(kNotNegative);
  status.poll_seconds = root.Get("poll_s").Number(kNotNegative);
  status.connections = root.Get("connections").Integer(0);
  // Agents of before do not count them.
  if (const auto leases = root.Find("leases")) status.leases = ReadWhole(*leases, 0);
  if (const auto refused = root.Find("refused")) {
    for (const Refusal code : kAllRefusals) {
      const auto count = refused->Find(RefusalName(code));
      if (count) status.refused[code] = ReadWhole(*count, 0);
    }
  }
  const TreeCursor gpus = root.Get("gpus");
  for (std::size_t i = 0; i < gpus.Size(); ++i) status.gpus.push_back(ReadGpuStatus(gpus.At(i)));
  return status;
}

Refused ReadRefused(const TreeCursor& root) {
  Refused refused;
  const TreeCursor code = root.Get("code");
  const std::optional<Refusal> known = RefusalNamed(code.String());
  if (!known) code.FailExpected("a code of this protocol");
  refused.code = known.value_or(Refusal::kBadRequest);
  refused.message = root.Get("message").String();
  return refused;
}

Answer ReadAnswer(const TreeCursor& root) {
  Answer answer;
  if (const auto id = Present(root, "id")) answer.id = ReadWhole(*id, 1);
  if (const auto op = Present(root, "op")) answer.operation = OperationNamed(op->String());
  if (!root.Get("ok").Bool()) {
    answer.body = ReadRefused(root);
    return answer;
  }
  if (!answer.operation) {
    root.Get("op").FailExpected("an operation of this protocol");
    return answer;
  }
  switch (*answer.operation) {
    case Operation::kLease:
    case Operation::kRelease:
    case Operation::kYield:
    case Operation::kRenew:
      answer.body = Done{};
      break;
    case Operation::kHello:
      answer.body = ReadHello(root);
      break;
    case Operation::kSet:
      answer.body = ReadSet(root);
      break;
    case Operation::kEnergy:
      answer.body = EnergyAnswer{root.Get("joules").Number(), ReadWhole(root.Get("at_ns"), 0)};
      break;
    case Operation::kClock:
      answer.body = ClockAnswer{root.Get("mhz").Integer(0, kMaxClockMhz)};
      break;
    case Operation::kConditions:
      answer.body = ReadConditions(root);
      break;
    case Operation::kStatus:
      answer.body = ReadStatus(root);
      break;
    case Operation::kReleaseAll:
      answer.body = ReleaseAllAnswer{root.Get("released").Integer(0), Strings(root.Get("failed"))};
      break;
  }
  return answer;
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void Write(const Refused& refused, Json* out) {
  (*out)["code"] = RefusalName(refused.code);
  (*out)["message"] = refused.message;
}

void Write(const Done& /*done*/, Json* /*out*/) {}

void Write(const HelloAnswer& hello, Json* out) {
  (*out)["version"] = hello.version;
  (*out)["program_version"] = hello.program_version;
  (*out)["observe"] = hello.observe;
  (*out)["max_silence_s"] = hello.max_silence_seconds;
  Json gpus = Json::array();
  for (const GpuSummary& gpu : hello.gpus) {
    gpus.push_back({{"uuid", gpu.uuid},
                    {"name", gpu.name},
                    {"index", gpu.index},
                    {"clocks_mhz", gpu.clocks_mhz},
                    {"owner_pid", OrNull(gpu.owner_pid)}});
  }
  (*out)["gpus"] = std::move(gpus);
}

void Write(const SetAnswer& set, Json* out) {
  if (set.superseded) {
    (*out)["superseded"] = true;
    return;
  }
  (*out)["mhz"] = set.mhz;
  (*out)["took_us"] = set.took_us;
}

void Write(const EnergyAnswer& energy, Json* out) {
  (*out)["joules"] = energy.joules;
  (*out)["at_ns"] = energy.at_ns;
}

void Write(const ClockAnswer& clock, Json* out) { (*out)["mhz"] = clock.mhz; }

void Write(const ConditionsAnswer& answer, Json* out) {
  const device::GpuConditions& conditions = answer.conditions;
  (*out)["conditions"] = {{"power_limit_w", OrNull(conditions.power_limit_watts)},
                          {"default_power_limit_w", OrNull(conditions.default_power_limit_watts)},
                          {"temperature_c", OrNull(conditions.temperature_celsius)},
                          {"throttle_reasons", conditions.throttle_reasons},
                          {"power_profiles", conditions.power_profiles},
                          {"power_floor_w", OrNull(conditions.power_floor_watts)},
                          {"mig", conditions.mig}};
  (*out)["fights"] = answer.conflicts;
}

Json OwnerJson(const std::optional<OwnerStatus>& owner) {
  if (!owner) return nullptr;
  return {{"pid", owner->pid},
          {"uid", owner->uid},
          {"user", owner->user},
          {"client", owner->client},
          {"held_s", owner->held_seconds},
          {"silent_s", owner->silent_seconds}};
}

void Write(const StatusAnswer& status, Json* out) {
  (*out)["pid"] = status.pid;
  (*out)["driver"] = status.driver;
  (*out)["observe"] = status.observe;
  (*out)["uptime_s"] = status.uptime_seconds;
  (*out)["max_silence_s"] = status.max_silence_seconds;
  (*out)["min_interval_s"] = status.min_interval_seconds;
  (*out)["poll_s"] = status.poll_seconds;
  (*out)["connections"] = status.connections;
  (*out)["leases"] = status.leases;
  (*out)["refused"] = Json::object();
  for (const auto& [code, count] : status.refused) (*out)["refused"][RefusalName(code)] = count;
  Json gpus = Json::array();
  for (const GpuStatus& gpu : status.gpus) {
    gpus.push_back({{"uuid", gpu.uuid},
                    {"name", gpu.name},
                    {"index", gpu.index},
                    {"owner", OwnerJson(gpu.owner)},
                    {"locked_mhz", OrNull(gpu.locked_mhz)},
                    {"restore_pending", gpu.restore_pending},
                    {"last_error", gpu.last_error},
                    {"sets", gpu.sets},
                    {"restores", gpu.restores},
                    {"failures", gpu.failures},
                    {"superseded", gpu.superseded},
                    {"fights", gpu.conflicts}});
  }
  (*out)["gpus"] = std::move(gpus);
}

void Write(const ReleaseAllAnswer& answer, Json* out) {
  (*out)["released"] = answer.released;
  (*out)["failed"] = answer.failed;
}

}  // namespace

std::string FormatAnswer(const Answer& answer) {
  Json out = {{"id", OrNull(answer.id)}};
  if (answer.operation) out["op"] = OperationName(*answer.operation);
  out["ok"] = !std::holds_alternative<Refused>(answer.body);
  std::visit([&](const auto& body) { Write(body, &out); }, answer.body);
  return FormatCompact(out) + "\n";
}

Result<Answer> ParseAnswer(std::string_view line) {
  if (line.size() > kMaxAnswerBytes) {
    return InvalidInput(
        "the agent's answer is longer than a mebibyte; is this the agent's socket?");
  }
  const std::string name = "answer";
  const Result<TreeNode> tree = ParseJsonTree(line, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  Answer answer = ReadAnswer(reader.Root());
  if (reader.failed()) return tl::unexpected(*reader.error());
  return answer;
}

}  // namespace perseus::agent
