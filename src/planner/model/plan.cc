// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/nearest_name.h"
#include "common/numbers.h"
#include "perseus/costed_pipeline.h"

// Checks that refuse impossible pipelines and plans, whoever filled them in.
namespace perseus {
inline namespace v0 {
namespace {

tl::unexpected<Error> Wrong(const char* field, const std::string& message) {
  return tl::unexpected<Error>(
      {.code = ErrorCode::kInvalidInput, .message = message, .field = field});
}

bool IsNumber(double value, double least) { return value >= least && std::isfinite(value); }

bool Same(const CostOption& a, const CostOption& b) {
  return a.knob == b.knob && a.time_seconds == b.time_seconds && a.energy_joules == b.energy_joules;
}

bool Has(const std::vector<CostOption>& options, const CostOption& wanted) {
  return std::any_of(options.begin(), options.end(),
                     [&](const CostOption& option) { return Same(option, wanted); });
}

std::string NameOf(const CostTable& table) {
  return fmt::format("{} of stage {}", ComputationTypeName(table.type), table.stage);
}

Result<void> CheckTable(const CostedPipeline& pipeline, const CostTable& table) {
  if (static_cast<int>(table.type) >= kNumComputationTypes) {
    return Wrong("tables", "a table of costs is of no type of computation");
  }
  if (table.options.empty() || table.all_options.empty()) {
    return Wrong("options", NameOf(table) + " has no option");
  }
  int knob_before = -1;
  for (const CostOption& option : table.all_options) {
    if (option.knob <= knob_before ||
        static_cast<std::size_t>(option.knob) >= pipeline.knobs.size()) {
      return Wrong("knob",
                   fmt::format("{} has an option with knob {} after one with {}; there are "
                               "{}, each at most once, in their order",
                               NameOf(table), option.knob, knob_before, pipeline.knobs.size()));
    }
    knob_before = option.knob;
    if (IsNumber(option.time_seconds, 0) && std::isfinite(option.energy_joules) &&
        IsNumber(option.time_std_seconds, 0)) {
      continue;
    }
    return Wrong("time_seconds",
                 fmt::format("{} has an option of {} s and {} J (spread {} s); expected finite "
                             "numbers, and times >= 0",
                             NameOf(table), option.time_seconds, option.energy_joules,
                             option.time_std_seconds));
  }
  double before = 0;
  for (const CostOption& option : table.options) {
    if (option.time_seconds >= before && Has(table.all_options, option)) {
      before = option.time_seconds;
      continue;
    }
    return Wrong("options", fmt::format("{}: the option of {} s at knob {} is not one of all its "
                                        "options, or faster than one before it",
                                        NameOf(table), option.time_seconds, option.knob));
  }
  if (!Has(table.all_options, table.baseline)) {
    return Wrong("baseline", NameOf(table) + ": the baseline is not one of all its options");
  }
  if (table.default_clocks && (table.default_clocks->knob != table.baseline.knob ||
                               !IsNumber(table.default_clocks->time_seconds, 0) ||
                               !std::isfinite(table.default_clocks->energy_joules))) {
    return Wrong("default_clocks",
                 fmt::format("{} takes {} s and {} J at default clocks (knob {}); expected finite "
                             "numbers, a time >= 0, and the knob of the baseline",
                             NameOf(table), table.default_clocks->time_seconds,
                             table.default_clocks->energy_joules, table.default_clocks->knob));
  }
  if (!IsNumber(table.blocking_power_watts, 0)) {
    return Wrong("blocking_power_watts",
                 fmt::format("{} is on a rank whose blocking power is {} W; expected a number >= 0",
                             NameOf(table), table.blocking_power_watts));
  }
  return {};
}

// Checks the indices by which all code looks up a computation's table or a rank's power.
Result<void> CheckShape(const CostedPipeline& pipeline) {
  if (pipeline.table_of.size() != pipeline.dag.computations.size()) {
    return Wrong("table_of",
                 fmt::format("the tables of {} computations are named, but there are {}",
                             pipeline.table_of.size(), pipeline.dag.size()));
  }
  const auto tables = static_cast<int>(pipeline.tables.size());
  for (const int table : pipeline.table_of) {
    if (table >= 0 && table < tables) continue;
    return Wrong("table_of",
                 fmt::format("a computation has table {}; there are {}", table, tables));
  }
  for (const CostTable& table : pipeline.tables) {
    const int knob = table.baseline.knob;
    if (knob >= 0 && static_cast<std::size_t>(knob) < pipeline.knobs.size()) continue;
    return Wrong("baseline", fmt::format("{}: the baseline has knob {}; there are {}",
                                         NameOf(table), knob, pipeline.knobs.size()));
  }
  if (pipeline.rank_blocking_power_watts.size() !=
      static_cast<std::size_t>(pipeline.dag.num_ranks)) {
    return Wrong("rank_blocking_power_watts",
                 fmt::format("{} blocking powers are given for {} ranks",
                             pipeline.rank_blocking_power_watts.size(), pipeline.dag.num_ranks));
  }
  const std::vector<std::vector<double>>& waiting = pipeline.rank_waiting_watts;
  const bool fits = waiting.size() == pipeline.rank_blocking_power_watts.size() &&
                    std::all_of(waiting.begin(), waiting.end(), [&](const auto& of_rank) {
                      return of_rank.size() == pipeline.knobs.size();
                    });
  if (!waiting.empty() && !fits) {
    return Wrong("rank_waiting_watts",
                 fmt::format("what ranks draw while they wait is not given for each of {} ranks at "
                             "each of {} knobs",
                             pipeline.dag.num_ranks, pipeline.knobs.size()));
  }
  return {};
}

// 64 bits of FNV-1a over words, mixed, as neighbours differ in few bits.
class Hash {
 public:
  void Add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15ULL;
    state_ ^= state_ >> 29;
  }
  void Add(int number) { Add(static_cast<std::uint64_t>(static_cast<std::int64_t>(number))); }
  void Add(double number) { Add(std::bit_cast<std::uint64_t>(number)); }
  void Add(std::string_view text) {
    Add(static_cast<std::uint64_t>(text.size()));
    for (const char c : text) Add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  void Add(const ComputationId& id) {
    Add(static_cast<int>(id.type));
    Add(id.stage);
    Add(id.microbatch);
  }
  void Add(const CostOption& option) {
    Add(option.knob);
    Add(option.time_seconds);
    Add(option.energy_joules);
    Add(option.time_std_seconds);
  }
  std::uint64_t Value() const { return state_ == 0 ? 1 : state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace

Result<void> CostedPipeline::Validate() const {
  if (auto good = dag.Validate(); !good) return good;
  if (auto good = CheckShape(*this); !good) return good;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (auto good = CheckTable(*this, tables[t]); !good) return good;
    const int kind = tables[t].same_kind_as;
    if (kind < -1 || kind >= static_cast<int>(tables.size())) {
      return Wrong("same_kind_as", fmt::format("table {} is of the kind of table {}; there are {}",
                                               t, kind, tables.size()));
    }
  }
  for (std::size_t rank = 0; rank < rank_waiting_watts.size(); ++rank) {
    const std::vector<double>& watts = rank_waiting_watts[rank];
    const double least = watts.empty() ? 0 : *std::min_element(watts.begin(), watts.end());
    const bool good =
        std::all_of(watts.begin(), watts.end(), [](double each) { return IsNumber(each, 0); });
    if (good && least == rank_blocking_power_watts[rank]) continue;
    return Wrong(
        "rank_waiting_watts",
        fmt::format("rank {} draws at least {} W while it waits, and its blocking power is "
                    "{} W; expected the same number",
                    rank, least, rank_blocking_power_watts[rank]));
  }
  double total = 0;
  for (const double watts : rank_blocking_power_watts) {
    if (!IsNumber(watts, 0)) {
      return Wrong("rank_blocking_power_watts",
                   fmt::format("a rank's blocking power is {} W; expected a number >= 0", watts));
    }
    total += watts;
  }
  // As summed in another order.
  if (!(std::abs(total - total_blocking_power_watts) <= 1e-9 * total)) {
    return Wrong("total_blocking_power_watts",
                 fmt::format("the total blocking power is {} W, of the ranks together {} W",
                             total_blocking_power_watts, total));
  }
  return {};
}

std::uint64_t CostedPipeline::Fingerprint() const {
  Hash hash;
  hash.Add(dag.num_ranks);
  hash.Add(dag.num_stages);
  hash.Add(dag.num_microbatches);
  for (const Computation& computation : dag.computations) {
    hash.Add(computation.rank);
    hash.Add(computation.id);
    if (computation.fused) hash.Add(*computation.fused);
  }
  for (const Precedence& precedence : dag.precedences) {
    hash.Add(precedence.from);
    hash.Add(precedence.to);
    hash.Add(precedence.delay_seconds);
  }
  for (const double seconds : dag.start_delay_seconds) hash.Add(seconds);
  hash.Add(dag.end_delay_seconds);
  for (const Knob& knob : knobs) hash.Add(knob.label);
  for (const CostTable& table : tables) {
    hash.Add(table.stage);
    hash.Add(static_cast<int>(table.type));
    hash.Add(table.fused_type ? static_cast<int>(*table.fused_type) : -1);
    hash.Add(table.fused_stage);
    hash.Add(table.blocking_power_watts);
    for (const CostOption& option : table.options) hash.Add(option);
    for (const CostOption& option : table.all_options) hash.Add(option);
    hash.Add(table.baseline);
    if (table.default_clocks) hash.Add(*table.default_clocks);
  }
  for (const int table : table_of) hash.Add(table);
  for (const double watts : rank_blocking_power_watts) hash.Add(watts);
  for (const std::vector<double>& of_rank : rank_waiting_watts) {
    for (const double watts : of_rank) hash.Add(watts);
  }
  return hash.Value();
}

Result<void> CheckOptions(const CostedPipeline& pipeline, const std::vector<CostOption>& options) {
  if (auto good = CheckShape(pipeline); !good) return good;
  if (options.size() != pipeline.table_of.size()) {
    return Wrong("options",
                 fmt::format("the plan has options for {} computations, but the pipeline "
                             "has {}; it is of another pipeline",
                             options.size(), pipeline.table_of.size()));
  }
  for (std::size_t i = 0; i < options.size(); ++i) {
    const CostTable& table = pipeline.TableOf(static_cast<int>(i));
    const CostOption& option = options[i];
    const bool has_knob =
        option.knob >= 0 && static_cast<std::size_t>(option.knob) < pipeline.knobs.size();
    const auto by_knob =
        std::lower_bound(table.all_options.begin(), table.all_options.end(), option.knob,
                         [](const CostOption& a, int knob) { return a.knob < knob; });
    if (has_knob && ((by_knob != table.all_options.end() && Same(*by_knob, option)) ||
                     Has(table.options, option) || Same(table.baseline, option))) {
      continue;
    }
    return Wrong(
        "options",
        fmt::format("computation {} ({}) has no option of {} s and {} J at knob "
                    "{}; the plan is of another pipeline",
                    i, NameOf(table), option.time_seconds, option.energy_joules, option.knob));
  }
  return {};
}

Result<void> CheckPlan(const CostedPipeline& pipeline, const Plan& plan) {
  if (plan.pipeline != 0 && plan.pipeline != pipeline.Fingerprint()) {
    return Wrong("pipeline", "the plan was made for another pipeline; make one with this planner");
  }
  return CheckOptions(pipeline, plan.options);
}

Result<Knob> Plan::KnobOf(const CostedPipeline& of, const ComputationId& id) const {
  if (auto good = CheckPlan(of, *this); !good) return tl::unexpected(good.error());
  const std::optional<int> i = of.dag.Find(id);
  if (i) return of.knobs[static_cast<std::size_t>(options[static_cast<std::size_t>(*i)].knob)];
  return Wrong("id", fmt::format("the pipeline runs no {} of stage {}, microbatch {}",
                                 ComputationTypeName(id.type), id.stage, id.microbatch));
}

double EffectiveEnergy(const CostTable& table, const CostOption& option) {
  return option.energy_joules - table.blocking_power_watts * option.time_seconds;
}

std::optional<int> CostedPipeline::WaitingKnob(int rank) const {
  if (rank_waiting_watts.empty()) return std::nullopt;
  const std::vector<double>& watts = rank_waiting_watts[static_cast<std::size_t>(rank)];
  return static_cast<int>(std::min_element(watts.begin(), watts.end()) - watts.begin());
}

double Frontier::EnergyAt(double seconds) const {
  if (points.empty()) return 0;
  const auto right = std::lower_bound(
      points.begin(), points.end(), seconds,
      [](const FrontierPoint& point, double t) { return point.iteration_time_seconds < t; });
  if (right == points.begin()) return right->energy_joules;
  if (right == points.end()) {
    const FrontierPoint& last = points.back();
    return last.energy_joules +
           total_blocking_power_watts * (seconds - last.iteration_time_seconds);
  }
  const FrontierPoint& a = *(right - 1);
  const double share = (seconds - a.iteration_time_seconds) /
                       (right->iteration_time_seconds - a.iteration_time_seconds);
  return a.energy_joules + share * (right->energy_joules - a.energy_joules);
}

namespace {

template <typename KnobOf>
Result<KnobChanges> Count(const PipelineDag& dag, std::size_t knobs, const KnobOf& knob_of) {
  if (knobs != dag.computations.size()) {
    return InvalidInput(
        fmt::format("{} knobs are given for {} computations", knobs, dag.computations.size()));
  }
  KnobChanges changes;
  for (const std::vector<int>& order : dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) {
      if (knob_of(order[k]) != knob_of(order[k - 1])) ++changes.within;
    }
    if (!order.empty() && knob_of(order.front()) != knob_of(order.back())) ++changes.back;
  }
  return changes;
}

}  // namespace

Result<KnobChanges> CountKnobChanges(const PipelineDag& dag, std::span<const int> knobs) {
  return Count(dag, knobs.size(), [&](int i) { return knobs[i]; });
}

Result<KnobChanges> CountKnobChanges(const PipelineDag& dag,
                                     const std::vector<CostOption>& options) {
  return Count(dag, options.size(), [&](int i) { return options[i].knob; });
}

namespace {

constexpr EnumNames<Granularity, 4> kGranularityNames = {
    {"computation", "phase", "stage-type", "stage"}};

// The number before `suffix`, where there is a positive one.
std::optional<double> NumberBefore(std::string_view text, std::string_view suffix) {
  if (!TakeUnit(&text, suffix)) return std::nullopt;
  const std::optional<double> value = ParseFinite(text);
  return value && *value > 0 ? value : std::nullopt;
}

// A likely correction of a unit that is not read so, for the end of a message.
std::string UnitHint(std::string_view text) {
  if (const auto minutes = NumberBefore(text, "min")) {
    return fmt::format("; write {:.6g}s", 60 * *minutes);
  }
  if (const auto hours = NumberBefore(text, "h")) {
    return fmt::format("; write {:.6g}s", 3600 * *hours);
  }
  return "";
}

// A likely correction, for the end of a message.
std::string TargetHint(std::string_view text) {
  if (!text.ends_with('%')) return UnitHint(text);
  const std::optional<double> value = NumberBefore(text, "%");
  constexpr double kMostPercent = 100;
  if (!value || *value > kMostPercent) return "";
  return fmt::format("; did you mean {:.6g}x?", 1 + *value / 100);
}

}  // namespace

std::string_view GranularityName(Granularity granularity) {
  return kGranularityNames.Of(granularity);
}

std::optional<Granularity> ParseGranularity(std::string_view name) {
  return kGranularityNames.Parse(name);
}

Result<PlanTarget> ParsePlanTarget(std::string_view text) {
  using Kind = PlanTarget::Kind;
  if (text == "min-energy") return PlanTarget{Kind::kMinEnergy, 0};
  if (text == "fastest") return PlanTarget{Kind::kFastest, 0};
  if (text == "tstar") return PlanTarget{Kind::kTStar, 0};
  std::string_view number = text;
  const bool factor = TakeUnit(&number, "x");
  const std::optional<double> bare = ParseFinite(number);
  if (!factor && bare && *bare > 0) {
    return InvalidInput(fmt::format(
        "the target {0} may mean two things: write {0}x for a factor of the all-maximum-clock "
        "time, {0}s for seconds",
        text.substr(0, 40)));
  }
  const std::optional<double> value = factor ? bare : ParseWithUnit(number, kTimeUnits);
  // A time may be too short for a number once it is in seconds.
  if (!value || !(*value > 0)) {
    return InvalidInput(
        fmt::format("'{}' is no point of the frontier; expected a factor of the all-maximum-clock "
                    "time (1.02x), seconds (5.3s), min-energy, fastest or tstar{}",
                    text.substr(0, 40), TargetHint(text)));
  }
  return PlanTarget{factor ? Kind::kBaselineFactor : Kind::kSeconds, *value};
}

std::string PlanTargetText(const PlanTarget& target) {
  switch (target.kind) {
    case PlanTarget::Kind::kBaselineFactor:
      return target.value == 1 ? "1.0x" : fmt::format("{}x", target.value);
    case PlanTarget::Kind::kSeconds:
      return fmt::format("{}s", target.value);
    case PlanTarget::Kind::kMinEnergy:
      return "min-energy";
    case PlanTarget::Kind::kFastest:
      return "fastest";
    case PlanTarget::Kind::kTStar:
      break;
  }
  return "tstar";
}

}  // namespace v0
}  // namespace perseus
