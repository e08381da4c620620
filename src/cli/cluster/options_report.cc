// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/report_flags.h"
#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "common/numbers.h"

namespace perseus::cli {
namespace {

// Of a kWh.
void AddPriceOptions(CommandParser* parser, std::optional<double>* price_per_kwh,
                     std::string* currency, std::optional<double>* carbon_g_per_kwh) {
  parser->AddText("--price", "PRICE",
                  "Price of a kWh: a number, or a number with a currency ('0.12 EUR').",
                  [price_per_kwh, currency](const std::string& text) -> Result<void> {
                    Result<Price> price = ParsePrice(text);
                    if (!price) return tl::unexpected(price.error());
                    *price_per_kwh = price->amount;
                    *currency = std::move(price->currency);
                    return {};
                  },
                  {});
  parser->AddValue<double>(carbon_g_per_kwh, "--carbon", "GRAMS",
                           "CO2 of a kWh in grams (380), or with a unit (0.38kg).", ParseCarbon);
}

// "2026-11-01"; nothing of another text.
std::optional<std::int64_t> ParseDay(std::string_view text) {
  constexpr std::size_t kSize = 10;
  if (text.size() != kSize || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = ParseInteger<int>(text.substr(0, 4));
  const auto month = ParseInteger<int>(text.substr(5, 2));
  const auto day = ParseInteger<int>(text.substr(8));
  constexpr int kFirstYear = 1970;
  if (!year || !month || !day || *year < kFirstYear || *month < 1 || *day < 1) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return std::chrono::seconds(std::chrono::sys_days(date).time_since_epoch()).count();
}

}  // namespace

std::string LabelOfBy(std::string_view by) {
  constexpr std::string_view kLabel = "label:";
  constexpr std::string_view kDay = ",day";
  if (!by.starts_with(kLabel)) return "";
  by.remove_prefix(kLabel.size());
  if (by.ends_with(kDay)) by.remove_suffix(kDay.size());
  return std::string(by);
}

Result<When> ParseWhen(std::string_view text) {
  if (const auto day = ParseDay(text)) return When{.day_seconds = day};
  const Result<double> ago = ParseLongDuration(text);
  if (ago && *ago >= 0) return When{.day_seconds = {}, .ago_seconds = *ago};
  return InvalidInput(
      fmt::format("expected a day (2026-11-01) or how long ago (30d, 12h), got '{}'", text));
}

void AddReportCommand(CommandParser* parser, Invocation* invocation) {
  ReportFlags* flags = &invocation->report;
  parser->AddCommand(Command::kReport, "report",
                     "Report what the jobs of a server used.\n\nThe server is that of --server, "
                     "else of PERSEUS_SERVER, else http://127.0.0.1:7787. The token is in the file "
                     "of --token-file, else of PERSEUS_TOKEN_FILE.",
                     {{"energy of each job in the last 30 days", "perseus report energy"}});
  parser->AddAction(
      &flags->action, "energy",
      "Show the energy that jobs used, and what their plans saved.\n\nThe energy is "
      "what the counters of the GPUs measured. Each row says for which share of the "
      "iterations there is such a measurement. Jobs that were deleted are there, "
      "too. Days begin at midnight UTC and count whole.",
      {{"energy and cost of each user, day by day",
        "perseus report energy --by user,day --price 0.12 --carbon 380"},
       {"energy of each team, from the label 'team'", "perseus report energy --by label:team"},
       {"a month for a spreadsheet",
        "perseus report energy --since 2026-11-01 --until 2026-12-01 --csv nov.csv"}});
  parser->AddValue<When>(&flags->since, "--since", "DAY|TIME",
                         "The first day: 2026-11-01, or so long ago: 7d (default 30d).", ParseWhen);
  parser->AddValue<When>(&flags->until, "--until", "DAY|TIME",
                         "The day before which the report ends (default: today is in it).",
                         ParseWhen);
  const std::vector<std::string> groups = {"job",     "name",     "user",    "day",
                                           "job,day", "name,day", "user,day"};
  parser->AddText(
      "--by", "COLUMNS",
      fmt::format("What has a row of its own: {}; label:NAME or label:NAME,day for the values of a "
                  "label (default job). The user is the name of the token that created the job. A "
                  "job counts by the labels that it has now, or had last.",
                  fmt::join(groups, "; ")),
      [flags, groups](const std::string& text) -> Result<void> {
        flags->by = text;
        if (std::find(groups.begin(), groups.end(), text) != groups.end()) return {};
        const std::string label = LabelOfBy(text);
        if (!label.empty()) return CheckLabelName(label);
        return InvalidInput(fmt::format("expected one of {}; label:NAME; label:NAME,day; got '{}'",
                                        fmt::join(groups, "; "), text));
      },
      {ValueKind::kChoice, groups});
  AddLabelOption(parser, &flags->labels, "Only jobs with this label, as team=vision.");
  parser->SetGroup("Cost");
  AddPriceOptions(parser, &flags->price_per_kwh, &flags->currency, &flags->carbon_g_per_kwh);
  parser->SetGroup("Output");
  parser->AddText("--csv", "FILE", "Write a CSV file instead of a table.",
                  CommandParser::NotEmpty(&flags->csv_file, "the name of the file is empty"),
                  {ValueKind::kFile, {}});
  parser->AddFlag(&flags->json, "--json", "Print JSON, as the server has it.");
  AddServerOptions(parser, &flags->server);
}

}  // namespace perseus::cli
