// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/tree.h"
#include "common/tree_reader.h"
#include "perseus/computation.h"
#include "perseus/file.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"

namespace perseus {
namespace {

constexpr std::size_t kMaxPlanBytes = std::size_t{256} << 20;
constexpr int kMaxInt = std::numeric_limits<int>::max();

// Optional fields: absent means the default.
double NumberOr(const TreeCursor& table, std::string_view key, double otherwise,
                NumberRange range = kNotNegative) {
  const std::optional<TreeCursor> found = table.Find(key);
  return found ? found->Number(range) : otherwise;
}

int IntegerOr(const TreeCursor& table, std::string_view key, int otherwise, int least,
              int most = kMaxCount) {
  const std::optional<TreeCursor> found = table.Find(key);
  return found ? found->Integer(least, most) : otherwise;
}

std::string StringOr(const TreeCursor& table, std::string_view key) {
  const std::optional<TreeCursor> found = table.Find(key);
  return found ? found->String() : std::string();
}

ComputationType ReadType(const TreeCursor& cursor) {
  const std::optional<ComputationType> type = ParseComputationType(cursor.String());
  if (!type) cursor.FailExpected("forward, backward, backward_input or backward_weight");
  return type.value_or(ComputationType::kForward);
}

bool IsBackward(ComputationType type) {
  return type == ComputationType::kBackward || type == ComputationType::kBackwardInput;
}

class PlanParser {
 public:
  PlanParser(const TreeNode& root, const std::string& name) : reader_(root, name) {}

  Result<PlanDocument> Parse() {
    const TreeCursor root = reader_.Root();
    ReadVersion(root);
    ReadHead(root);
    ReadFigures(root);
    ReadSettings(root);
    ReadRanks(root);
    CheckDistinct();
    if (reader_.failed()) return tl::unexpected(*reader_.error());
    return std::move(plan_);
  }

 private:
  // One entry of "computations".
  struct Entry {
    PlannedComputation computation;
    bool fused = false;
  };

  void ReadVersion(const TreeCursor& root) {
    const TreeCursor version = root.Get("schema_version");
    const int number = version.Integer(0, kMaxInt);
    if (number != kPlanSchemaVersion) {
      version.Fail(
          fmt::format("this perseus reads version {}, found {}; plan again, or use the "
                      "perseus that wrote the file",
                      kPlanSchemaVersion, number));
    }
  }

  void ReadHead(const TreeCursor& root) {
    if (const auto generator = root.Find("generator")) {
      plan_.generator_name = StringOr(*generator, "name");
      plan_.generator_version = StringOr(*generator, "version");
    }
    plan_.schedule = root.Get("schedule").String();
    plan_.stages = root.Get("stages").Integer(1);
    plan_.virtual_stages = root.Get("virtual_stages").Integer(1);
    plan_.microbatches = root.Get("microbatches").Integer(1);
    plan_.tensor_parallel = IntegerOr(root, "tensor_parallel", 1, 1);
    plan_.data_parallel = IntegerOr(root, "data_parallel", 1, 1);
    if (const auto profile = root.Find("profile")) {
      plan_.profile_source = StringOr(*profile, "source");
      plan_.profile_sha256 = StringOr(*profile, "sha256");
    }
    if (const auto kind = root.Find("knob_kind")) {
      const std::string text = kind->String();
      if (text != "sm_clock_mhz" && text != "label") kind->FailExpected("sm_clock_mhz or label");
      knobs_are_numbers_ = text == "sm_clock_mhz";
    }
  }

  void ReadFigures(const TreeCursor& root) {
    plan_.requested_time_seconds = root.Get("requested_time_s").Number(kNotNegative);
    plan_.iteration_time_seconds = root.Get("iteration_time_s").Number(kNotNegative);
    plan_.energy_joules = root.Get("energy_j").Number(kNotNegative);
    plan_.average_power_watts = NumberOr(root, "average_power_w", 0);
    plan_.lower_bound_joules = root.Get("lower_bound_j").Number();
    plan_.gap_percent = root.Get("gap_percent").Number();
    plan_.saving_percent = root.Get("saving_percent").Number();
    plan_.knob_changes = IntegerOr(root, "knob_changes", 0, 0, kMaxInt);
    plan_.distinct_knobs = IntegerOr(root, "distinct_knobs", 0, 0, kMaxInt);
    if (const auto certificate = root.Find("certificate")) {
      plan_.slope_quantum_watts = NumberOr(*certificate, "slope_quantum_w", 0);
      plan_.certified_error = NumberOr(*certificate, "certified_error", 0);
      plan_.exponential_fit = StringOr(*certificate, "cost_curve") == "exponential";
    }
    const TreeCursor baseline = root.Get("baseline");
    plan_.baseline.iteration_time_seconds = baseline.Get("iteration_time_s").Number(kNotNegative);
    plan_.baseline.energy_joules = baseline.Get("energy_j").Number(kNotNegative);
    plan_.baseline.average_power_watts = NumberOr(baseline, "average_power_w", 0);
    if (const auto costs = baseline.Find("computations")) {
      for (std::size_t i = 0; i < costs->Size() && !reader_.failed(); ++i) {
        plan_.baseline.costs.push_back(ReadBaselineCost(costs->At(i)));
      }
    }
  }

  BaselineCost ReadBaselineCost(const TreeCursor& entry) {
    BaselineCost cost;
    cost.type = ReadType(entry.Get("type"));
    cost.stage = ReadIndex(entry.Get("stage"), plan_.stages);
    if (const auto fused = entry.Find("fused_type")) {
      cost.fused_type = ReadType(*fused);
      cost.fused_stage = ReadIndex(entry.Get("fused_stage"), plan_.stages);
    }
    cost.knob = ReadKnob(entry.Get("knob"));
    cost.duration_seconds = entry.Get("duration_s").Number(kNotNegative);
    cost.energy_joules = entry.Get("energy_j").Number(kNotNegative);
    return cost;
  }

  void ReadSettings(const TreeCursor& root) {
    if (const auto constraints = root.Find("constraints")) {
      if (const auto text = constraints->Find("granularity")) {
        const std::optional<Granularity> granularity = ParseGranularity(text->String());
        if (!granularity) text->FailExpected("computation, phase, stage-type or stage");
        plan_.constraints.granularity = granularity.value_or(Granularity::kComputation);
      }
      plan_.constraints.min_dwell_seconds = NumberOr(*constraints, "min_dwell_s", 0);
      plan_.constraints.max_knobs = IntegerOr(*constraints, "max_knobs", 0, 0);
    }
    if (const auto margin = root.Find("time_margin")) {
      plan_.constraints.time_margin_sigmas = NumberOr(*margin, "sigmas", 0);
      plan_.constraints.time_margin_fraction = NumberOr(*margin, "fraction", 0);
    }
    if (const auto fixed = root.Find("fixed_times")) {
      if (const auto delays = fixed->Find("comm_delay_s")) {
        plan_.fixed.comm_delay_seconds = delays->Numbers(kNotNegative);
      }
      plan_.fixed.data_loading_seconds = NumberOr(*fixed, "data_loading_s", 0);
      plan_.fixed.iteration_overhead_seconds = NumberOr(*fixed, "iteration_overhead_s", 0);
    }
    if (const auto ratio = root.Find("split_ratio")) {
      plan_.split_ratio = ratio->Number({.least = 0, .most = 1});
    }
  }

  void ReadRanks(const TreeCursor& root) {
    const TreeCursor ranks = root.Get("ranks");
    const std::size_t count = ranks.Size();
    if (!reader_.failed() && count * static_cast<std::size_t>(plan_.virtual_stages) !=
                                 static_cast<std::size_t>(plan_.stages)) {
      ranks.Fail(fmt::format("{} ranks with {} virtual stages each do not make {} stages", count,
                             plan_.virtual_stages, plan_.stages));
    }
    for (std::size_t r = 0; r < count && !reader_.failed(); ++r) {
      const TreeCursor entry = ranks.At(r);
      PlannedRank& rank = plan_.ranks.emplace_back();
      if (const auto number = entry.Find("rank");
          number && number->Integer(0) != static_cast<int>(r)) {
        number->Fail(fmt::format("ranks are listed in order; expected {}", r));
      }
      rank.blocking_power_watts = NumberOr(entry, "blocking_power_w", 0);
      ReadComputations(entry.Get("computations"), &rank);
    }
    plan_.knobs_are_numbers = knobs_are_numbers_.value_or(true);
  }

  void ReadComputations(const TreeCursor& list, PlannedRank* rank) {
    const std::size_t count = list.Size();
    for (std::size_t i = 0; i < count && !reader_.failed(); ++i) {
      const TreeCursor cursor = list.At(i);
      Entry entry = ReadEntry(cursor);
      if (entry.fused) {
        // The other half follows at once.
        const bool last = i + 1 == count;
        const Entry partner = last ? Entry{} : ReadEntry(list.At(++i));
        if (!reader_.failed() && !AreFusedPair(entry, partner)) {
          cursor.Fail(
              "a fused forward must be followed by the backward that runs with it, with the same "
              "knob, start_s, duration_s and energy_j");
        }
        entry.computation.fused = partner.computation.action;
      }
      rank->computations.push_back(std::move(entry.computation));
    }
  }

  static bool AreFusedPair(const Entry& first, const Entry& second) {
    const PlannedComputation& a = first.computation;
    const PlannedComputation& b = second.computation;
    return second.fused && a.action.type == ComputationType::kForward &&
           IsBackward(b.action.type) && a.knob.label == b.knob.label &&
           a.start_seconds == b.start_seconds && a.duration_seconds == b.duration_seconds &&
           a.energy_joules == b.energy_joules;
  }

  Entry ReadEntry(const TreeCursor& cursor) {
    Entry entry;
    PlannedComputation& computation = entry.computation;
    computation.action.type = ReadType(cursor.Get("type"));
    computation.action.stage = ReadIndex(cursor.Get("stage"), plan_.stages);
    computation.action.microbatch = ReadIndex(cursor.Get("microbatch"), plan_.microbatches);
    computation.knob = ReadKnob(cursor.Get("knob"));
    computation.start_seconds = cursor.Get("start_s").Number(kNotNegative);
    computation.duration_seconds = cursor.Get("duration_s").Number(kNotNegative);
    computation.energy_joules = cursor.Get("energy_j").Number(kNotNegative);
    if (const auto fused = cursor.Find("fused")) entry.fused = fused->Bool();
    if (!reader_.failed()) seen_.emplace_back(computation.action, &cursor.node());
    return entry;
  }

  // Stage or microbatch: 0 .. count - 1.
  static int ReadIndex(const TreeCursor& cursor, int count) { return cursor.Integer(0, count - 1); }

  // All numbers or all labels; the first knob decides where knob_kind is absent.
  Knob ReadKnob(const TreeCursor& cursor) {
    if (reader_.failed()) return {};
    if (!cursor.IsNumber() && !cursor.IsString()) {
      cursor.FailExpected("a number or a string");
      return {};
    }
    if (!knobs_are_numbers_) knobs_are_numbers_ = cursor.IsNumber();
    if (!*knobs_are_numbers_) return {.label = cursor.String()};
    const double number = cursor.Number(kPositive);
    return {.label = fmt::format("{}", number), .number = number};
  }

  void CheckDistinct() {
    if (reader_.failed()) return;
    std::stable_sort(seen_.begin(), seen_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto twin =
        std::adjacent_find(seen_.begin(), seen_.end(),
                           [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twin == seen_.end()) return;
    const Action& action = twin->first;
    const TreeNode& again = *std::next(twin)->second;
    reader_.Fail(again, fmt::format("{} of stage {}, microbatch {} is already on line {}; each "
                                    "computation runs once an iteration",
                                    ComputationTypeName(action.type), action.stage,
                                    action.microbatch, twin->second->position.line));
  }

  TreeReader reader_;
  PlanDocument plan_;
  std::optional<bool> knobs_are_numbers_;
  std::vector<std::pair<Action, const TreeNode*>> seen_;
};

}  // namespace

Result<PlanDocument> ParsePlanJson(std::string_view text, const std::string& name) {
  if (text.size() > kMaxPlanBytes) {
    return InvalidInput(
        fmt::format("{}: is larger than {} MiB; is it the right file?", name, kMaxPlanBytes >> 20));
  }
  const Result<TreeNode> tree = ParseJsonTree(text, name);
  if (!tree) return tl::unexpected(tree.error());
  return PlanParser(*tree, name).Parse();
}

Result<PlanDocument> ReadPlan(const std::string& path) {
  const Result<std::string> text = ReadWholeFile(path, kMaxPlanBytes);
  if (!text) return tl::unexpected(text.error());
  return ParsePlanJson(*text, path);
}

}  // namespace perseus
