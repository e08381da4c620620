// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/conditions_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>
#include <vector>

#include "cli/cluster/json_values.h"
#include "cli/cluster/server_client.h"
#include "common/nearest_name.h"
#include "common/printable.h"
#include "http/target.h"
#include "job/job_fields.h"
#include "server/planning/conditions_state.h"

namespace perseus::cli {
namespace {

// As the server plans for them: of each boundary if 'stages' says how many there are, else one for
// all, their median.
void TakeTransfers(const std::vector<nlohmann::ordered_json>& shown, JobFile* settings) {
  std::vector<server::MeasuredTransfer> transfers;
  for (const auto& transfer : shown) {
    const std::optional<double> seconds = NumberOf(transfer, "measured_s");
    const auto boundary = static_cast<int>(NumberOf(transfer, "boundary").value_or(0));
    if (seconds) transfers.push_back({.boundary = boundary, .seconds = *seconds});
  }
  if (!settings->stages) {
    constexpr int kNone = 1 << 20;  // A boundary that the median stands for.
    for (server::MeasuredTransfer& transfer : transfers) transfer.boundary = kNone;
  }
  server::SetTransfers(transfers, settings->stages.value_or(2), settings);
}

// The JSON of the profile or job of this name. Profiles come first, as their ids begin with "p-".
Result<std::string> TextOf(ServerClient* client, const std::string& name) {
  constexpr int kNotFound = 404;
  const bool may_be_profile = name.starts_with("p-");
  if (may_be_profile) {
    int status = 0;
    Result<std::string> profile =
        client->Text("GET", "/api/v1/profiles/" + http::PercentEncoded(name), "", &status);
    if (profile || status != kNotFound) return profile;
  }
  const Result<std::string> path = client->JobPath(name);
  if (path) return client->Text("GET", *path);
  if (!may_be_profile) return tl::unexpected(path.error());
  return InvalidInput(
      fmt::format("there is no profile {}, and {}; 'perseus profile list' shows all profiles",
                  Printable(name), path.error().message));
}

}  // namespace

Result<void> TakeConditionsOf(const std::string& name, const ServerFlags& server,
                              JobFile* settings) {
  using server::Condition;
  Result<ServerClient> client = ServerClient::Connect(server);
  if (!client) return tl::unexpected(client.error());
  const Result<std::string> text = TextOf(&*client, name);
  if (!text) return tl::unexpected(text.error());
  server::MeasuredConditions measured;
  const auto shown = ServerClient::Parsed(*text);
  for (const auto& figure : ListOf(ObjectOf(shown, "conditions"), "figures")) {
    for (std::size_t i = 0; i < server::kConditions; ++i) {
      const std::optional<double> value = NumberOf(figure, "measured");
      if (!value || MemberText(figure, "name") != server::kConditionNames[i]) continue;
      measured.figures[i] = {
          .value = *value, .error = NumberOf(figure, "measured_std").value_or(0), .ranks = 1};
    }
  }
  for (const auto& each : ListOf(ObjectOf(shown, "conditions"), "latency_at")) {
    const std::optional<double> seconds = NumberOf(each, "measured_s");
    const std::optional<double> clock = NumberOf(each, "clock_mhz");
    if (!seconds || !clock) continue;
    measured.latency_at.push_back(
        {static_cast<int>(*clock),
         {.value = *seconds, .error = NumberOf(each, "measured_s_std").value_or(0), .ranks = 1}});
  }
  if (measured.ranks() == 0) {
    if (!shown.contains("state")) {  // Not a job.
      return InvalidInput(fmt::format(
          "no job that used the profile {} has measured noise and latency yet; name a job "
          "('perseus job list'), or give --noise and --switch-latency",
          Printable(name)));
    }
    return InvalidInput(
        fmt::format("job {} has measured neither noise nor latency yet; its ranks tell them after "
                    "some ten iterations under a plan ('perseus job show {}')",
                    Printable(name), Printable(name)));
  }
  server::SetMeasured(measured, settings);
  TakeTransfers(ListOf(ObjectOf(shown, "conditions"), "transfers"), settings);
  return {};
}

Result<void> TakeConditionsFrom(const std::string& path, JobFile* settings) {
  const Result<JobFile> file = ReadJobFile(path);
  if (!file) return tl::unexpected(file.error());
  const bool has_latency = settings->switch_latency_seconds.has_value();  // For all clocks.
  bool gives_any = false;
  for (const job::Field& field : job::Fields()) {
    if (!job::IsSet(field, *file)) continue;
    if (!field.condition()) {
      return InvalidInput(fmt::format(
          "{}: --conditions takes a file with the table [{}] alone, but '{}' stands outside of it",
          Shown(path), job::kConditionsTable, field.key));
    }
    gives_any = true;
    if (job::IsSet(field, *settings)) continue;
    if (has_latency && field.key == "switch_latency_at") continue;
    std::visit([&](auto member) { settings->*member = (*file).*member; }, field.member);
  }
  if (!gives_any) {
    return InvalidInput(
        fmt::format("{}: it has no condition; give some under [conditions], as in 'switch_latency "
                    "= \"20ms\"'",
                    Shown(path)));
  }
  return {};
}

}  // namespace perseus::cli
