// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/conditions_text.h"
#include "cli/cluster/event_text.h"
#include "cli/cluster/json_values.h"
#include "cli/cluster/profile_comparison.h"
#include "cli/cluster/profile_flags.h"
#include "cli/cluster/server_client.h"
#include "cli/cluster/sweep_text.h"
#include "cli/cluster/waiting_text.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "common/file.h"
#include "common/printable.h"
#include "http/target.h"
#include "perseus/profile.h"

namespace perseus::cli {
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

// What each computation costs at its highest clock, and at its cheapest.
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

// What each computation costs with no clock set. Empty: that was not measured.
std::string UnlockedText(const Profile& profile, const Style& style) {
  if (profile.unlocked.empty()) return "";
  Table table(
      {"stage", "computation", "time ms", "+- ms", "energy J", "+- J"},
      {Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const UnlockedCost& cost : profile.unlocked) {
    table.AddRow({std::to_string(cost.stage), std::string(ComputationTypeName(cost.type)),
                  WithThousands(cost.time_seconds * 1e3, 4),
                  WithThousands(cost.time_std_seconds * 1e3, 4),
                  WithThousands(cost.energy_joules, 3), WithThousands(cost.energy_std_joules, 3)});
  }
  return "\nWith no clock set:\n" + table.Format(style.rule());
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
    return shown + "\n" + RowsText(*profile, style_) + UnlockedText(*profile, style_);
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
