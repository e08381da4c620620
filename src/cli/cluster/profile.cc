// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/flags.h"
#include "cli/cluster/job_text.h"
#include "cli/cluster/json_values.h"
#include "cli/cluster/profile_comparison.h"
#include "cli/cluster/server_client.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "common/file.h"
#include "common/printable.h"
#include "http/target.h"

namespace perseus::cli {

void AddProfileCommand(CommandParser* parser, Invocation* invocation) {
  ProfileFlags* flags = &invocation->profile;
  parser->AddCommand("profile",
                     "Manage the profiles that jobs measured and a server keeps.\n\nA job with a "
                     "label for its model (perseus job create --model) takes over the profile of "
                     "an earlier job with the same label, layout and GPUs. The server is that of "
                     "--server, else of PERSEUS_SERVER, else http://127.0.0.1:7787. The token is "
                     "in the file of --token-file, else of PERSEUS_TOKEN_FILE.",
                     {{"all profiles", "perseus profile list"},
                      {"a profile as a CSV, to plan from",
                       "perseus profile export p-1f2e3d4c5b6a7988 -o profile.csv"}});
  const auto add = [=](const std::string& name, const std::string& description,
                       std::vector<ExampleData> examples = {}) {
    parser->AddAction(&flags->action, name, description, std::move(examples));
  };
  const auto add_profile = [=] {
    parser->AddInput(&flags->profile, "ID", "A profile of the library.", {ValueKind::kProfile, {}});
  };
  const auto add_json = [=] {
    parser->SetGroup("Output");
    parser->AddFlag(&flags->json, "--json", "Print JSON.");
  };
  const auto add_server = [=] { AddServerOptions(parser, &flags->server); };
  add("list", "Show all profiles, a line each.");
  add_json();
  parser->AddHiddenFlag(&flags->names, "--names");
  add_server();
  add("show", "Show what was measured, and under which conditions.");
  add_profile();
  add_json();
  add_server();
  add("compare", "Show how two profiles differ.",
      {{"what changed since", "perseus profile compare p-1f2e3d4c5b6a7988 p-8897a6b5c4d3e2f1"}});
  parser->AddInput(&flags->profile, "ID|FILE", "A profile of the library, or a file.");
  parser->AddInput(&flags->other, "ID|FILE", "The profile or file to compare it with.");
  add_json();
  add_server();
  add("export", "Print a profile as CSV, for perseus plan.");
  add_profile();
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "Write to this file instead of standard output.");
  add_server();
  add("delete", "Delete a profile from the library.");
  add_profile();
  add_server();
}

namespace {

struct Ratio {
  double value = 1;
  std::string knob;
};

// How far from 1 a ratio is, whichever way.
double Distance(double ratio) { return ratio > 0 ? std::abs(std::log(ratio)) : HUGE_VAL; }

RatioSummary Summary(std::vector<Ratio> ratios) {
  RatioSummary summary;
  if (ratios.empty()) return summary;
  const auto farthest = std::max_element(
      ratios.begin(), ratios.end(),
      [](const Ratio& a, const Ratio& b) { return Distance(a.value) < Distance(b.value); });
  summary.most = farthest->value;
  summary.knob = farthest->knob;
  const std::size_t middle = ratios.size() / 2;
  std::sort(ratios.begin(), ratios.end(),
            [](const Ratio& a, const Ratio& b) { return a.value < b.value; });
  summary.median = ratios.size() % 2 == 1 ? ratios[middle].value
                                          : (ratios[middle - 1].value + ratios[middle].value) / 2;
  return summary;
}

const std::string& KnobLabelOf(const Profile& profile, const Option& option) {
  return profile.knobs[static_cast<std::size_t>(option.knob)].label;
}

std::string ChangeText(double ratio) { return FormatSignedPercent(100 * (ratio - 1), 2); }

nlohmann::ordered_json SummaryJson(const RatioSummary& summary) {
  return {{"median", summary.median}, {"most", summary.most}, {"at", summary.knob}};
}

}  // namespace

ProfileComparison CompareProfiles(const Profile& first, const Profile& second) {
  ProfileComparison comparison;
  int matched = 0;
  int second_rows = 0;
  for (const OptionTable& table : second.tables) {
    second_rows += static_cast<int>(table.options.size());
  }
  for (const OptionTable& table : first.tables) {
    const OptionTable* const other = second.Find(table.stage, table.type);
    std::map<std::string, const Option*> others;
    if (other != nullptr) {
      for (const Option& option : other->options) others[KnobLabelOf(second, option)] = &option;
    }
    std::vector<Ratio> times;
    std::vector<Ratio> energies;
    for (const Option& option : table.options) {
      const std::string& knob = KnobLabelOf(first, option);
      const auto found = others.find(knob);
      if (found == others.end()) {
        ++comparison.only_first;
        continue;
      }
      times.push_back({found->second->time_seconds / option.time_seconds, knob});
      if (option.energy_joules > 0) {
        energies.push_back({found->second->energy_joules / option.energy_joules, knob});
      }
    }
    matched += static_cast<int>(times.size());
    if (times.empty()) continue;
    comparison.kinds.push_back({.stage = table.stage,
                                .type = table.type,
                                .knobs = static_cast<int>(times.size()),
                                .time = Summary(std::move(times)),
                                .energy = Summary(std::move(energies))});
  }
  comparison.only_second = second_rows - matched;
  return comparison;
}

std::string ComparisonText(const ProfileComparison& comparison, const std::string& first,
                           const std::string& second, const Style& style) {
  std::string text =
      fmt::format("{} against {}: what changes\n", Printable(second), Printable(first));
  if (comparison.kinds.empty()) return text + "They have no stage, type and clock in common.\n";
  Table table({"stage", "computation", "clocks", "time", "most", "at", "energy", "most", "at"},
              {Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
               Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const KindComparison& kind : comparison.kinds) {
    table.AddRow({std::to_string(kind.stage), std::string(ComputationTypeName(kind.type)),
                  std::to_string(kind.knobs), ChangeText(kind.time.median),
                  ChangeText(kind.time.most), kind.time.knob, ChangeText(kind.energy.median),
                  ChangeText(kind.energy.most), kind.energy.knob});
  }
  text += table.Format(style.rule());
  const auto only = [&](int rows, const std::string& name) {
    if (rows > 0) text += fmt::format("Only in {}: {}.\n", Printable(name), CountOf(rows, "row"));
  };
  only(comparison.only_first, first);
  only(comparison.only_second, second);
  return text;
}

nlohmann::ordered_json ComparisonJson(const ProfileComparison& comparison, const std::string& first,
                                      const std::string& second) {
  nlohmann::ordered_json json = {{"first", first},
                                 {"second", second},
                                 {"kinds", nlohmann::ordered_json::array()},
                                 {"only_first", comparison.only_first},
                                 {"only_second", comparison.only_second}};
  for (const KindComparison& kind : comparison.kinds) {
    json["kinds"].push_back({{"stage", kind.stage},
                             {"instruction", ComputationTypeName(kind.type)},
                             {"clocks", kind.knobs},
                             {"time_ratio", SummaryJson(kind.time)},
                             {"energy_ratio", SummaryJson(kind.energy)}});
  }
  return json;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kIdPrefix = "p-";

std::string GpusText(const Json& metadata) {
  std::vector<std::string> names;
  for (const Json& gpu : ListOf(metadata, "gpus")) {
    if (gpu.is_string()) names.push_back(Printable(gpu.get<std::string>()));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string ProfileTableText(const Json& profiles, const Style& style) {
  if (profiles.empty()) return "The server keeps no profiles.\n";
  Table table({"profile", "model", "GPU", "stages", "rows", "measured (UTC)", "job"},
              {Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft,
               Align::kLeft});
  for (const Json& profile : profiles) {
    const Json& metadata = ObjectOf(profile, "metadata");
    table.AddRow({MemberText(profile, "id"), MemberText(profile, "model"), GpusText(metadata),
                  MemberText(metadata, "stages"), MemberText(metadata, "rows"),
                  DayText(profile, "created_at"), MemberText(profile, "job")});
  }
  return table.Format(style.rule());
}

// The cost of each computation at its highest clock, and at its cheapest.
std::string RowsText(const Profile& profile, const Style& style) {
  Table table(
      {"stage", "computation", "clocks", "time ms", "+- ms", "energy J", "+- J", "cheapest"},
      {Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
       Align::kRight, Align::kRight});
  for (const OptionTable& kind : profile.tables) {
    const Option& top = kind.options[static_cast<std::size_t>(kind.baseline)];
    const Option* cheapest = &top;
    for (const Option& option : kind.options) {
      if (option.energy_joules < cheapest->energy_joules) cheapest = &option;
    }
    table.AddRow({std::to_string(kind.stage), std::string(ComputationTypeName(kind.type)),
                  std::to_string(kind.options.size()), WithThousands(top.time_seconds * 1e3, 4),
                  WithThousands(top.time_std_seconds * 1e3, 4), WithThousands(top.energy_joules, 3),
                  WithThousands(top.energy_std_joules, 3),
                  profile.knobs[static_cast<std::size_t>(cheapest->knob)].label});
  }
  return table.Format(style.rule()) +
         Wrap("Time and energy: at the highest clock. Cheapest: the clock of least energy.",
              style.columns, 0) +
         "\n";
}

// The cost of each computation at default clocks. Empty: not measured.
std::string DefaultClocksText(const Profile& profile, const Style& style) {
  if (profile.default_clocks.empty()) return "";
  Table table(
      {"stage", "computation", "time ms", "+- ms", "energy J", "+- J"},
      {Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const DefaultClockCost& cost : profile.default_clocks) {
    table.AddRow({std::to_string(cost.stage), std::string(ComputationTypeName(cost.type)),
                  WithThousands(cost.time_seconds * 1e3, 4),
                  WithThousands(cost.time_std_seconds * 1e3, 4),
                  WithThousands(cost.energy_joules, 3), WithThousands(cost.energy_std_joules, 3)});
  }
  return "\nAt default clocks:\n" + table.Format(style.rule());
}

class ProfileClient {
 public:
  ProfileClient(const ProfileFlags& flags, const Style& style) : flags_(flags), style_(style) {}

  Result<Printout> List() {
    if (flags_.names) return NamesFrom(flags_.server, "profiles", {"id"});
    const Result<std::string> text = Ask("GET", "/api/v1/profiles");
    if (!text) return tl::unexpected(text.error());
    if (flags_.json) return JsonText(*text) + "\n";
    return ProfileTableText(ListOf(ServerClient::Parsed(*text), "profiles"), style_);
  }

  Result<Printout> Show(const std::string& id) {
    const Result<std::string> text = Fetch(id);
    if (!text) return tl::unexpected(text.error());
    if (flags_.json) return JsonText(*text) + "\n";
    const Json answer = ServerClient::Parsed(*text);
    const Json& metadata = ObjectOf(answer, "metadata");
    std::string shown =
        style_.Bold(fmt::format("{} {}", MemberText(answer, "id"), MemberText(answer, "model"))) +
        "\n";
    shown += Line("measured", fmt::format("{} UTC by job {}", DayText(answer, "created_at"),
                                          MemberText(answer, "job")));
    shown += Line("GPU", GpusText(metadata));
    shown +=
        Line("layout", fmt::format("{}, stages: {}, pipeline ranks: {}, tensor-parallel GPUs: {}",
                                   MemberText(metadata, "schedule"), MemberText(metadata, "stages"),
                                   MemberText(metadata, "pipeline_parallel"),
                                   MemberText(metadata, "tensor_parallel")));
    shown += Line("microbatch", MemberText(metadata, "microbatch_size"));
    shown += Line("waiting", WaitingText(metadata));
    shown += Line("sweep", SweepText(ObjectOf(metadata, "sweep")));
    shown += KeptConditionsText(ObjectOf(answer, "conditions"));
    for (const Json& note : ListOf(metadata, "notes"))
      shown += Line("note", MemberText(note, "note"));
    for (const Json& row : ListOf(metadata, "throttled")) {
      shown += Line("throttled",
                    fmt::format("stage {} {} at {} MHz", MemberText(row, "stage"),
                                MemberText(row, "instruction"), MemberText(row, "frequency")));
    }
    const Result<Profile> profile = ParseProfile(answer.value("profile_csv", ""), id);
    if (!profile) return tl::unexpected(profile.error());
    return shown + "\n" + RowsText(*profile, style_) + DefaultClocksText(*profile, style_);
  }

  Result<Printout> Compare(const std::string& one, const std::string& other) {
    if (one.empty() || other.empty()) {
      return InvalidInput(
          "two profiles are compared, as in 'perseus profile compare p-1f2e old.csv'");
    }
    const Result<Profile> first = Read(one);
    if (!first) return tl::unexpected(first.error());
    const Result<Profile> second = Read(other);
    if (!second) return tl::unexpected(second.error());
    const ProfileComparison comparison = CompareProfiles(*first, *second);
    if (flags_.json) return ComparisonJson(comparison, one, other).dump(-1, ' ', true) + "\n";
    return ComparisonText(comparison, one, other, style_);
  }

  Result<Printout> Export(const std::string& id) {
    const Result<std::string> text = Fetch(id);
    if (!text) return tl::unexpected(text.error());
    std::string csv = ServerClient::Parsed(*text).value("profile_csv", "");
    if (flags_.output_file.empty()) return csv;
    if (const auto written = WriteFileAtomically(flags_.output_file, csv); !written) {
      return tl::unexpected(written.error());
    }
    return Printout(fmt::format("Written to {}.\n", flags_.output_file), flags_.output_file);
  }

  Result<Printout> Delete(const std::string& id) {
    if (id.empty()) return Missing();
    const auto text = Ask("DELETE", "/api/v1/profiles/" + http::PercentEncoded(id));
    if (!text) return tl::unexpected(text.error());
    return fmt::format("{} is deleted.\n", Printable(id));
  }

 private:
  static tl::unexpected<Error> Missing() {
    return InvalidInput("the profile is missing; 'perseus profile list' shows all");
  }

  // A file, or a profile of the library: only that asks a server.
  Result<Profile> Read(const std::string& name) {
    if (!name.starts_with(kIdPrefix)) return ReadProfile(name);
    const Result<std::string> text = Fetch(name);
    if (!text) return tl::unexpected(text.error());
    return ParseProfile(ServerClient::Parsed(*text).value("profile_csv", ""), name);
  }

  Result<std::string> Fetch(const std::string& id) {
    if (id.empty()) return Missing();
    return Ask("GET", "/api/v1/profiles/" + http::PercentEncoded(id));
  }

  Result<std::string> Ask(const char* method, const std::string& target) {
    Result<ServerClient> client = ServerClient::Connect(flags_.server);
    if (!client) return tl::unexpected(client.error());
    return client->Text(method, target);
  }

  const ProfileFlags& flags_;
  const Style& style_;
};

}  // namespace

Result<Printout> RunProfile(const ProfileFlags& flags, const Style& style) {
  ProfileClient client(flags, style);
  const std::string& action = flags.action;
  if (action == "list") return client.List();
  if (action == "show") return client.Show(flags.profile);
  if (action == "compare") return client.Compare(flags.profile, flags.other);
  if (action == "export") return client.Export(flags.profile);
  return client.Delete(flags.profile);
}

}  // namespace perseus::cli
