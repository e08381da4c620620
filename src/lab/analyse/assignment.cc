// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "perseus/costed_pipeline.h"
#include "perseus/pipeline.h"

namespace perseus {
inline namespace v0 {
namespace {

constexpr double kSameTime = 1e-12;

// The numbers of a fixed sequence (splitmix64), the same on every machine.
class Draws {
 public:
  int Below(int limit) {
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    x ^= x >> 31U;
    return static_cast<int>(x % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_ = 0;
};

class Analysis {
 public:
  Analysis(const StreamPlanner& stream, const std::vector<double>& lengths,
           const AssignmentSpec& spec)
      : stream_(stream),
        lengths_(lengths),
        spec_(spec),
        slots_(static_cast<int>(lengths.size()) / spec.pipelines) {}

  // Of one pipeline of `order`, all clocks at maximum.
  Result<double> BaselineSeconds(const std::vector<int>& order, int pipeline) const {
    const Result<CostedPipeline> costed = stream_.Cost(WorkOf(order, pipeline));
    if (!costed) return tl::unexpected(costed.error());
    std::vector<double> durations;
    durations.reserve(costed->table_of.size());
    for (const int table : costed->table_of) {
      durations.push_back(costed->tables[table].baseline.time_seconds);
    }
    return Replay(costed->dag, durations).iteration_time_seconds;
  }

  Result<std::vector<double>> BaselineSeconds(const std::vector<int>& order) const {
    std::vector<double> seconds;
    for (int p = 0; p < spec_.pipelines; ++p) {
      const Result<double> own = BaselineSeconds(order, p);
      if (!own) return tl::unexpected(own.error());
      seconds.push_back(*own);
    }
    return seconds;
  }

  // `given_seconds`: of the job as given; 0: this is it.
  Result<AssignmentResult> Figures(std::string name, std::vector<int> order,
                                   double given_seconds) const {
    AssignmentResult result;
    const Result<std::vector<double>> own = BaselineSeconds(order);
    if (!own) return tl::unexpected(own.error());
    result.baseline_seconds = *std::max_element(own->begin(), own->end());
    const double late = std::max(given_seconds, result.baseline_seconds);
    for (int p = 0; p < spec_.pipelines; ++p) {
      const Work work = WorkOf(order, p);
      const auto plan = stream_.PlanFor(work, result.baseline_seconds);
      if (!plan) return tl::unexpected(plan.error());
      const Planner& planner = plan->planner;
      const double waiting = planner.pipeline().total_blocking_power_watts;
      const auto whole = [&](const Plan& each, double seconds) {
        return each.energy_joules + waiting * (seconds - each.iteration_time_seconds);
      };
      result.baseline_joules += whole(planner.baseline(), result.baseline_seconds);
      result.planned_joules += whole(plan->plan, result.baseline_seconds);
      if (late <= result.baseline_seconds * (1 + kSameTime)) {
        result.late_joules += whole(plan->plan, late);
        continue;
      }
      const auto later = planner.PlanFor(late, {.constraints = stream_.options().constraints,
                                                .effort = *stream_.options().effort});
      if (!later) return tl::unexpected(later.error());
      result.late_joules += whole(*later, late);
    }
    result.name = std::move(name);
    result.microbatches = std::move(order);
    return result;
  }

  std::vector<int> AsGiven() const {
    std::vector<int> order(lengths_.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  // Sorted within each pipeline.
  std::vector<int> Sorted(std::vector<int> order, bool longest_first) const {
    for (int p = 0; p < spec_.pipelines; ++p) {
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(p) * slots_;
      std::stable_sort(begin, begin + slots_, [&](int a, int b) {
        return longest_first ? lengths_[a] > lengths_[b] : lengths_[a] < lengths_[b];
      });
    }
    return order;
  }

  // The longest first, each to the pipeline with the least so far that has room;
  // within a pipeline in the order given.
  std::vector<int> Balanced() const {
    std::vector<int> by_length = AsGiven();
    std::stable_sort(by_length.begin(), by_length.end(),
                     [&](int a, int b) { return lengths_[a] > lengths_[b]; });
    std::vector<std::vector<int>> pipelines(static_cast<std::size_t>(spec_.pipelines));
    std::vector<double> sums(pipelines.size(), 0);
    for (const int m : by_length) {
      std::size_t least = pipelines.size();
      for (std::size_t p = 0; p < pipelines.size(); ++p) {
        if (static_cast<int>(pipelines[p].size()) == slots_) continue;
        if (least == pipelines.size() || sums[p] < sums[least]) least = p;
      }
      pipelines[least].push_back(m);
      sums[least] += lengths_[m];
    }
    std::vector<int> order;
    for (std::vector<int>& own : pipelines) {
      std::sort(own.begin(), own.end());
      order.insert(order.end(), own.begin(), own.end());
    }
    return order;
  }

  // Swaps two at a time, at least one of the slowest pipeline; keeps what makes
  // no pipeline of the two later than the slowest was.
  Result<std::vector<int>> Searched(std::vector<int> order,
                                    const ProgressFunction& progress) const {
    Result<std::vector<double>> seconds = BaselineSeconds(order);
    if (!seconds) return tl::unexpected(seconds.error());
    Draws draws;
    const int all = static_cast<int>(order.size());
    for (int k = 0; k < spec_.tries && all > 1; ++k) {
      if (progress && !progress({.share = static_cast<double>(k) / spec_.tries})) {
        return MakeError(ErrorCode::kCancelled, "the search for an assignment was cancelled");
      }
      const auto slowest = std::max_element(seconds->begin(), seconds->end());
      const int p = static_cast<int>(slowest - seconds->begin());
      const int a = p * slots_ + draws.Below(slots_);
      const int b = draws.Below(all);
      if (lengths_[order[a]] == lengths_[order[b]]) continue;
      std::swap(order[a], order[b]);
      const int q = b / slots_;
      const Result<double> first = BaselineSeconds(order, p);
      const Result<double> second = q == p ? first : BaselineSeconds(order, q);
      if (!first || !second) return tl::unexpected((first ? second : first).error());
      if (std::max(*first, *second) < *slowest) {
        (*seconds)[p] = *first;
        (*seconds)[q] = *second;
      } else {
        std::swap(order[a], order[b]);
      }
    }
    return order;
  }

 private:
  Work WorkOf(const std::vector<int>& order, int pipeline) const {
    std::vector<double> factors;
    factors.reserve(slots_);
    for (int slot = 0; slot < slots_; ++slot) {
      factors.push_back(lengths_[order[pipeline * slots_ + slot]]);
    }
    return Work(std::move(factors));
  }

  const StreamPlanner& stream_;
  const std::vector<double>& lengths_;
  const AssignmentSpec& spec_;
  const int slots_;  // Of one pipeline.
};

}  // namespace

Result<std::vector<AssignmentResult>> AnalyseAssignment(const StreamPlanner& stream,
                                                        const std::vector<double>& lengths,
                                                        const AssignmentSpec& spec,
                                                        const ProgressFunction& progress) {
  const std::size_t slots = static_cast<std::size_t>(stream.dag().num_microbatches);
  if (spec.pipelines < 1 || lengths.size() != slots * static_cast<std::size_t>(spec.pipelines)) {
    return InvalidInput(fmt::format(
        "the lengths of {} microbatches are given, but {} of {} microbatches each have {}; give "
        "one for each",
        lengths.size(),
        spec.pipelines == 1 ? "1 pipeline" : fmt::format("{} pipelines", spec.pipelines), slots,
        slots * static_cast<std::size_t>(std::max(spec.pipelines, 0))));
  }
  if (stream.options().target != PlanTarget{}) {
    return InvalidInput(fmt::format(
        "an assignment is planned for the job's time at maximum clocks, not for {}; leave out the "
        "target (--at)",
        PlanTargetText(stream.options().target)));
  }
  const Analysis analysis(stream, lengths, spec);
  std::vector<std::pair<std::string, std::vector<int>>> orders;
  const std::vector<int> given = analysis.AsGiven();
  orders.emplace_back("as given", given);
  orders.emplace_back("longest first", analysis.Sorted(given, true));
  orders.emplace_back("shortest first", analysis.Sorted(given, false));
  if (spec.pipelines > 1) {
    orders.emplace_back("balanced", analysis.Balanced());
    orders.emplace_back("balanced, longest first", analysis.Sorted(analysis.Balanced(), true));
  }
  std::vector<AssignmentResult> results;
  const auto add = [&](const std::string& name, const std::vector<int>& order) -> Result<void> {
    const double given_seconds = results.empty() ? 0 : results.front().baseline_seconds;
    auto figures = analysis.Figures(name, order, given_seconds);
    if (!figures) return tl::unexpected(figures.error());
    results.push_back(*std::move(figures));
    return {};
  };
  for (const auto& [name, order] : orders) {
    if (auto added = add(name, order); !added) return tl::unexpected(added.error());
  }
  if (spec.tries == 0) return results;
  const auto best = std::min_element(
      results.begin(), results.end(),
      [](const auto& a, const auto& b) { return a.baseline_seconds < b.baseline_seconds; });
  const auto searched = analysis.Searched(best->microbatches, progress);
  if (!searched) return tl::unexpected(searched.error());
  if (auto added = add("searched", *searched); !added) return tl::unexpected(added.error());
  return results;
}

}  // namespace v0
}  // namespace perseus
