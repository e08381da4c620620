// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "common/located_error.h"
#include "fleet/site.h"
#include "formats/plan_json.h"
#include "perseus/costed_pipeline.h"
#include "perseus/effort.h"

// Curves of a site's jobs, for emulations of its days.
namespace perseus::fleet {
namespace {

using Json = nlohmann::ordered_json;
using TableOptions = std::vector<CostOption>;  // [table]: all computations of a table run so.

Json PointJson(const IterationPoint& point) { return {point.time_seconds, point.energy_joules}; }

// The corners that matter: without the others the curve moves by no more than `share` of its
// height. A walk that goes as far as a chord may.
std::vector<IterationPoint> Thinned(const std::vector<IterationPoint>& corners, double share) {
  std::vector<IterationPoint> kept;
  std::size_t from = 0;
  while (from < corners.size()) {
    kept.push_back(corners[from]);
    std::size_t to = from + 1;
    const auto is_near = [&](std::size_t end) {
      const IterationPoint& a = corners[from];
      const IterationPoint& b = corners[end];
      for (std::size_t i = from + 1; i < end; ++i) {
        const double part =
            (corners[i].time_seconds - a.time_seconds) / (b.time_seconds - a.time_seconds);
        const double chord = a.energy_joules + part * (b.energy_joules - a.energy_joules);
        if (chord > corners[i].energy_joules * (1 + share)) return false;
      }
      return true;
    };
    while (to + 1 < corners.size() && is_near(to + 1)) ++to;
    from = to;
  }
  return kept;
}

double WattsOf(const CostOption& option) { return option.energy_joules / option.time_seconds; }

// For each table the option with the highest clock that `is_allowed`; empty where one has none.
template <typename IsAllowed>
TableOptions HighestOptions(const CostedPipeline& pipeline, const IsAllowed& is_allowed) {
  TableOptions options;
  for (const CostTable& table : pipeline.tables) {
    // Clocks descend.
    const auto found = std::find_if(table.all_options.begin(), table.all_options.end(), is_allowed);
    if (found == table.all_options.end()) return {};
    options.push_back(*found);
  }
  return options;
}

// One iteration of a pipeline with one clock for all GPUs, by clock.
std::map<int, TableOptions> AtOneClock(const CostedPipeline& pipeline) {
  std::map<int, TableOptions> all;
  for (int knob = 0; knob < static_cast<int>(pipeline.knobs.size()); ++knob) {
    all[knob] = HighestOptions(pipeline, [&](const CostOption& o) { return o.knob >= knob; });
  }
  return all;
}

// One power cap for all GPUs, by cap: each computation runs at its highest clock within it.
std::map<double, TableOptions> AtOneCap(const CostedPipeline& pipeline) {
  constexpr std::size_t kMostCaps = 256;
  std::vector<double> caps;
  double lowest = 0;
  for (const CostTable& table : pipeline.tables) {
    if (table.same_kind_as >= 0) continue;  // The same powers.
    double least = std::numeric_limits<double>::infinity();
    for (const CostOption& option : table.all_options) {
      caps.push_back(WattsOf(option));
      least = std::min(least, caps.back());
    }
    lowest = std::max(lowest, least);
  }
  std::sort(caps.begin(), caps.end());
  caps.erase(std::unique(caps.begin(), caps.end()), caps.end());
  caps.erase(caps.begin(), std::lower_bound(caps.begin(), caps.end(), lowest));
  std::map<double, TableOptions> all;
  const std::size_t count = std::min(caps.size(), kMostCaps);
  for (std::size_t i = 0; i < count; ++i) {
    const double cap = caps[count < kMostCaps ? i : i * (caps.size() - 1) / (kMostCaps - 1)];
    all[cap] = HighestOptions(pipeline, [&](const CostOption& o) { return WattsOf(o) <= cap; });
  }
  return all;
}

// Rows of cap, seconds and joules, caps ascending. `cap_of` is an option's; the highest counts.
template <typename Key, typename CapOf>
Result<Json> CappedRows(const Planner& planner, const std::map<Key, TableOptions>& choices,
                        const CapOf& cap_of) {
  const CostedPipeline& pipeline = planner.pipeline();
  std::vector<std::pair<double, IterationPoint>> rows;
  for (const auto& [key, options] : choices) {
    if (options.empty()) continue;
    double cap = 0;
    for (const CostOption& option : options) cap = std::max(cap, cap_of(option));
    std::vector<CostOption> of_all;
    for (const int table : pipeline.table_of) {
      of_all.push_back(options[static_cast<std::size_t>(table)]);
    }
    const Result<Plan> plan = planner.Evaluate(of_all);
    if (!plan) return tl::unexpected(plan.error());
    rows.emplace_back(cap, PointOf(*plan));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Json json = Json::array();
  for (const auto& [cap, point] : rows) {
    json.push_back({cap, point.time_seconds, point.energy_joules});
  }
  return json;
}

Result<Json> ModelJson(const JobModel& model) {
  constexpr double kFrontierShare = 1e-6;
  constexpr int kLadder = 33;
  // Plans among many; a third of the work of a server's ladder.
  constexpr double kEffort = kLadderEffort / 3;
  if (!model.planner) {
    return InvalidInput(
        "only its frontier is known, and an emulation also asks what one clock does; give 'job' or "
        "'profile'");
  }
  const Planner& planner = *model.planner;
  const CostedPipeline& pipeline = planner.pipeline();
  if (!pipeline.knobs_are_numbers) {
    return InvalidInput(
        "the knobs of its profile are labels, and an emulation needs clocks in MHz to compare "
        "with; "
        "give a profile with clocks");
  }
  const Result<std::vector<Plan>> plans =
      planner.Ladder(kLadder, {.constraints = model.job->Constraints(), .effort = kEffort});
  if (!plans) return tl::unexpected(plans.error());
  const auto clocks = CappedRows(planner, AtOneClock(pipeline), [&](const CostOption& option) {
    return pipeline.knobs[static_cast<std::size_t>(option.knob)].number;
  });
  if (!clocks) return tl::unexpected(clocks.error());
  const auto caps = CappedRows(planner, AtOneCap(pipeline), [&](const CostOption& option) {
    return WattsOf(option) / pipeline.tensor_parallel;
  });
  if (!caps) return tl::unexpected(caps.error());
  if (clocks->empty() || caps->empty()) {
    return InvalidInput("there is no clock that every computation of its profile has");
  }
  Json json;
  json["gpus"] = model.gpus;
  json["waiting_w"] = model.waiting_watts;
  json["max_clocks"] = PointJson(model.full_speed);
  for (const IterationPoint& corner : Thinned(model.frontier, kFrontierShare)) {
    json["frontier"].push_back(PointJson(corner));
  }
  for (const Plan& plan : *plans) json["plans"].push_back(PointJson(PointOf(plan)));
  json["clocks_mhz"] = *clocks;
  json["caps_w"] = *caps;
  return json;
}

Json JobJson(const SiteJob& job, const FleetJob& fleet, std::size_t model) {
  Json json;
  json["name"] = job.name;
  json["group"] = job.group;
  json["model"] = model;
  json["pipelines"] = fleet.pipelines;
  json["weight"] = fleet.weight;
  json["fixed_w"] = fleet.fixed_watts;
  json["least_w"] = fleet.least_watts;
  json["slowest_s"] = fleet.slowest_seconds ? Json(*fleet.slowest_seconds) : Json(nullptr);
  json["late"] = Json::array();
  for (const LatePipeline& late : fleet.late) json["late"].push_back(PointJson(late.point));
  json["at"] = Json::array();
  for (const PowerShare& share : fleet.shares) json["at"].push_back({share.node, share.fraction});
  return json;
}

Json TreeJson(const TreeNode& node) {
  if (const auto* flag = std::get_if<bool>(&node.value)) return *flag;
  if (const auto* number = std::get_if<double>(&node.value)) return *number;
  if (const auto* text = std::get_if<std::string>(&node.value)) return *text;
  Json json;
  if (const auto* list = std::get_if<TreeNode::List>(&node.value)) {
    json = Json::array();
    for (const TreeNode& each : *list) json.push_back(TreeJson(each));
  } else if (const auto* table = std::get_if<TreeNode::Table>(&node.value)) {
    json = Json::object();
    for (const TreeMember& member : *table) json[member.key] = TreeJson(member.node);
  }
  return json;
}

}  // namespace

Result<std::string> FormatCurves(const Site& site, const ProgressFunction& progress) {
  Json json;
  json["schema_version"] = 1;
  json["site"] = std::filesystem::path(site.file.path).filename().string();
  json["pue"] = site.power.meter_factor;
  for (const PowerNode& node : site.power.nodes) {
    json["limits"].push_back({{"name", node.name},
                              {"parent", node.parent ? Json(*node.parent) : Json(nullptr)},
                              {"limit_w", node.limit_watts}});
  }
  std::map<const JobModel*, std::size_t> models;
  for (std::size_t j = 0; j < site.models.size(); ++j) {
    const SiteJob& job = site.file.jobs[j];
    const auto [known, is_new] = models.emplace(site.models[j].get(), models.size());
    if (is_new) {
      Result<Json> model = ModelJson(*site.models[j]);
      if (!model) {
        return InvalidAt(job.place.file, job.place.line, job.place.column,
                         fmt::format("the job '{}': {}", job.name, model.error().message));
      }
      json["models"].push_back(*std::move(model));
      const double share = static_cast<double>(j + 1) / static_cast<double>(site.models.size());
      if (progress && !progress({.share = share})) {
        return MakeError(ErrorCode::kCancelled, "the emulation was cancelled");
      }
    }
    json["jobs"].push_back(JobJson(job, site.power.jobs[j], known->second));
  }
  json["emulate"] = TreeJson(site.file.emulate);
  json["notes"] = Json::parse(formats::NotesJson(site.notes));
  return FormatByLine(json);
}

}  // namespace perseus::fleet
