// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/energy_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/job_values.h"
#include "cli/cluster/json_values.h"
#include "cli/framework/table.h"

namespace perseus::cli {
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

// How much of the energy was compared with no clock set.
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
      {"promised saving", "promised_saved_kwh", kwh("promised_saved_j"), 3},
      {"compared", "compared_share", ComparedShare, 0, true},
      {"measured saving", "realised_saved_kwh", kwh("realised_saved_j"), 3}};
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

// What rows are told apart by, also where there is none. A job's name and user stand beside it.
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

// Whoever may create a job chooses names. A spreadsheet must not take one for a formula.
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
      "figure to the right of it. A promised saving is against all clocks at maximum, if "
      "the\nplans keep "
      "what they promise. A measured saving is against no clock set, as the job ran before, and of "
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

}  // namespace perseus::cli
