// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/group_problem.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "plan/grouping.h"

namespace perseus::plan {
namespace {

// Whether `a` is nowhere worse than `b`.
bool Covers(const GroupProblem::Option& a, const GroupProblem::Option& b) {
  if (a.joules > b.joules) return false;
  for (std::size_t c = 0; c < a.cell_seconds.size(); ++c) {
    if (a.cell_seconds[c] > b.cell_seconds[c]) return false;
  }
  return true;
}

std::vector<GroupProblem::Option> Undominated(std::vector<GroupProblem::Option> options) {
  using Option = GroupProblem::Option;
  std::stable_sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.joules < b.joules;
  });
  std::vector<Option> kept;
  for (Option& option : options) {
    if (std::none_of(kept.begin(), kept.end(),
                     [&option](const Option& k) { return Covers(k, option); })) {
      kept.push_back(std::move(option));
    }
  }
  return kept;
}

}  // namespace

Result<GroupProblem> GroupProblem::Make(const CostedPipeline& pipeline, const Guard& guard,
                                        const std::vector<std::vector<int>>& groups,
                                        double seconds) {
  GroupProblem problem;
  problem.pipeline_ = &pipeline;
  problem.guard_ = guard;
  problem.seconds_ = seconds;
  problem.cell_of_.resize(pipeline.table_of.size());
  for (const std::vector<int>& members : groups) {
    Group group;
    group.members = members;
    group.first_cell = problem.num_cells();
    for (const int i : members) {
      const auto place = std::find(group.tables.begin(), group.tables.end(), pipeline.table_of[i]);
      const auto index = place - group.tables.begin();
      if (place == group.tables.end()) {
        group.tables.push_back(pipeline.table_of[i]);
        group.uses.push_back(0);
        ++problem.num_cells_;
      }
      ++group.uses[index];
      problem.cell_of_[i] = group.first_cell + static_cast<int>(index);
    }
    auto knobs = CommonKnobs(pipeline, guard, members);
    if (!knobs) return tl::unexpected(knobs.error());
    for (const int knob : *knobs) group.options.push_back(*problem.OptionAt(group, knob));
    group.options = Undominated(std::move(group.options));
    problem.groups_.push_back(std::move(group));
  }
  problem.end_.resize(problem.cell_of_.size());
  problem.before_.resize(problem.cell_of_.size());
  problem.cell_seconds_.resize(problem.num_cells_);
  return problem;
}

std::optional<GroupProblem::Option> GroupProblem::OptionAt(const Group& group, int knob) const {
  Option option;
  option.knob = knob;
  for (int c = 0; c < group.num_cells(); ++c) {
    const CostTable& table = pipeline_->tables[group.tables[c]];
    const CostOption* one = FindOption(table, knob);
    if (one == nullptr) return std::nullopt;
    option.cell_seconds.push_back(guard_.Seconds(table, *one));
    option.seconds += group.uses[c] * option.cell_seconds.back();
    option.joules += group.uses[c] * EffectiveEnergy(table, *one);
  }
  return option;
}

double GroupProblem::LongestPath(std::span<const double> cell_seconds, Path* path) const {
  const PipelineDag& dag = pipeline_->dag;
  double last_end = 0;
  int last = -1;
  for (int to = 0; to < dag.size(); ++to) {
    double ready = dag.start_delay_seconds[to];
    int before = -1;
    for (int k = dag.first_precedence[to]; k < dag.first_precedence[to + 1]; ++k) {
      const Precedence& precedence = dag.precedences[k];
      const double end = end_[precedence.from] + precedence.delay_seconds;
      if (end > ready) {
        ready = end;
        before = k;
      }
    }
    before_[to] = before;
    end_[to] = ready + cell_seconds[cell_of_[to]];
    if (end_[to] > last_end) {
      last_end = end_[to];
      last = to;
    }
  }
  if (path != nullptr) {
    path->counts.assign(num_cells_, 0);
    path->delay_seconds = dag.end_delay_seconds;
    while (last >= 0) {
      ++path->counts[cell_of_[last]];
      const int k = before_[last];
      path->delay_seconds +=
          k >= 0 ? dag.precedences[k].delay_seconds : dag.start_delay_seconds[last];
      last = k >= 0 ? dag.precedences[k].from : -1;
    }
  }
  return last_end + dag.end_delay_seconds;
}

double GroupProblem::LongestPathOf(std::span<const int> choice, Path* path) const {
  for (int g = 0; g < num_groups(); ++g) {
    const Group& group = groups_[g];
    const Option& option = group.options[choice[g]];
    std::copy(option.cell_seconds.begin(), option.cell_seconds.end(),
              cell_seconds_.begin() + group.first_cell);
  }
  return LongestPath(cell_seconds_, path);
}

double GroupProblem::JoulesOf(std::span<const int> choice) const {
  double joules = 0;
  for (int g = 0; g < num_groups(); ++g) joules += groups_[g].options[choice[g]].joules;
  return joules;
}

std::vector<CostOption> GroupProblem::PlanOf(std::span<const int> choice) const {
  std::vector<CostOption> plan(pipeline_->table_of.size());
  for (int g = 0; g < num_groups(); ++g) {
    const int knob = groups_[g].options[choice[g]].knob;
    for (const int i : groups_[g].members) plan[i] = *FindOption(pipeline_->TableOf(i), knob);
  }
  return plan;
}

}  // namespace perseus::plan
