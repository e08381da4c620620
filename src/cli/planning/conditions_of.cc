// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/conditions_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/cluster/json_values.h"
#include "cli/cluster/server_client.h"
#include "common/printable.h"
#include "server/planning/conditions_state.h"

namespace perseus::cli {
namespace {

// Of each boundary, if the job has as many stages as this one; else one for all, their median.
void TakeTransfers(const std::vector<nlohmann::ordered_json>& transfers, JobFile* settings) {
  std::vector<double> seconds;
  for (const auto& transfer : transfers) {
    const double planned = NumberOf(transfer, "planned_s").value_or(0);
    seconds.push_back(NumberOf(transfer, "measured_s").value_or(planned));
  }
  if (seconds.empty() || !settings->comm_delay_seconds.empty()) return;
  if (static_cast<int>(seconds.size()) != settings->stages.value_or(0) - 1) {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    seconds = {*middle};
  }
  settings->comm_delay_seconds = seconds;
}

}  // namespace

Result<void> TakeConditionsOf(const std::string& job, const ServerFlags& server,
                              JobFile* settings) {
  using server::Condition;
  Result<ServerClient> client = ServerClient::Connect(server);
  if (!client) return tl::unexpected(client.error());
  const Result<std::string> path = client->JobPath(job);
  if (!path) return tl::unexpected(path.error());
  const Result<std::string> text = client->Text("GET", *path);
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
  if (measured.ranks() == 0) {
    return InvalidInput(
        fmt::format("job {} has measured neither noise nor latency yet; its ranks tell them after "
                    "some ten iterations under a plan ('perseus job show {}')",
                    Printable(job), Printable(job)));
  }
  server::SetMeasured(measured, settings);
  TakeTransfers(ListOf(ObjectOf(shown, "conditions"), "transfers"), settings);
  return {};
}

}  // namespace perseus::cli
