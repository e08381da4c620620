// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/input_limits.h"
#include "model/iteration_energy.h"
#include "perseus/costed_pipeline.h"
#include "perseus/planner.h"
#include "plan/cost_options.h"

namespace perseus {
inline namespace v0 {
namespace {

// The measured options of one (stage, type) as a rank runs them, by knob.
struct RankOptions {
  std::vector<CostOption> options;
  CostOption baseline;
  std::optional<CostOption> default_clocks;  // See CostTable.
  bool split = false;
};

RankOptions Scaled(const Profile& profile, const OptionTable& table, double time_share,
                   double energy_factor) {
  RankOptions result;
  for (const Option& option : table.options) {
    result.options.push_back({.knob = option.knob,
                              .time_seconds = option.time_seconds * time_share,
                              .energy_joules = option.energy_joules * energy_factor,
                              .time_std_seconds = option.time_std_seconds * time_share});
  }
  result.baseline = result.options[table.baseline];
  if (const DefaultClockCost* const cost = profile.FindDefaultClockCost(table.stage, table.type)) {
    result.default_clocks = {.knob = result.baseline.knob,
                             .time_seconds = cost->time_seconds * time_share,
                             .energy_joules = cost->energy_joules * energy_factor,
                             .time_std_seconds = cost->time_std_seconds * time_share};
  }
  std::stable_sort(result.options.begin(), result.options.end(),
                   [](const CostOption& a, const CostOption& b) { return a.knob < b.knob; });
  return result;
}

CostOption Combined(const CostOption& a, const CostOption& b, double sign) {
  return {.knob = a.knob,
          .time_seconds = a.time_seconds + sign * b.time_seconds,
          .energy_joules = a.energy_joules + sign * b.energy_joules,
          // Also of a difference: errors are no smaller than of its parts.
          .time_std_seconds = a.time_std_seconds + b.time_std_seconds};
}

// The sum of two (of what runs as one, at one knob) or, with `sign` -1, the
// difference (of what is a part of the other). At the knobs that both have.
std::optional<RankOptions> Combined(const RankOptions& a, const RankOptions& b, double sign,
                                    bool knobs_are_ranked) {
  RankOptions result;
  result.split = a.split || b.split;
  // Options are in the order of knobs.
  for (auto first = a.options.begin(), second = b.options.begin();
       first != a.options.end() && second != b.options.end();) {
    if (first->knob != second->knob) {
      ++(first->knob < second->knob ? first : second);
      continue;
    }
    result.options.push_back(Combined(*first, *second, sign));
    ++first;
    ++second;
  }
  if (result.options.empty()) return std::nullopt;
  // The baseline of both, if there is one, else as in the reader of profiles:
  // the highest knob, which is the first, or the fastest label.
  const auto baseline = std::min_element(
      result.options.begin(), result.options.end(), [&](const CostOption& x, const CostOption& y) {
        const bool x_last = x.knob != a.baseline.knob || x.knob != b.baseline.knob;
        const bool y_last = y.knob != a.baseline.knob || y.knob != b.baseline.knob;
        if (x_last != y_last) return y_last;
        return !knobs_are_ranked && std::tie(x.time_seconds, x.energy_joules) <
                                        std::tie(y.time_seconds, y.energy_joules);
      });
  result.baseline = *baseline;
  if (a.default_clocks && b.default_clocks) {
    const CostOption default_clocks = Combined(*a.default_clocks, *b.default_clocks, sign);
    // Errors of measurement may leave nothing of a whole.
    if (default_clocks.time_seconds > 0 && default_clocks.energy_joules > 0)
      result.default_clocks = default_clocks;
  }
  if (result.default_clocks) result.default_clocks->knob = result.baseline.knob;
  return result;
}

// The same of so many times as much work.
RankOptions WithWork(const RankOptions& options, double factor) {
  RankOptions result = options;
  if (factor == 1) return result;
  const auto scale = [factor](CostOption* option) {
    option->time_seconds *= factor;
    option->energy_joules *= factor;
    option->time_std_seconds *= factor;
  };
  for (CostOption& option : result.options) scale(&option);
  scale(&result.baseline);
  if (result.default_clocks) scale(&*result.default_clocks);
  return result;
}

// Finds, splits or joins what the profile states into what the schedule runs.
class OptionSource {
 public:
  OptionSource(const Profile& profile, double energy_factor, double split_ratio)
      : profile_(profile),
        energy_factor_(energy_factor),
        split_ratio_(split_ratio),
        has_recompute_(std::any_of(
            profile.tables.begin(), profile.tables.end(),
            [](const OptionTable& t) { return t.type == ComputationType::kRecompute; })),
        used_(profile.tables.size()) {}

  Result<RankOptions> Find(int stage, ComputationType type) {
    using enum ComputationType;
    if (const OptionTable* table = Use(stage, type)) {
      return Scaled(profile_, *table, 1.0, energy_factor_);
    }
    // Take forward if no stage was measured: else the others do not recompute, or in their
    // backward.
    if (type == kRecompute && !has_recompute_) {
      if (const OptionTable* forward = Use(stage, kForward)) {
        takes_forward_ = true;
        return Scaled(profile_, *forward, 1.0, energy_factor_);
      }
    }
    const OptionTable* backward = Use(stage, kBackward);
    if (backward != nullptr && (type == kBackwardInput || type == kBackwardWeight)) {
      const OptionTable* other =
          Use(stage, type == kBackwardInput ? kBackwardWeight : kBackwardInput);
      if (other != nullptr) return Rest(*backward, *other, type);
      const double share = type == kBackwardInput ? split_ratio_ : 1.0 - split_ratio_;
      RankOptions options = Scaled(profile_, *backward, share, share * energy_factor_);
      options.split = true;
      return options;
    }
    const OptionTable* input = Use(stage, kBackwardInput);
    const OptionTable* weight = Use(stage, kBackwardWeight);
    if (type == kBackward && input != nullptr && weight != nullptr) {
      auto joined =
          Combined(Scaled(profile_, *input, 1.0, energy_factor_),
                   Scaled(profile_, *weight, 1.0, energy_factor_), 1, profile_.KnobsAreRanked());
      if (joined) return *std::move(joined);
      return InvalidInput(fmt::format(
          "{}: the schedule runs {} of stage {}, and the profile's backward_input and "
          "backward_weight of it have no knob in common; measure both at the same knobs",
          profile_.source, ComputationTypeName(type), stage));
    }
    return InvalidInput(fmt::format(
        "{}: the schedule runs {} of stage {}, but the profile has no such rows; add rows with "
        "stage {} and instruction {}",
        profile_.source, ComputationTypeName(type), stage, stage, ComputationTypeName(type)));
  }

  // A sentence for each type of which something was never used.
  std::vector<Note> Notes() const {
    std::vector<Note> notes;
    if (takes_forward_) {
      notes.push_back(
          {.severity = Severity::kOdd,
           .text = "there are no rows of recompute, so it is taken to cost what forward does; "
                   "rows of backward must then be without the recomputation",
           .source = profile_.source});
    }
    for (int type = 0; type < kNumComputationTypes; ++type) {
      int unused = 0;
      int first = 0;
      for (std::size_t i = 0; i < used_.size(); ++i) {
        const OptionTable& table = profile_.tables[i];
        if (used_[i] || static_cast<int>(table.type) != type) continue;
        if (unused++ == 0) first = table.stage;
      }
      if (unused == 0) continue;
      notes.push_back(
          {.severity = Severity::kOdd,
           .text = fmt::format("the schedule does not run {} by itself, so the profile's rows of "
                               "it are not used (stage {}{})",
                               ComputationTypeName(static_cast<ComputationType>(type)), first,
                               unused > 1 ? fmt::format(" and {} more", unused - 1) : ""),
           .source = profile_.source});
    }
    return notes;
  }

 private:
  const OptionTable* Use(int stage, ComputationType type) {
    const OptionTable* table = profile_.Find(stage, type);
    if (table != nullptr) used_[static_cast<std::size_t>(table - profile_.tables.data())] = true;
    return table;
  }

  // The rest of `backward` without `part`, the other half: so that the two halves together are the
  // whole that was measured.
  Result<RankOptions> Rest(const OptionTable& backward, const OptionTable& part,
                           ComputationType type) const {
    const auto rest =
        Combined(Scaled(profile_, backward, 1.0, energy_factor_),
                 Scaled(profile_, part, 1.0, energy_factor_), -1, profile_.KnobsAreRanked());
    if (!rest) {
      return InvalidInput(fmt::format(
          "{}: the schedule runs {} of stage {}, which is backward less {}, and the profile has no "
          "knob at which both are measured; add rows with instruction {}",
          profile_.source, ComputationTypeName(type), part.stage, ComputationTypeName(part.type),
          ComputationTypeName(type)));
    }
    for (const CostOption& option : rest->options) {
      if (option.time_seconds > 0 && option.energy_joules > 0) continue;
      const bool is_time = !(option.time_seconds > 0);
      return InvalidInput(fmt::format(
          "{}: the schedule runs {} of stage {}, which is backward less {}, but at {} that is {} "
          "{}, as {} {} no less; correct the rows, or add some with instruction {}",
          profile_.source, ComputationTypeName(type), part.stage, ComputationTypeName(part.type),
          profile_.knobs[option.knob].label, is_time ? option.time_seconds : option.energy_joules,
          is_time ? "s" : "J", ComputationTypeName(part.type), is_time ? "takes" : "uses",
          ComputationTypeName(type)));
    }
    return *rest;
  }

  const Profile& profile_;
  double energy_factor_;
  double split_ratio_;
  bool has_recompute_;
  bool takes_forward_ = false;  // For recompute.
  std::vector<bool> used_;      // [table of the profile]
};

// Options of all tables together, about 2 GB.
constexpr std::size_t kMostOptions = std::size_t{1} << 25;

Result<void> CheckWork(const Work& work, const PipelineDag& dag) {
  if (work.empty()) return {};
  if (work.num_microbatches() > dag.num_microbatches) {
    return InvalidInput(fmt::format("the work of {} microbatches is given, but the pipeline has {}",
                                    work.num_microbatches(), dag.num_microbatches));
  }
  const auto check = [&work](const ComputationId& id) -> Result<void> {
    const double factor = work.FactorOf(id);
    if (factor >= kLeastWork && factor <= kMostWork) return {};
    return InvalidInput(fmt::format(
        "the work of {} of stage {}, microbatch {} is {} times the profile's; expected "
        "{:g} to {:g}",
        ComputationTypeName(id.type), id.stage, id.microbatch, factor, kLeastWork, kMostWork));
  };
  std::set<std::pair<int, ComputationType>> kinds;
  for (const Computation& computation : dag.computations) {
    if (auto good = check(computation.id); !good) return good;
    kinds.emplace(computation.id.stage, computation.id.type);
    if (!computation.fused) continue;
    if (auto good = check(*computation.fused); !good) return good;
    kinds.emplace(computation.fused->stage, computation.fused->type);
  }
  // Factors of backward also hold for its halves where these have none of their own.
  const auto is_run = [&kinds](int stage, ComputationType type) {
    return kinds.contains({stage, type}) ||
           (type == ComputationType::kBackward &&
            kinds.contains({stage, ComputationType::kBackwardInput}));
  };
  for (const auto& [id, factor] : work.Given()) {
    if (id.microbatch >= 0 && id.microbatch < dag.num_microbatches && is_run(id.stage, id.type)) {
      continue;
    }
    return InvalidInput(fmt::format(
        "the work of {} of stage {}, microbatch {} is given ({} times the profile's), but the "
        "pipeline runs no such computation",
        ComputationTypeName(id.type), id.stage, id.microbatch, factor));
  }
  return {};
}

// The stages of a rank for which the profile says what waiting draws.
std::vector<int> WaitingStages(const Profile& profile, const PipelineDag& dag, int rank) {
  std::set<int> stages;
  for (const int i : dag.rank_order[rank]) {
    const Computation& computation = dag.computations[i];
    stages.insert(computation.id.stage);
    if (computation.fused) stages.insert(computation.fused->stage);
  }
  std::vector<int> said;
  for (const int stage : stages) {
    if (stage < profile.num_stages && profile.SaysWaitingOf(stage)) said.push_back(stage);
  }
  return said;
}

bool SaysWaitingOf(const Profile& profile, const PipelineDag& dag, int rank) {
  return !WaitingStages(profile, dag, rank).empty();
}

// Sets the power of each rank's GPUs while they wait.
void SetWaiting(const Profile& profile, const PipelineDag& dag, const CostSpec& spec,
                CostedPipeline* pipeline) {
  const double gpus = pipeline->tensor_parallel;
  const auto highest = static_cast<std::size_t>(
      profile.tables.front()
          .options[static_cast<std::size_t>(profile.tables.front().baseline)]
          .knob);
  const auto& given = spec.blocking_power_watts;
  std::vector<std::vector<double>> by_knob;
  bool depends = false;
  bool unused = false;
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    const std::vector<int> stages = WaitingStages(profile, dag, rank);
    std::vector<double>& watts = by_knob.emplace_back(profile.knobs.size(), 0);
    for (std::size_t knob = 0; knob < watts.size(); ++knob) {
      if (stages.empty()) {
        watts[knob] = (given.size() == 1 ? given[0] : given[rank]) * gpus;
        continue;
      }
      // A rank with several stages was measured with each of them.
      for (const int stage : stages) {
        watts[knob] += profile.WaitingWattsOf(stage, static_cast<int>(knob));
      }
      watts[knob] *= gpus / static_cast<double>(stages.size());
    }
    if (spec.waiting_is_constant) watts.assign(watts.size(), watts[highest]);
    unused = unused || (!stages.empty() && !given.empty());
    const double least = *std::min_element(watts.begin(), watts.end());
    depends = depends || *std::max_element(watts.begin(), watts.end()) > least;
    pipeline->rank_blocking_power_watts.push_back(least);
    pipeline->total_blocking_power_watts += least;
  }
  if (depends) pipeline->rank_waiting_watts = std::move(by_knob);
  if (spec.waiting_is_constant && !profile.waiting.empty()) {
    pipeline->notes.push_back(
        {.severity = Severity::kOdd,
         .text = "what a GPU that waits draws is taken as constant, that at the highest clock: "
                 "these plans set no clocks for waiting",
         .source = profile.source});
  }
  if (unused) {
    pipeline->notes.push_back(
        {.severity = Severity::kOdd,
         .text = "the blocking power that is given is not used where the profile has rows of "
                 "blocking; leave it out, or remove the rows",
         .source = profile.source});
  }
}

Result<void> CheckSpec(const Profile& profile, const PipelineDag& dag, const CostSpec& spec) {
  const auto powers = spec.blocking_power_watts.size();
  if (powers == 0) {
    for (int rank = 0; rank < dag.num_ranks; ++rank) {
      if (!SaysWaitingOf(profile, dag, rank)) {
        return InvalidInput(
            fmt::format("0 blocking powers are given for {} ranks, and {} has no rows of blocking "
                        "for the stages "
                        "of rank {}; give one number for all, or one per rank, or add rows",
                        dag.num_ranks, profile.source, rank));
      }
    }
  } else if (powers != 1 && powers != static_cast<std::size_t>(dag.num_ranks)) {
    return InvalidInput(fmt::format(
        "{} blocking powers are given for {} ranks; give one number for all, or one per rank",
        powers, dag.num_ranks));
  }
  for (const double watts : spec.blocking_power_watts) {
    if (!(watts >= 0) || !std::isfinite(watts)) {
      return InvalidInput(fmt::format("the blocking power is {} W; expected a number >= 0", watts));
    }
  }
  if (!(spec.split_ratio > 0 && spec.split_ratio < 1)) {
    return InvalidInput(fmt::format(
        "the split ratio is {}; expected a number between 0 and 1, the share of backward that is "
        "the input gradient",
        spec.split_ratio));
  }
  if (spec.tensor_parallel && *spec.tensor_parallel < 1) {
    return InvalidInput(
        fmt::format("tensor parallelism is {}; expected at least 1", *spec.tensor_parallel));
  }
  if (profile.tensor_parallel_ranks > 0 && spec.tensor_parallel &&
      *spec.tensor_parallel != profile.tensor_parallel_ranks) {
    return InvalidInput(fmt::format(
        "{}: the profile has {} tensor-parallel ranks (tp_rank), but {} are asked for; leave the "
        "number out or give {}",
        profile.source, profile.tensor_parallel_ranks, *spec.tensor_parallel,
        profile.tensor_parallel_ranks));
  }
  if (dag.num_stages != profile.num_stages) {
    return InvalidInput(fmt::format(
        "{}: the profile has {} stages, the schedule {}; they must agree (stages = ranks x virtual "
        "stages)",
        profile.source, profile.num_stages, dag.num_stages));
  }
  return {};
}

}  // namespace

Result<CostedPipeline> CostPipeline(const Profile& profile, PipelineDag dag, const CostSpec& spec) {
  if (auto checked = profile.Validate(); !checked) return tl::unexpected(checked.error());
  if (auto checked = dag.Validate(); !checked) return tl::unexpected(checked.error());
  if (auto checked = CheckSpec(profile, dag, spec); !checked) {
    return tl::unexpected(checked.error());
  }
  CostedPipeline pipeline;
  pipeline.knobs = profile.knobs;
  pipeline.knobs_are_numbers = profile.knobs_are_numbers;
  pipeline.tensor_parallel = profile.tensor_parallel_ranks > 0 ? profile.tensor_parallel_ranks
                                                               : spec.tensor_parallel.value_or(1);
  const double gpus = pipeline.tensor_parallel;
  SetWaiting(profile, dag, spec, &pipeline);

  if (auto checked = CheckWork(spec.work, dag); !checked) return tl::unexpected(checked.error());
  OptionSource source(profile, profile.tensor_parallel_ranks > 0 ? 1.0 : gpus, spec.split_ratio);
  // Stage, type, fused stage and type; then the work of both.
  using Kind = std::tuple<int, ComputationType, int, int>;
  std::map<std::tuple<int, ComputationType>, RankOptions> sources;
  std::map<Kind, int> first_of_kind;
  std::map<std::tuple<Kind, double, double>, int> known;
  // Lives in `sources`, from where nothing is erased.
  const auto find = [&](int stage, ComputationType type) -> Result<const RankOptions*> {
    const auto found = sources.find({stage, type});
    if (found != sources.end()) return &found->second;
    auto options = source.Find(stage, type);
    if (!options) return tl::unexpected(options.error());
    return &sources.emplace(std::tuple(stage, type), *std::move(options)).first->second;
  };
  pipeline.table_of.reserve(dag.computations.size());
  for (const Computation& computation : dag.computations) {
    const ComputationId& id = computation.id;
    const Kind kind = {id.stage, id.type, computation.fused ? computation.fused->stage : -1,
                       computation.fused ? static_cast<int>(computation.fused->type) : -1};
    const double work = spec.work.FactorOf(id);
    const double fused_work = computation.fused ? spec.work.FactorOf(*computation.fused) : 1;
    const auto [entry, added] =
        known.try_emplace({kind, work, fused_work}, static_cast<int>(pipeline.tables.size()));
    pipeline.table_of.push_back(entry->second);
    if (!added) continue;
    const auto found = find(id.stage, id.type);
    if (!found) return tl::unexpected(found.error());
    RankOptions options = WithWork(**found, work);
    CostTable table;
    table.stage = id.stage;
    table.type = id.type;
    table.work = work;
    if (computation.fused) {
      auto other = find(computation.fused->stage, computation.fused->type);
      if (!other) return tl::unexpected(other.error());
      auto joined = Combined(options, WithWork(**other, fused_work), 1, profile.KnobsAreRanked());
      if (!joined) {
        return InvalidInput(fmt::format(
            "{}: {} of stage {} and {} of stage {} run as one, but have no knob in common; measure "
            "both at the same knobs",
            profile.source, ComputationTypeName(id.type), id.stage,
            ComputationTypeName(computation.fused->type), computation.fused->stage));
      }
      options = *std::move(joined);
      table.fused_type = computation.fused->type;
      table.fused_stage = computation.fused->stage;
      table.fused_work = fused_work;
    }
    const auto [first, is_first] =
        first_of_kind.try_emplace(kind, static_cast<int>(pipeline.tables.size()));
    if (!is_first) table.same_kind_as = first->second;
    table.blocking_power_watts = pipeline.rank_blocking_power_watts[computation.rank];
    table.baseline = options.baseline;
    table.default_clocks = options.default_clocks;
    table.split = options.split;
    table.all_options = std::move(options.options);
    table.options = plan::ParetoOptions(table, plan::Guard{});
    table.dominated = static_cast<int>(table.all_options.size() - table.options.size());
    pipeline.tables.push_back(std::move(table));
    if (!spec.work.empty() && pipeline.tables.size() * profile.knobs.size() > kMostOptions) {
      return MakeError(
          ErrorCode::kOverflow,
          fmt::format("computations of more than {} kinds and amounts of work, each with {} knobs, "
                      "are too many to plan; round the factors of the work table, so that "
                      "microbatches share them",
                      pipeline.tables.size() - 1, profile.knobs.size()));
    }
  }
  for (Note& note : source.Notes()) pipeline.notes.push_back(std::move(note));
  pipeline.modelled = profile.modelled;
  pipeline.errors = profile.errors;
  pipeline.split_ratio = spec.split_ratio;
  pipeline.dag = std::move(dag);
  if (auto note = model::DefaultClockNote(pipeline, profile.source)) {
    pipeline.notes.push_back(*std::move(note));
  }
  return pipeline;
}

}  // namespace v0
}  // namespace perseus
