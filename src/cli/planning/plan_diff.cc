// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/plan_diff.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "cli/planning/checked_plan.h"

namespace perseus::cli {
namespace {

std::string ComputationText(const PlannedComputation& planned) {
  return fmt::format("{} of stage {}, microbatch {}", TypeText(planned.id, planned.fused),
                     planned.id.stage, planned.id.microbatch);
}

// The first thing in which the jobs of the plans differ: its name, and what each has.
struct JobDifference {
  std::string what;
  std::string before;
  std::string after;
};

std::optional<JobDifference> OrderDifference(const PlanDocument& before,
                                             const PlanDocument& after) {
  for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
    const auto& first = before.ranks[rank].computations;
    const auto& second = after.ranks[rank].computations;
    const auto text_at = [](const std::vector<PlannedComputation>& run, std::size_t at) {
      return at < run.size() ? ComputationText(run[at]) : std::string("nothing");
    };
    for (std::size_t i = 0; i < first.size() || i < second.size(); ++i) {
      if (i < first.size() && i < second.size() && first[i].id == second[i].id &&
          first[i].fused == second[i].fused) {
        continue;
      }
      return JobDifference{fmt::format("computation {} of rank {}", i, rank), text_at(first, i),
                           text_at(second, i)};
    }
  }
  return std::nullopt;
}

std::optional<JobDifference> DifferenceOfJobs(const PlanDocument& before,
                                              const PlanDocument& after) {
  const std::pair<std::string_view, int PlanDocument::*> counts[] = {
      {"stages", &PlanDocument::stages},
      {"virtual stages", &PlanDocument::virtual_stages},
      {"microbatches", &PlanDocument::microbatches},
      {"tensor-parallel GPUs a rank", &PlanDocument::tensor_parallel},
  };
  for (const auto& [what, count] : counts) {
    if (before.*count == after.*count) continue;
    return JobDifference{std::string(what), fmt::format("{}", before.*count),
                         fmt::format("{}", after.*count)};
  }
  if (before.knobs_are_numbers != after.knobs_are_numbers) {
    const auto kind = [](const PlanDocument& plan) {
      return std::string(plan.knobs_are_numbers ? "clocks in MHz" : "knobs that are labels");
    };
    return JobDifference{"what is set", kind(before), kind(after)};
  }
  if (before.ranks.size() != after.ranks.size()) {
    return JobDifference{"ranks", fmt::format("{}", before.ranks.size()),
                         fmt::format("{}", after.ranks.size())};
  }
  return OrderDifference(before, after);
}

bool SameKnob(const PlanDocument& plan, const Knob& first, const Knob& second) {
  return plan.knobs_are_numbers ? first.number == second.number : first.label == second.label;
}

bool SameKnob(const PlanDocument& plan, const std::optional<Knob>& first,
              const std::optional<Knob>& second) {
  if (!first || !second) return first.has_value() == second.has_value();
  return SameKnob(plan, *first, *second);
}

void Count(const PlanDocument& plan, const Knob& before, const Knob& after, Moved* moved) {
  ++moved->of;
  if (SameKnob(plan, before, after)) return;
  ++moved->moved;
  if (!plan.knobs_are_numbers) return;
  ++(after.number < before.number ? moved->lower : moved->higher);
}

}  // namespace

Result<PlanDiff> ComparePlans(const NamedPlan& before, const NamedPlan& after) {
  const PlanDocument& old_plan = *before.plan;
  const PlanDocument& new_plan = *after.plan;
  if (const auto difference = DifferenceOfJobs(old_plan, new_plan)) {
    return InvalidInput(fmt::format(
        "{} and {} are plans of different jobs ({}: {} and {}); give two plans of one job",
        before.name, after.name, difference->what, difference->before, difference->after));
  }
  PlanDiff diff;
  std::map<std::pair<int, std::string>, KindDiff> kinds;
  for (std::size_t r = 0; r < old_plan.ranks.size(); ++r) {
    const PlannedRank& old_rank = old_plan.ranks[r];
    const PlannedRank& new_rank = new_plan.ranks[r];
    Moved moved;
    for (std::size_t i = 0; i < old_rank.computations.size(); ++i) {
      const PlannedComputation& was = old_rank.computations[i];
      const PlannedComputation& is = new_rank.computations[i];
      KindDiff& kind = kinds[{was.id.stage, TypeText(was.id, was.fused)}];
      for (Moved* counted : {&diff.all, static_cast<Moved*>(&kind), &moved}) {
        Count(old_plan, was.knob, is.knob, counted);
      }
      kind.old_mean_knob += was.knob.number;
      kind.new_mean_knob += is.knob.number;
      kind.old_seconds += was.duration_seconds;
      kind.new_seconds += is.duration_seconds;
      kind.old_joules += was.energy_joules;
      kind.new_joules += is.energy_joules;
      if (was.work != is.work || was.fused_work != is.fused_work) ++diff.other_work;
    }
    diff.ranks.push_back(
        {moved.moved, !SameKnob(old_plan, old_rank.waiting_knob, new_rank.waiting_knob)});
  }
  for (auto& [key, kind] : kinds) {
    kind.stage = key.first;
    kind.type = key.second;
    kind.old_mean_knob /= kind.of;
    kind.new_mean_knob /= kind.of;
    diff.kinds.push_back(std::move(kind));
  }
  return diff;
}

}  // namespace perseus::cli
