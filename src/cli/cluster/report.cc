// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/flags.h"
#include "cli/cluster/job_text.h"
#include "cli/cluster/json_values.h"
#include "cli/cluster/server_client.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/framework/value_parsers.h"
#include "common/file.h"
#include "common/numbers.h"
#include "http/target.h"

namespace perseus::cli {

// Of what a server answers to GET /api/v1/energy. Cost and CO2 are there where `flags` has a price.
// A table with a total, and what is to be known of its figures.
std::string EnergyTable(const nlohmann::ordered_json& energy, const ReportFlags& flags,
                        const Style& style);
// Cells of what was not measured are empty.
std::string EnergyCsv(const nlohmann::ordered_json& energy, const ReportFlags& flags);

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
  parser->AddCommand("report",
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

namespace {

using Json = nlohmann::ordered_json;

constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kGramsPerKg = 1000;
constexpr std::string_view kGroups[] = {"day", "job", "name", "user"};

// A figure of a row; none: it was not measured.
struct Column {
  std::string header;  // Of the table.
  std::string name;    // In CSV.
  std::function<std::optional<double>(const Json& row)> value;
  int decimals = 0;
  bool is_share = false;
};

std::optional<double> Kwh(const Json& row, const char* key) {
  const std::optional<double> joules = NumberOf(row, key);
  return joules ? std::optional(*joules / kJoulesPerKwh) : std::nullopt;
}

// How much of the energy was compared with default clocks.
std::optional<double> ComparedShare(const Json& row) {
  const std::optional<double> all = NumberOf(row, "energy_j");
  const std::optional<double> compared = NumberOf(row, "compared_energy_j");
  return all && compared && *all > 0 ? std::optional(*compared / *all) : std::nullopt;
}

std::vector<Column> ColumnsOf(const ReportFlags& flags) {
  const auto number = [](const char* key) {
    return [key](const Json& row) { return NumberOf(row, key); };
  };
  const auto kwh = [](const char* key) { return [key](const Json& row) { return Kwh(row, key); }; };
  std::vector<Column> columns = {
      {"iterations", "iterations", number("iterations")},
      {"GPU hours", "gpu_hours", number("gpu_hours"), 1},
      {"covered", "covered_share", number("covered_share"), 0, true},
      {"measured", "measured_share", number("measured_share"), 0, true},
      {"kWh", "energy_kwh", kwh("energy_j"), 3},
      {"predicted saving", "predicted_saved_kwh", kwh("predicted_saved_j"), 3},
      {"compared", "compared_share", ComparedShare, 0, true},
      {"measured saving", "measured_saved_kwh", kwh("measured_saved_j"), 3}};
  const auto add = [&](std::string header, std::string name, double of_kwh, int decimals) {
    columns.push_back({std::move(header), std::move(name),
                       [of_kwh](const Json& row) -> std::optional<double> {
                         const std::optional<double> used = Kwh(row, "energy_j");
                         return used ? std::optional(*used * of_kwh) : std::nullopt;
                       },
                       decimals});
  };
  if (flags.price_per_kwh) {
    add(flags.currency.empty() ? "cost" : flags.currency, "cost", *flags.price_per_kwh, 2);
  }
  if (flags.carbon_g_per_kwh) {
    add("kg CO2", "co2_kg", *flags.carbon_g_per_kwh / kGramsPerKg, 3);
  }
  return columns;
}

// Columns that tell rows apart, also without rows. A job's name and user stand beside it.
std::vector<std::string> GroupsOf(const ReportFlags& flags) {
  const std::string by = "," + flags.by + ",";
  const bool is_by_job = by.find(",job,") != std::string::npos;
  std::vector<std::string> groups;
  for (const std::string_view group : kGroups) {
    const bool is_of_job = is_by_job && (group == "name" || group == "user");
    if (is_of_job || by.find(fmt::format(",{},", group)) != std::string::npos) {
      groups.emplace_back(group);
    }
  }
  if (const std::string label = LabelOfBy(flags.by); !label.empty()) {
    groups.push_back("label:" + label);
  }
  return groups;
}

// A job without the label has a row, too; no value can look like its name.
std::string GroupText(const Json& row, const std::string& group) {
  if (!group.starts_with("label:")) return MemberText(row, group.c_str());
  const std::string value = MemberText(row, "label");
  return value.empty() ? "(none)" : value;
}

std::string CellText(const Column& column, const Json& row) {
  const std::optional<double> value = column.value(row);
  if (!value) return "n/a";
  return column.is_share ? FormatPercent(100 * *value, column.decimals)
                         : WithThousands(*value, column.decimals);
}

// A CSV cell. Creators of jobs choose names: a spreadsheet must not take one for a formula.
std::string Quoted(std::string text) {
  if (!text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos) {
    text.insert(0, 1, '\'');
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + '"';
}

std::string NotesText(const Json& total, const ReportFlags& flags) {
  std::string text =
      "\n\"covered\" is the share of the time, from the first iteration to the last, in which "
      "ranks reported iterations.\nThe rest is in no figure: pauses, time between iterations, and "
      "all while no server was up.\nkWh is what the energy counters of the GPUs measured. "
      "\"measured\" is the share of the iterations that it is of;\nother iterations are in no "
      "figure to the right of it. A predicted saving is against all clocks at maximum, if "
      "the\nplans' "
      "predictions are right. A measured saving is against default clocks, as the job ran before, "
      "and "
      "of "
      "the\nshare \"compared\" of the energy: see 'perseus job compare'.\n";
  if (NumberOf(total, "measured_share").value_or(0) == 0) {
    text += "No rank reported energy: 'perseus doctor' on its node says whether its GPU can.\n";
  }
  if (!flags.price_per_kwh && !flags.carbon_g_per_kwh) return text;
  const std::string price = flags.price_per_kwh
                                ? fmt::format("{}{}{}", *flags.price_per_kwh,
                                              flags.currency.empty() ? "" : " ", flags.currency)
                                : "";
  const std::string carbon =
      flags.carbon_g_per_kwh ? fmt::format("{} g of CO2", *flags.carbon_g_per_kwh) : "";
  return text + fmt::format("A kWh counts as {}{}{}, as you gave it.\n", price,
                            price.empty() || carbon.empty() ? "" : " and ", carbon);
}

}  // namespace

std::string EnergyTable(const Json& energy, const ReportFlags& flags, const Style& style) {
  const Json& rows = ListOf(energy, "rows");
  if (rows.empty()) return "No rank reported an iteration in this time.\n";
  const std::vector<std::string> groups = GroupsOf(flags);
  const std::vector<Column> columns = ColumnsOf(flags);
  std::vector<std::string> header = groups;
  std::vector<Align> alignment(groups.size(), Align::kLeft);
  for (const Column& column : columns) {
    header.push_back(column.header);
    alignment.push_back(Align::kRight);
  }
  Table table(std::move(header), std::move(alignment));
  const auto add = [&](std::vector<std::string> cells, const Json& row) {
    for (const Column& column : columns) cells.push_back(CellText(column, row));
    table.AddRow(std::move(cells));
  };
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& group : groups) {
      const std::string text = GroupText(row, group);
      cells.push_back(text.empty() ? "-" : text);
    }
    add(std::move(cells), row);
  }
  const Json& total = ObjectOf(energy, "total");
  std::vector<std::string> cells(groups.size());
  cells.front() = "total";
  add(std::move(cells), total);
  return table.Format(style.rule()) + NotesText(total, flags);
}

std::string EnergyCsv(const Json& energy, const ReportFlags& flags) {
  const Json& rows = ListOf(energy, "rows");
  const std::vector<std::string> groups = GroupsOf(flags);
  const std::vector<Column> columns = ColumnsOf(flags);
  std::vector<std::string> names = groups;
  // Beside the job that they are of.
  const bool has_labels = std::find(groups.begin(), groups.end(), "job") != groups.end();
  if (has_labels) names.emplace_back("labels");
  for (const Column& column : columns) names.push_back(column.name);
  if (!flags.currency.empty()) names.emplace_back("currency");
  std::string csv = fmt::format("{}\n", fmt::join(names, ","));
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    cells.reserve(names.size());
    for (const std::string& group : groups) cells.push_back(Quoted(GroupText(row, group)));
    if (has_labels) cells.push_back(Quoted(LabelsOf(row)));
    for (const Column& column : columns) {
      const std::optional<double> value = column.value(row);
      cells.push_back(value ? fmt::format("{}", *value) : "");
    }
    if (!flags.currency.empty()) cells.push_back(Quoted(flags.currency));
    csv += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return csv;
}

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
