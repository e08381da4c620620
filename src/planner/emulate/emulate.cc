// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/emulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/input_limits.h"
#include "emulate/pipeline_replay.h"
#include "emulate/straggler_text.h"
#include "model/noise.h"
#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/result.h"
#include "switching/clock_replay.h"

namespace perseus::emulate {
namespace {

// Limit of ranks over all pipelines. Each needs about 100 bytes.
constexpr std::int64_t kMostRanks = 4'000'000;
// Limits of the values in a power trace. If the user gave no interval, it is lengthened so that the
// trace has at most the first number.
constexpr std::int64_t kAdvisedPowerValues = 1'000'000;
constexpr std::int64_t kMostPowerValues = 10'000'000;
// Limit of all times in the input.
constexpr double kMostSeconds = 1e9;

Result<void> CheckNumber(std::string_view what, double value, double least, double most) {
  if (value >= least && value <= most) return {};
  return InvalidInput(fmt::format("{} is {}; expected {} to {}", what, value, least, most));
}

Result<void> CheckCount(std::string_view what, std::int64_t value, std::int64_t least,
                        std::int64_t most) {
  if (value >= least && value <= most) return {};
  return InvalidInput(fmt::format("{} is {}; expected {} to {}", what, value, least, most));
}

Result<void> CheckKind(const CostedPipeline& pipeline, StragglerKind kind, double value,
                       const std::string& what) {
  if (StragglerKindName(kind) == "?") {
    return InvalidInput(
        fmt::format("{}: its kind is none; expected slow, clock, power or stall", what));
  }
  if (kind == StragglerKind::kClockCap && !pipeline.knobs_are_numbers) {
    return InvalidInput(
        fmt::format("{}: a limit in MHz needs a profile whose knobs are clocks, but its knobs are "
                    "labels; use slow= or power=",
                    what));
  }
  if (auto r = CheckStragglerValue(kind, value, what); !r) return r;
  return CheckLimit(pipeline, kind, value);
}

Result<void> CheckStraggler(const CostedPipeline& pipeline, const EmulationSpec& spec,
                            const Straggler& straggler) {
  const std::string what =
      fmt::format("straggler '{}'", StragglerText(straggler.kind, straggler.value));
  if (auto r = CheckKind(pipeline, straggler.kind, straggler.value, what); !r) return r;
  if (auto r = CheckCount(what + ": the pipeline", straggler.pipeline, 0, spec.pipelines - 1); !r) {
    return r;
  }
  if (straggler.rank) {
    if (auto r = CheckCount(what + ": the rank", *straggler.rank, 0, pipeline.dag.num_ranks - 1);
        !r) {
      return r;
    }
  }
  if (auto r = CheckCount(what + ": the first iteration", straggler.first_iteration, 0,
                          spec.iterations - 1);
      !r) {
    return r;
  }
  if (straggler.iterations.value_or(1) > 0) return {};
  return InvalidInput(
      fmt::format("{}: the number of iterations is {}; expected at least 1, or none for until the "
                  "end",
                  what, *straggler.iterations));
}

Result<void> CheckSize(const CostedPipeline& pipeline, const EmulationSpec& spec) {
  if (spec.pipelines < 1) {
    return InvalidInput(
        fmt::format("the number of pipelines is {}; expected at least 1", spec.pipelines));
  }
  const std::int64_t ranks = std::int64_t{spec.pipelines} * pipeline.dag.num_ranks;
  if (ranks > kMostRanks) {
    return InvalidInput(fmt::format(
        "{} pipelines of {} ranks are {} ranks; at most {} can be emulated: take fewer pipelines",
        spec.pipelines, pipeline.dag.num_ranks, ranks, kMostRanks));
  }
  if (auto r = CheckCount("the number of iterations", spec.iterations, 1, kMaxIterations); !r) {
    return r;
  }
  if (!(spec.target_seconds > 0 && spec.target_seconds <= kMostSeconds)) {
    return InvalidInput(
        fmt::format("the target time of an iteration is {} s; expected a number "
                    "above 0 and at most {}",
                    spec.target_seconds, kMostSeconds));
  }
  return {};
}

Result<void> CheckRandom(const CostedPipeline& pipeline, const RandomStragglers& random) {
  if (auto r = CheckNumber("the share of GPUs that straggle in a day", random.share_of_gpus_per_day,
                           0, kMostSeconds);
      !r || random.share_of_gpus_per_day == 0) {
    return r;
  }
  if (!(random.duration_seconds > 0 && random.duration_seconds <= kMostSeconds)) {
    return InvalidInput(
        fmt::format("the time that random stragglers last is {} s; expected a "
                    "number above 0 and at most {}",
                    random.duration_seconds, kMostSeconds));
  }
  return CheckKind(pipeline, random.kind, random.value,
                   fmt::format("random stragglers '{}'", StragglerText(random.kind, random.value)));
}

Result<void> CheckOutputs(const EmulationSpec& spec) {
  if (const auto interval = spec.power_interval_seconds) {
    if (!(*interval > 0 && *interval <= kMostSeconds)) {
      return InvalidInput(fmt::format(
          "the interval of the power trace is {} s; expected a number above 0 and at most {}",
          *interval, kMostSeconds));
    }
    if (static_cast<double>(spec.iterations) * spec.target_seconds / *interval >
        static_cast<double>(kMostPowerValues)) {
      return InvalidInput(fmt::format(
          "the interval of the power trace is {} s: the trace would have more than {} values; give "
          "a longer one",
          *interval, kMostPowerValues));
    }
  }
  if (!spec.timeline_iteration) {
    // The emulator chooses.
  } else if (*spec.timeline_iteration < 0 || *spec.timeline_iteration >= spec.iterations) {
    return InvalidInput(fmt::format(
        "the timeline is asked for of iteration {}, but the last one is {}; expected 0 to {}",
        *spec.timeline_iteration, spec.iterations - 1, spec.iterations - 1));
  }
  return CheckCount("the number of pipelines in the timeline", spec.timeline_pipelines, 0,
                    kMostRanks);
}

// Which pipelines straggle in the iteration at hand.
class StragglerCalendar {
 public:
  // Both must outlive it. Precondition: `spec` was checked.
  StragglerCalendar(const CostedPipeline& pipeline, const EmulationSpec& spec);

  // Advances to the next iteration, which starts at `start_seconds`. `last_seconds`: how long the
  // iteration before took.
  void Advance(double start_seconds, double last_seconds);

  // Pipelines whose stragglers changed since the iteration before, each once.
  const std::vector<int>& changed() const { return changed_; }
  // Pipelines that straggle.
  const std::set<int>& straggling() const { return straggling_; }
  // How many stragglers have begun so far.
  std::int64_t came() const { return came_; }
  // By rank; empty for a pipeline that does not straggle.
  std::vector<RankLimits> LimitsOf(int pipeline) const;

 private:
  struct Change {
    std::int64_t iteration = 0;
    int straggler = 0;  // Index into spec.stragglers.
    bool comes = false;
  };

  void DrawRandom(double start_seconds, double last_seconds);

  const CostedPipeline& pipeline_;
  const EmulationSpec& spec_;
  std::int64_t iteration_ = -1;
  std::vector<Change> changes_;  // Of the stragglers that were asked for, by iteration.
  std::size_t next_change_ = 0;
  std::vector<std::vector<int>> there_;     // [pipeline] Those of spec.stragglers, ascending.
  std::vector<double> random_end_seconds_;  // [pipeline x ranks + rank]; negative: none.
  std::vector<int> changed_;
  std::set<int> straggling_;
  std::int64_t came_ = 0;
};

constexpr double kNone = -1;
constexpr double kSecondsPerDay = 86400;

StragglerCalendar::StragglerCalendar(const CostedPipeline& pipeline, const EmulationSpec& spec)
    : pipeline_(pipeline), spec_(spec), there_(spec.pipelines) {
  for (std::size_t i = 0; i < spec.stragglers.size(); ++i) {
    const Straggler& straggler = spec.stragglers[i];
    const int index = static_cast<int>(i);
    changes_.push_back({straggler.first_iteration, index, true});
    // The subtraction cannot overflow, the sum of both could.
    if (straggler.iterations &&
        *straggler.iterations < spec.iterations - straggler.first_iteration) {
      changes_.push_back({straggler.first_iteration + *straggler.iterations, index, false});
    }
  }
  std::stable_sort(changes_.begin(), changes_.end(),
                   [](const Change& a, const Change& b) { return a.iteration < b.iteration; });
  if (spec.random_stragglers.share_of_gpus_per_day > 0) {
    random_end_seconds_.assign(static_cast<std::size_t>(spec.pipelines) * pipeline.dag.num_ranks,
                               kNone);
  }
}

void StragglerCalendar::Advance(double start_seconds, double last_seconds) {
  ++iteration_;
  changed_.clear();
  for (; next_change_ < changes_.size() && changes_[next_change_].iteration <= iteration_;
       ++next_change_) {
    const Change& change = changes_[next_change_];
    const int pipeline = spec_.stragglers[change.straggler].pipeline;
    std::vector<int>& there = there_[pipeline];
    const auto place = std::lower_bound(there.begin(), there.end(), change.straggler);
    if (change.comes) {
      there.insert(place, change.straggler);
      ++came_;
    } else {
      there.erase(place);
    }
    changed_.push_back(pipeline);
  }
  if (!random_end_seconds_.empty()) DrawRandom(start_seconds, last_seconds);
  std::sort(changed_.begin(), changed_.end());
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  for (const int p : changed_) {
    if (LimitsOf(p).empty()) {
      straggling_.erase(p);
    } else {
      straggling_.insert(p);
    }
  }
}

void StragglerCalendar::DrawRandom(double start_seconds, double last_seconds) {
  const RandomStragglers& random = spec_.random_stragglers;
  const double probability =
      std::min(1.0, random.share_of_gpus_per_day * pipeline_.tensor_parallel * last_seconds /
                        kSecondsPerDay);
  const WordHash seed = WordHash(spec_.seed).With(model::kStragglerDraw);
  std::size_t slot = 0;
  for (int p = 0; p < spec_.pipelines; ++p) {
    const WordHash of_pipeline = seed.With(p);
    for (int rank = 0; rank < pipeline_.dag.num_ranks; ++rank, ++slot) {
      double& end = random_end_seconds_[slot];
      if (end >= 0 && end <= start_seconds) {
        end = kNone;
        changed_.push_back(p);
      }
      if (end < 0 && of_pipeline.With(rank).With(iteration_).Share() < probability) {
        end = start_seconds + random.duration_seconds;
        ++came_;
        changed_.push_back(p);
      }
    }
  }
}

std::vector<RankLimits> StragglerCalendar::LimitsOf(int pipeline) const {
  const int ranks = pipeline_.dag.num_ranks;
  std::vector<RankLimits> limits;
  for (const int index : there_[pipeline]) {
    const Straggler& straggler = spec_.stragglers[index];
    limits.resize(ranks);
    if (straggler.rank) {
      limits[*straggler.rank].Add(straggler.kind, straggler.value);
    } else if (straggler.kind == StragglerKind::kDataStall) {
      limits[0].Add(straggler.kind, straggler.value);
    } else {
      for (RankLimits& rank : limits) rank.Add(straggler.kind, straggler.value);
    }
  }
  if (random_end_seconds_.empty()) return limits;
  for (int rank = 0; rank < ranks; ++rank) {
    if (random_end_seconds_[static_cast<std::size_t>(pipeline) * ranks + rank] < 0) continue;
    limits.resize(ranks);
    limits[rank].Add(spec_.random_stragglers.kind, spec_.random_stragglers.value);
  }
  return limits;
}

constexpr int kBasePlan = 0;

// The plan that the pipelines without stragglers follow.
struct Reaction {
  double target_seconds = 0;
  int plan = kBasePlan;
};

// Chooses the plan of the pipelines without stragglers, from what is known about stragglers so far.
class PlanChooser {
 public:
  // All must outlive it. Precondition: `spec` was checked.
  PlanChooser(const Policy& policy, const EmulationSpec& spec, const CostedPipeline& pipeline)
      : policy_(policy), spec_(spec), pipeline_(pipeline) {}

  // Makes the base plan. Once, before all others.
  Result<void> Begin();

  // An iteration starts. `slowest_seconds`: nominal time of its slowest straggling pipeline; 0:
  // there is none. Returns what the other pipelines follow.
  Result<Reaction> React(double start_seconds, double slowest_seconds);

  const Plan& plan(int index) const { return plans_[index]; }

 private:
  struct Affairs {
    double start_seconds = 0;
    double slowest_seconds = 0;
  };

  Result<Plan> MakePlan(double seconds) const;

  const Policy& policy_;
  const EmulationSpec& spec_;
  const CostedPipeline& pipeline_;
  std::deque<Affairs> affairs_;  // Changes of stragglers, from the newest one that is known.
  std::deque<Plan> plans_;
  std::map<double, Reaction> reactions_;  // By T'.
};

Result<Plan> PlanChooser::MakePlan(double seconds) const {
  Result<Plan> plan = policy_.PlanFor(seconds);
  if (!plan) return plan;
  if (auto good = CheckPlan(pipeline_, *plan); !good) {
    good.error().message = fmt::format("the policy {}: {}", policy_.name(), good.error().message);
    return tl::unexpected(good.error());
  }
  return plan;
}

Result<void> PlanChooser::Begin() {
  Result<Plan> base = MakePlan(spec_.target_seconds);
  if (!base) return tl::unexpected(base.error());
  plans_.push_back(*std::move(base));
  return {};
}

Result<Reaction> PlanChooser::React(double start_seconds, double slowest_seconds) {
  const Reaction base = {.target_seconds = spec_.target_seconds, .plan = kBasePlan};
  if (!spec_.control.reacts || !policy_.reacts()) return base;
  if (affairs_.empty() || affairs_.back().slowest_seconds != slowest_seconds) {
    affairs_.push_back({start_seconds, slowest_seconds});
  }
  const double known_until = start_seconds - spec_.control.delay_seconds;
  while (affairs_.size() > 1 && affairs_[1].start_seconds <= known_until) affairs_.pop_front();
  if (affairs_.front().start_seconds > known_until) return base;

  double target = affairs_.front().slowest_seconds;
  if (spec_.random_stragglers.share_of_gpus_per_day > 0) {
    // Ranks fail in many combinations; steps of 0.1 % bound the number of plans.
    target = spec_.target_seconds * std::floor(1000 * target / spec_.target_seconds) / 1000;
  }
  if (target <= spec_.target_seconds) return base;
  const auto known = reactions_.find(target);
  if (known != reactions_.end()) return known->second;
  Result<Plan> plan = MakePlan(target);
  Reaction reaction = base;
  if (plan) {
    reaction = {.target_seconds = target, .plan = static_cast<int>(plans_.size())};
    plans_.push_back(*std::move(plan));
  } else if (plan.error().code != ErrorCode::kInfeasible) {
    return tl::unexpected(plan.error());
  }
  reactions_.emplace(target, reaction);
  return reaction;
}

// Divides the energy of one pipeline in one iteration by what it was used for
// (docs/explanation/emulation.md, "Energy").
class EnergySplitter {
 public:
  // `planner` must outlive it.
  explicit EnergySplitter(const Planner& planner);

  EnergySplit Split(const LimitedPlan& plan, const RunTotals& run, double job_seconds) const;

 private:
  // E(t) - P t: the least energy of the computations of a plan with this iteration time, minus
  // blocking power times this time.
  double LeastEffectiveJoules(double seconds) const;

  const Frontier& frontier_;
  double blocking_watts_;
};

// A sum with compensated rounding errors (Neumaier 1974).
class ExactSum {
 public:
  void Add(double value);
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

EnergySplitter::EnergySplitter(const Planner& planner)
    : frontier_(planner.lower_bound()),
      blocking_watts_(planner.pipeline().total_blocking_power_watts) {}

double EnergySplitter::LeastEffectiveJoules(double seconds) const {
  // A plan's own replay may end below the frontier by rounding; beyond its end
  // nothing changes.
  const double within = std::clamp(seconds, frontier_.points.front().iteration_time_seconds,
                                   frontier_.points.back().iteration_time_seconds);
  return frontier_.EnergyAt(within) - blocking_watts_ * within;
}

EnergySplit EnergySplitter::Split(const LimitedPlan& plan, const RunTotals& run,
                                  double job_seconds) const {
  const double dearer =
      plan.computing_joules > 0 ? run.computing_joules / plan.computing_joules : 1;
  const double stretch = std::max(1.0, run.time_seconds / plan.time_seconds);
  const double best_in_same_time = LeastEffectiveJoules(plan.time_seconds);
  const double best_in_job_time =
      LeastEffectiveJoules(std::max(plan.time_seconds, job_seconds / stretch));
  EnergySplit split;
  split.intrinsic_bloat_joules =
      dearer * ((plan.computing_joules - plan.busy_joules) - best_in_same_time);
  split.extrinsic_bloat_joules = dearer * (best_in_same_time - best_in_job_time);
  split.useful_joules =
      run.computing_joules - split.intrinsic_bloat_joules - split.extrinsic_bloat_joules;
  split.blocking_joules =
      blocking_watts_ * job_seconds - run.busy_joules + run.dearer_waiting_joules;
  return split;
}

void ExactSum::Add(double value) {
  const double sum = sum_ + value;
  lost_ += std::fabs(sum_) >= std::fabs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
  sum_ = sum;
}

// Adds up the power of a job over time. Its work is proportional to the number of segments plus the
// number of values, and does not depend on the length of segments.
class PowerTraceBuilder {
 public:
  // `may_lengthen`: whether to double the interval if there would be more than `most_values`
  // values.
  PowerTraceBuilder(double interval_seconds, bool may_lengthen, std::int64_t most_values);

  // Times of the next segments count from `start_seconds`, which must not decrease.
  void BeginIteration(double start_seconds);

  // Adds `copies` of segments, none of which ends after `last_end_seconds`. False
  // where the trace would have too many values.
  bool Add(std::span<const PowerSegment> segments, double last_end_seconds, double copies);

  // Ends the trace at `seconds`; the last value is the mean over a whole interval.
  PowerTrace Finish(double seconds);

 private:
  bool MakeRoom(double end_seconds);
  void SpreadWatts();
  void Lengthen();

  double interval_seconds_;
  bool may_lengthen_;
  std::int64_t most_values_;
  double start_seconds_ = 0;  // Of the iteration.
  // The iteration begins in value `first_`, `offset_` seconds from its start.
  std::int64_t first_ = 0;
  double offset_seconds_ = 0;
  std::vector<double> joules_;      // Of intervals that segments cover in part.
  std::vector<double> watts_step_;  // Where segments begin and end to cover whole intervals.
};

// An end that rounding puts behind the end of an interval begins no other.
constexpr double kSameTime = 1e-12;

PowerTraceBuilder::PowerTraceBuilder(double interval_seconds, bool may_lengthen,
                                     std::int64_t most_values)
    : interval_seconds_(interval_seconds), may_lengthen_(may_lengthen), most_values_(most_values) {}

void PowerTraceBuilder::BeginIteration(double start_seconds) {
  start_seconds_ = start_seconds;
  // Places within the iteration are small numbers: no digits are lost late in a
  // long job.
  first_ = static_cast<std::int64_t>(start_seconds / interval_seconds_);
  offset_seconds_ = start_seconds - static_cast<double>(first_) * interval_seconds_;
}

bool PowerTraceBuilder::Add(std::span<const PowerSegment> segments, double last_end_seconds,
                            double copies) {
  if (!MakeRoom(start_seconds_ + last_end_seconds)) return false;
  const double per_second = 1 / interval_seconds_;
  double* const joules = joules_.data() + first_;
  double* const watts_step = watts_step_.data() + first_;
  for (const PowerSegment& segment : segments) {
    const double start = offset_seconds_ + segment.start_seconds;
    const double end = offset_seconds_ + segment.end_seconds;
    const double watts = copies * segment.watts;
    const auto a = static_cast<std::int64_t>(start * per_second);
    const auto b = static_cast<std::int64_t>(end * per_second);
    if (a == b) {
      joules[a] += watts * (end - start);
      continue;
    }
    joules[a] += watts * (static_cast<double>(a + 1) * interval_seconds_ - start);
    joules[b] += watts * (end - static_cast<double>(b) * interval_seconds_);
    watts_step[a + 1] += watts;
    watts_step[b] -= watts;
  }
  return true;
}

bool PowerTraceBuilder::MakeRoom(double end_seconds) {
  // One more for where rounding puts an end.
  while (end_seconds / interval_seconds_ + 2 > static_cast<double>(most_values_)) {
    if (!may_lengthen_) return false;
    Lengthen();
  }
  const auto needed = static_cast<std::size_t>(end_seconds / interval_seconds_) + 3;
  if (needed > joules_.size()) {
    const std::size_t size = std::max(needed, 2 * joules_.size());
    joules_.resize(size, 0);
    watts_step_.resize(size, 0);
  }
  return true;
}

void PowerTraceBuilder::SpreadWatts() {
  double watts = 0;
  for (std::size_t k = 0; k < joules_.size(); ++k) {
    watts += watts_step_[k];
    watts_step_[k] = 0;
    joules_[k] += watts * interval_seconds_;
  }
}

void PowerTraceBuilder::Lengthen() {
  SpreadWatts();
  for (std::size_t k = 0; k < joules_.size(); ++k) {
    const double joules = joules_[k];
    joules_[k] = 0;
    joules_[k / 2] += joules;
  }
  interval_seconds_ *= 2;
  BeginIteration(start_seconds_);
}

PowerTrace PowerTraceBuilder::Finish(double seconds) {
  SpreadWatts();
  const auto values = static_cast<std::size_t>(
      std::max(1.0, std::ceil(seconds / interval_seconds_ * (1 - kSameTime))));
  joules_.resize(std::max(values, joules_.size()), 0);
  // Move energy that rounding put behind the end into the last value.
  for (std::size_t k = values; k < joules_.size(); ++k) joules_[values - 1] += joules_[k];
  PowerTrace trace;
  trace.interval_seconds = interval_seconds_;
  trace.watts.reserve(values);
  for (std::size_t k = 0; k < values; ++k) {
    trace.watts.push_back(std::max(0.0, joules_[k]) / interval_seconds_);  // Not -0 W by rounding.
  }
  return trace;
}

// Pipelines with equal keys have the same replay of an iteration, unless each computation has its
// own noise.
struct ReplayKey {
  int pipeline = 0;  // 0 unless GPUs differ.
  int plan = 0;      // LimitedPlan::serial
  std::vector<switching::ClockState> clocks;
  std::int64_t forecast = 0;  // Number of the Forecast. 0: calls are not predicted.

  friend auto operator<=>(const ReplayKey&, const ReplayKey&) = default;
};

// A cache of replays of all iterations, within the memory limit.
class KeptRuns {
 public:
  explicit KeptRuns(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // nullptr: not in the cache. The result lives until MakeRoom() or Clear().
  const PipelineRun* Find(const ReplayKey& key) const {
    const auto found = runs_.find(key);
    return found == runs_.end() ? nullptr : &found->second;
  }

  void Keep(ReplayKey key, const PipelineRun& run) {
    if (bytes_ > most_bytes_) return;
    bytes_ += sizeof(ReplayKey) + sizeof(PipelineRun) + run.segments.size() * sizeof(PowerSegment) +
              (key.clocks.size() + run.clocks.size()) * sizeof(switching::ClockState) +
              run.last_ends.size() * sizeof(double) +
              run.forecast.rows.size() * sizeof(switching::Row);
    runs_.emplace(std::move(key), run);
  }

  // Drops all replays if there is no room for another.
  void MakeRoom() {
    if (bytes_ > most_bytes_) Clear();
  }
  void Clear() {
    runs_.clear();
    bytes_ = 0;
  }

 private:
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::map<ReplayKey, PipelineRun> runs_;
};

// Longer ones are certainly a mistake, and their seconds lose digits.
constexpr double kLongestIteration = 1e12;

// Pipelines that do the same thing in the iteration at hand.
struct Group {
  const LimitedPlan* plan = nullptr;
  int first = 0;  // Of its pipelines.
  int copies = 1;
  RunTotals totals = {};
  switching::Forecast learned = {};  // Where calls are predicted.
};

// The forecast of a pipeline's clients, and a number that tells it from others.
struct NumberedForecast {
  std::int64_t number = 1;
  switching::Forecast forecast;
};

double PowerInterval(const EmulationSpec& spec) {
  constexpr double kShareOfTarget = 0.01;
  return spec.power_interval_seconds.value_or(kShareOfTarget * spec.target_seconds);
}

// One emulation, iteration by iteration.
class JobEmulation {
 public:
  JobEmulation(std::size_t most_kept_bytes, const Planner& planner, const Policy& policy,
               const EmulationSpec& spec)
      : most_kept_bytes_(most_kept_bytes),
        pipeline_(planner.pipeline()),
        ranks_(pipeline_.dag.num_ranks),
        spec_(spec),
        noise_(model::DrawFixedNoise(pipeline_, spec.noise, spec.pipelines, spec.seed)),
        options_(pipeline_, noise_),
        limited_plans_(pipeline_, options_, spec.switching),
        calendar_(pipeline_, spec),
        chooser_(policy, spec, pipeline_),
        splitter_(planner),
        rules_(spec.switching, pipeline_),
        replay_(pipeline_, spec, options_, noise_),
        power_(PowerInterval(spec), !spec.power_interval_seconds,
               spec.power_interval_seconds ? kMostPowerValues : kAdvisedPowerValues),
        straggler_plans_(spec.pipelines),
        before_(static_cast<std::size_t>(spec.pipelines) * ranks_),
        after_(before_.size()),
        last_ends_(pipeline_.waiting_depends_on_clock() ? before_.size() : 0),
        group_of_(spec.pipelines),
        kept_runs_(most_kept_bytes) {}

  Result<Emulation> Run(const ProgressFunction& progress);

 private:
  Result<void> Step(std::int64_t iteration);
  void UpdateStragglers();
  const LimitedPlan& PlanOf(int pipeline) const {
    const LimitedPlan* plan = straggler_plans_[pipeline];
    return plan != nullptr ? *plan : *healthy_;
  }
  void MakeGroups();
  const PipelineRun& RunOf(const Group& group, std::int64_t iteration);
  Result<void> AddPower(std::span<const PowerSegment> segments, double seconds, int copies);
  void StartClocks();
  Result<void> EndClocks(std::int64_t iteration, double iteration_seconds);
  void EndForecasts(double iteration_seconds);
  void AddRecord(const Reaction& reaction, double iteration_seconds);
  void KeepTimeline(std::int64_t iteration, double iteration_seconds);
  void Finish();

  std::span<const switching::ClockState> ClocksBefore(int pipeline) const {
    return {before_.data() + static_cast<std::size_t>(pipeline) * ranks_,
            static_cast<std::size_t>(ranks_)};
  }
  std::int64_t ForecastNumber(int pipeline) const {
    return forecasts_.empty() ? 0 : forecasts_[pipeline]->number;
  }
  const switching::Forecast* ForecastOf(int pipeline) const {
    return forecasts_.empty() ? nullptr : &forecasts_[pipeline]->forecast;
  }
  void KeepClocks(int pipeline, const PipelineRun& run) {
    const auto at = static_cast<std::ptrdiff_t>(pipeline) * ranks_;
    std::copy(run.clocks.begin(), run.clocks.end(), after_.begin() + at);
    std::copy(run.last_ends.begin(), run.last_ends.end(), last_ends_.begin() + at);
  }
  void CopyClocks(int from, int to) {
    if (from == to) return;
    const auto copy = [&](auto& values) {
      if (values.empty()) return;
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from) * ranks_, ranks_,
                  values.begin() + static_cast<std::ptrdiff_t>(to) * ranks_);
    };
    copy(after_);
    copy(last_ends_);
  }

  std::size_t most_kept_bytes_;
  const CostedPipeline& pipeline_;
  int ranks_;
  const EmulationSpec& spec_;
  model::FixedNoise noise_;
  OptionsByKnob options_;
  LimitedPlans limited_plans_;
  StragglerCalendar calendar_;
  PlanChooser chooser_;
  EnergySplitter splitter_;
  switching::SwitchingRules rules_;
  PipelineReplay replay_;
  PowerTraceBuilder power_;

  std::vector<const LimitedPlan*> straggler_plans_;  // [pipeline]; nullptr: does not straggle.
  const LimitedPlan* healthy_ = nullptr;             // Of all others.
  std::vector<switching::ClockState> before_;        // [pipeline x ranks + rank]
  std::vector<switching::ClockState> after_;
  // Of each rank's last computation; empty where what waiting draws is constant.
  std::vector<double> last_ends_;
  double dearer_joules_ = 0;  // Of waits after last computations; in this iteration.
  // [pipeline]; empty where calls are not predicted.
  std::vector<std::shared_ptr<const NumberedForecast>> forecasts_;
  std::int64_t last_forecast_ = 1;
  std::vector<Group> groups_;  // By first pipeline.
  std::vector<int> group_of_;  // [pipeline]
  KeptRuns kept_runs_;
  PipelineRun run_;  // The last replay.

  int last_plan_ = kBasePlan;
  bool timeline_straggles_ = false;
  ExactSum useful_, intrinsic_, extrinsic_, blocking_;
  Emulation emulation_;
};

Result<Emulation> JobEmulation::Run(const ProgressFunction& progress) {
  if (auto begun = chooser_.Begin(); !begun) return tl::unexpected(begun.error());
  emulation_.iterations.reserve(spec_.iterations);
  for (std::int64_t n = 0; n < spec_.iterations; ++n) {
    if (auto stepped = Step(n); !stepped) return tl::unexpected(stepped.error());
    const std::int64_t percent = 100 * (n + 1) / spec_.iterations;
    if (progress && percent != 100 * n / spec_.iterations &&
        !progress({.share = static_cast<double>(percent) / 100})) {
      return MakeError(ErrorCode::kCancelled, "the emulation was cancelled");
    }
  }
  Finish();
  return std::move(emulation_);
}

Result<void> JobEmulation::Step(std::int64_t iteration) {
  const double start = emulation_.time_seconds;
  const double last = emulation_.iterations.empty() ? spec_.target_seconds
                                                    : emulation_.iterations.back().time_seconds;
  calendar_.Advance(start, last);
  UpdateStragglers();
  double slowest = 0;
  for (const int p : calendar_.straggling()) {
    slowest = std::max(slowest, straggler_plans_[p]->nominal_seconds);
  }
  const Result<Reaction> reaction = chooser_.React(start, slowest);
  if (!reaction) return tl::unexpected(reaction.error());
  if (reaction->plan != last_plan_) ++emulation_.replans;
  last_plan_ = reaction->plan;
  healthy_ = &limited_plans_.Get(reaction->plan, chooser_.plan(reaction->plan), {});
  if (iteration == 0) StartClocks();

  if (spec_.power_over_time) {
    power_.BeginIteration(start);
  }
  MakeGroups();
  double seconds = 0;
  for (Group& group : groups_) {
    const PipelineRun& run = RunOf(group, iteration);
    group.totals = run.totals;
    if (!forecasts_.empty()) group.learned = run.forecast;
    KeepClocks(group.first, run);
    seconds = std::max(seconds, run.totals.time_seconds);
    auto added = AddPower(run.segments, run.totals.time_seconds, group.copies);
    if (!added) return added;
  }
  for (int p = 0; p < spec_.pipelines; ++p) CopyClocks(groups_[group_of_[p]].first, p);
  const PowerSegment waiting = {
      .end_seconds = seconds,
      .watts = pipeline_.total_blocking_power_watts * static_cast<double>(spec_.pipelines)};
  if (auto added = AddPower({&waiting, 1}, seconds, 1); !added) return added;
  KeepTimeline(iteration, seconds);
  if (auto ended = EndClocks(iteration, seconds); !ended) return ended;
  EndForecasts(seconds);
  AddRecord(*reaction, seconds);
  return {};
}

// Keeps `straggler_plans_` up to date. Whoever straggles follows the base plan.
void JobEmulation::UpdateStragglers() {
  const std::size_t plan_bytes = pipeline_.dag.computations.size() * sizeof(LimitedComputation);
  // Those in use must be there, so only where most are not in use.
  const bool full = limited_plans_.size() * plan_bytes > most_kept_bytes_ &&
                    limited_plans_.size() > 2 * (calendar_.straggling().size() + 1);
  if (full) {
    limited_plans_.Clear();
    kept_runs_.Clear();  // Their plans have new serials.
  }
  kept_runs_.MakeRoom();
  const auto update = [this](int p) {
    const std::vector<RankLimits> limits = calendar_.LimitsOf(p);
    straggler_plans_[p] =
        limits.empty() ? nullptr : &limited_plans_.Get(kBasePlan, chooser_.plan(kBasePlan), limits);
  };
  for (const int p : calendar_.changed()) update(p);
  if (full) {
    for (const int p : calendar_.straggling()) update(p);
  }
}

// Before the first iteration every rank has the clock of its first computation.
void JobEmulation::StartClocks() {
  for (int p = 0; p < spec_.pipelines; ++p) {
    for (int rank = 0; rank < ranks_; ++rank) {
      before_[static_cast<std::size_t>(p) * ranks_ + rank] =
          switching::SettledAt(PlanOf(p).rows->KnobsOf(rank).front());
    }
  }
  if (rules_.late() && rules_.predicts()) {
    forecasts_.assign(spec_.pipelines, std::make_shared<const NumberedForecast>());
  }
}

Result<void> JobEmulation::AddPower(std::span<const PowerSegment> segments, double seconds,
                                    int copies) {
  if (!(seconds <= kLongestIteration)) {
    return InvalidInput(
        fmt::format("iteration {} takes {:.3g} s; at most {:g} s can be emulated: the stragglers "
                    "are too slow",
                    emulation_.iterations.size(), seconds, kLongestIteration));
  }
  if (!spec_.power_over_time) return {};
  if (power_.Add(segments, seconds, copies)) return {};
  return InvalidInput(
      fmt::format("the interval of the power trace is {} s: the trace would have more than {} "
                  "values; give a longer one",
                  PowerInterval(spec_), kMostPowerValues));
}

// Which pipelines do the same thing: those of one plan whose clocks and
// forecasts are alike, unless chance tells all of them apart.
void JobEmulation::MakeGroups() {
  const bool all_differ = spec_.noise.each_iteration() || spec_.noise.per_gpu > 0 ||
                          spec_.switching.latency_spread_seconds > 0;
  const auto alike = [this](int p, int q) {
    const auto a = ClocksBefore(p);
    return &PlanOf(p) == &PlanOf(q) && ForecastNumber(p) == ForecastNumber(q) &&
           std::equal(a.begin(), a.end(), ClocksBefore(q).begin());
  };
  const auto less = [this](int p, int q) {
    const int plan = PlanOf(p).serial;
    const int other = PlanOf(q).serial;
    if (plan != other) return plan < other;
    if (ForecastNumber(p) != ForecastNumber(q)) return ForecastNumber(p) < ForecastNumber(q);
    const auto a = ClocksBefore(p);
    const auto b = ClocksBefore(q);
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  };
  std::map<int, int, decltype(less)> known(less);  // First pipeline -> group.
  groups_.clear();
  for (int p = 0; p < spec_.pipelines; ++p) {
    int group = static_cast<int>(groups_.size());
    if (!all_differ) {
      // Most are like the one before.
      group =
          p > 0 && alike(p, p - 1) ? group_of_[p - 1] : known.try_emplace(p, group).first->second;
    }
    group_of_[p] = group;
    if (group < static_cast<int>(groups_.size())) {
      ++groups_[group].copies;
    } else {
      groups_.push_back({.plan = &PlanOf(p), .first = p});
    }
  }
}

// The run of a group. It is kept for other iterations, as far as there is room, unless chance makes
// every iteration another.
const PipelineRun& JobEmulation::RunOf(const Group& group, std::int64_t iteration) {
  const auto clocks = ClocksBefore(group.first);
  const bool keep = !spec_.noise.each_iteration() && spec_.switching.latency_spread_seconds == 0;
  ReplayKey key;
  if (keep) {
    key = {.pipeline = spec_.noise.per_gpu > 0 ? group.first : 0,
           .plan = group.plan->serial,
           .clocks = {clocks.begin(), clocks.end()},
           .forecast = ForecastNumber(group.first)};
    if (const PipelineRun* known = kept_runs_.Find(key)) return *known;
  }
  replay_.Run(*group.plan, group.first, iteration, clocks, ForecastOf(group.first), &run_);
  ++emulation_.replayed_pipelines;
  if (keep) kept_runs_.Keep(std::move(key), run_);
  return run_;
}

// The clocks of the next iteration's start, and what ranks draw until then.
Result<void> JobEmulation::EndClocks(std::int64_t iteration, double iteration_seconds) {
  std::swap(before_, after_);
  dearer_joules_ = 0;
  if (!rules_.late() && last_ends_.empty()) return {};
  std::vector<PowerSegment> segments;
  for (int p = 0; p < spec_.pipelines; ++p) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::size_t of = static_cast<std::size_t>(p) * ranks_ + rank;
      switching::ClockState& clock = before_[of];
      const double since = last_ends_.empty() ? iteration_seconds : last_ends_[of];
      const auto waited = [&](int knob, double from, double to) {
        const double watts = pipeline_.DearerWatts(rank, knob);
        if (watts == 0) return;
        dearer_joules_ += watts * (to - from);
        segments.push_back({from, to, watts});
      };
      if (rules_.late()) {
        emulation_.clock_calls +=
            switching::EndIteration(rules_, model::LatencyDraws(spec_.seed, p, iteration, rank),
                                    since, iteration_seconds, &clock, waited);
      } else if (PlanOf(p).waiting == Waiting::kSetClock && iteration_seconds > since) {
        waited(clock.in_effect, since, iteration_seconds);
      }
    }
  }
  return AddPower(segments, iteration_seconds, 1);
}

// Updates the clients' forecasts of the next iteration. Clients that learn nothing new keep theirs,
// so that their replays are known.
void JobEmulation::EndForecasts(double iteration_seconds) {
  if (forecasts_.empty()) return;
  std::vector<std::shared_ptr<const NumberedForecast>> of_group;
  for (Group& group : groups_) {
    group.learned.EndIteration(iteration_seconds);
    const std::shared_ptr<const NumberedForecast>& old = forecasts_[group.first];
    if (group.learned == old->forecast) {
      of_group.push_back(old);
    } else {
      of_group.push_back(std::make_shared<const NumberedForecast>(
          NumberedForecast{++last_forecast_, std::move(group.learned)}));
    }
  }
  for (int p = 0; p < spec_.pipelines; ++p) forecasts_[p] = of_group[group_of_[p]];
}

void JobEmulation::AddRecord(const Reaction& reaction, double iteration_seconds) {
  IterationRecord record;
  record.start_seconds = emulation_.time_seconds;
  record.time_seconds = iteration_seconds;
  record.target_seconds = reaction.target_seconds;
  record.straggling_pipelines = static_cast<int>(calendar_.straggling().size());
  for (const Group& group : groups_) {
    const EnergySplit split = splitter_.Split(*group.plan, group.totals, iteration_seconds);
    record.energy.useful_joules += group.copies * split.useful_joules;
    record.energy.intrinsic_bloat_joules += group.copies * split.intrinsic_bloat_joules;
    record.energy.extrinsic_bloat_joules += group.copies * split.extrinsic_bloat_joules;
    record.energy.blocking_joules += group.copies * split.blocking_joules;
    emulation_.clock_calls += group.copies * group.totals.clock_calls;
    emulation_.late_computations += group.copies * group.totals.late_computations;
    emulation_.gpu_peak_watts = std::max(emulation_.gpu_peak_watts, group.totals.peak_gpu_watts);
  }
  record.energy.blocking_joules += dearer_joules_;
  useful_.Add(record.energy.useful_joules);
  intrinsic_.Add(record.energy.intrinsic_bloat_joules);
  extrinsic_.Add(record.energy.extrinsic_bloat_joules);
  blocking_.Add(record.energy.blocking_joules);
  emulation_.time_seconds += iteration_seconds;
  emulation_.iterations.push_back(record);
}

// Replays the pipelines of the timeline again, if this is its iteration.
void JobEmulation::KeepTimeline(std::int64_t iteration, double iteration_seconds) {
  const std::set<int>& straggling = calendar_.straggling();
  if (spec_.timeline_iteration) {
    if (iteration != *spec_.timeline_iteration) return;
  } else if (iteration > 0 && (timeline_straggles_ || straggling.empty())) {
    return;
  }
  timeline_straggles_ = !straggling.empty();
  EmulatedTimeline& timeline = emulation_.timeline;
  timeline = {};
  timeline.iteration = iteration;
  timeline.time_seconds = iteration_seconds;
  const auto keep = [&](int p) {
    const LimitedPlan& plan = PlanOf(p);
    replay_.Run(plan, p, iteration, ClocksBefore(p), ForecastOf(p), &run_);
    EmulatedPipeline kept;
    kept.pipeline = p;
    kept.straggles = plan.straggles;
    kept.waiting = plan.waiting;
    kept.end_seconds = run_.totals.time_seconds;
    const Timing& timing = replay_.timing();
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      kept.computations.push_back({.computation = i,
                                   .knob = plan.computations[i].knob,
                                   .start_seconds = timing.start_seconds[i],
                                   .end_seconds = timing.end_seconds[i],
                                   .joules = replay_.joules()[i]});
    }
    timeline.pipelines.push_back(std::move(kept));
  };
  const auto most = static_cast<std::size_t>(spec_.timeline_pipelines);
  for (const int p : straggling) {
    if (timeline.pipelines.size() < most) keep(p);
  }
  for (int p = 0; p < spec_.pipelines && timeline.pipelines.size() < most; ++p) {
    if (!straggling.contains(p)) keep(p);
  }
}

void JobEmulation::Finish() {
  Emulation& emulation = emulation_;
  emulation.energy = {.useful_joules = useful_.value(),
                      .intrinsic_bloat_joules = intrinsic_.value(),
                      .extrinsic_bloat_joules = extrinsic_.value(),
                      .blocking_joules = blocking_.value()};
  emulation.gpus = std::int64_t{spec_.pipelines} * ranks_ * pipeline_.tensor_parallel;
  emulation.average_watts = emulation.energy.total_joules() / emulation.time_seconds;
  emulation.gpu_average_watts = emulation.average_watts / static_cast<double>(emulation.gpus);
  emulation.stragglers = calendar_.came();
  // An interval that reaches beyond the end is no peak, but the mean is one.
  emulation.peak_watts = emulation.average_watts;
  if (!spec_.power_over_time) return;
  emulation.power = power_.Finish(emulation.time_seconds);
  for (const double watts : emulation.power.watts) {
    emulation.peak_watts = std::max(emulation.peak_watts, watts);
  }
}

}  // namespace

Result<void> CheckSpec(const CostedPipeline& pipeline, const EmulationSpec& spec) {
  if (auto r = CheckSize(pipeline, spec); !r) return r;
  if (auto r = model::CheckDisturbances(spec.noise, spec.switching); !r) return r;
  for (const Straggler& straggler : spec.stragglers) {
    if (auto r = CheckStraggler(pipeline, spec, straggler); !r) return r;
  }
  if (auto r = CheckRandom(pipeline, spec.random_stragglers); !r) return r;
  if (auto r =
          CheckNumber("the reaction delay in seconds", spec.control.delay_seconds, 0, kMostSeconds);
      !r) {
    return r;
  }
  return CheckOutputs(spec);
}

Result<Emulation> EmulateWithin(std::size_t most_kept_bytes, const Planner& planner,
                                const Policy& policy, const EmulationSpec& spec,
                                const ProgressFunction& progress) {
  if (auto checked = CheckSpec(planner.pipeline(), spec); !checked) {
    return tl::unexpected(checked.error());
  }
  return JobEmulation(most_kept_bytes, planner, policy, spec).Run(progress);
}

}  // namespace perseus::emulate

namespace perseus {
inline namespace v0 {

Result<Emulation> Emulate(const Planner& planner, const Policy& policy, const EmulationSpec& spec,
                          const ProgressFunction& progress) {
  return emulate::EmulateWithin(emulate::kMostKeptBytes, planner, policy, spec, progress);
}

}  // namespace v0
}  // namespace perseus
