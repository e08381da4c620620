// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/conditions_of.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/cluster/json_values.h"
#include "cli/cluster/server_client.h"
#include "common/printable.h"
#include "server/planning/conditions_state.h"

namespace perseus::cli {

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
  return {};
}

}  // namespace perseus::cli
