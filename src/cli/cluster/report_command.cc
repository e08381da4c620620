// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/cluster/energy_report.h"
#include "cli/cluster/event_text.h"
#include "cli/cluster/job_values.h"
#include "cli/cluster/report_flags.h"
#include "cli/cluster/server_client.h"
#include "cli/commands.h"
#include "common/file.h"
#include "http/target.h"

namespace perseus::cli {
namespace {

std::int64_t SecondsOf(const When& when) {
  if (when.day_seconds) return *when.day_seconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const double seconds = std::chrono::duration<double>(now).count() - when.ago_seconds;
  return seconds > 0 ? static_cast<std::int64_t>(seconds) : 0;
}

}  // namespace

Result<Printout> RunReport(const ReportFlags& flags, const Style& style) {
  if (flags.json && !flags.csv_file.empty()) {
    return InvalidInput("--json and --csv exclude each other: give one of them");
  }
  if (flags.json && (flags.price_per_kwh || flags.carbon_g_per_kwh)) {
    return InvalidInput(fmt::format(
        "--json shows what the server has, which knows no {0}; leave --{0} out, or use --csv",
        flags.price_per_kwh ? "price" : "carbon"));
  }
  const std::int64_t since = SecondsOf(flags.since);
  std::string days = fmt::format("since={}", since);
  // Else the server says which day it is: that may have begun just now, or by its clock alone.
  if (flags.until) {
    const std::int64_t until = SecondsOf(*flags.until);
    if (since >= until) {
      return InvalidInput("--since is not before --until: the report would have no day");
    }
    days += fmt::format("&until={}", until);
  }
  if (!flags.csv_file.empty()) {
    if (auto good = CheckOutputFile(flags.csv_file, {}); !good) return tl::unexpected(good.error());
  }
  Result<ServerClient> client = ServerClient::Connect(flags.server);
  if (!client) return tl::unexpected(client.error());
  const Result<std::string> text = client->Text(
      "GET", fmt::format("/api/v1/energy?{}&by={}{}", days, http::PercentEncoded(flags.by),
                         ServerClient::Filter("label", LabelFilter(flags.labels))));
  if (!text) return tl::unexpected(text.error());
  if (flags.json) return JsonText(*text) + "\n";
  const nlohmann::ordered_json energy = ServerClient::Parsed(*text);
  if (flags.csv_file.empty()) return EnergyTable(energy, flags, style);
  const auto written = WriteFileAtomically(flags.csv_file, EnergyCsv(energy, flags));
  if (!written) return tl::unexpected(written.error());
  return Printout(fmt::format("Written to {}.\n", flags.csv_file), flags.csv_file);
}

}  // namespace perseus::cli
