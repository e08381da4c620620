// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/group_incumbent.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace perseus::plan {
namespace {

constexpr double kClearlyTooLong = 1e-9;  // Relative; of a path.
constexpr int kLongestExchange = 3;       // Options that an exchange may skip.

}  // namespace

GroupIncumbent::GroupIncumbent(const GroupProblem& problem, GroupRelaxation* relaxation,
                               double below_joules)
    : problem_(problem),
      relaxation_(*relaxation),
      forbidding_(problem.num_groups(), 0),
      best_joules_(below_joules) {
  for (const GroupProblem::Group& group : problem.groups()) {
    double most = 0;
    for (const auto& option : group.options) most = std::max(most, std::abs(option.joules));
    tolerance_ += kSameJoules * most;
    std::vector<int>& order = by_joules_.emplace_back(group.options.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&group](int a, int b) {
      return group.options[a].joules < group.options[b].joules;
    });
  }
}

bool GroupIncumbent::IsFeasible(const std::vector<int>& choice) {
  work_ += 4 * static_cast<std::int64_t>(problem_.num_computations());
  GroupProblem::Path path;
  if (problem_.LongestPathOf(choice, &path) <= problem_.seconds()) return true;
  relaxation_.AddPath(path);
  return false;
}

bool GroupIncumbent::Offer(const std::vector<int>& choice) {
  const double joules = problem_.JoulesOf(choice);
  if (joules >= best_joules_ || !IsFeasible(choice)) return false;
  best_ = choice;
  best_joules_ = joules;
  return true;
}

// Adds the seconds of the paths that are known by now and not in `sums`.
void GroupIncumbent::AddPathSums(const std::vector<int>& choice, std::vector<double>* sums) {
  const auto& paths = relaxation_.paths();
  for (std::size_t p = sums->size(); p < paths.size(); ++p) {
    double seconds = paths[p].delay_seconds;
    for (int g = 0; g < problem_.num_groups(); ++g) seconds += SecondsOn(paths[p], g, choice[g]);
    sums->push_back(seconds);
    work_ += problem_.num_cells();
  }
}

double GroupIncumbent::SecondsOn(const GroupProblem::Path& path, int g, int option) const {
  const GroupProblem::Group& group = problem_.groups()[g];
  double seconds = 0;
  for (int c = 0; c < group.num_cells(); ++c) {
    seconds += path.counts[group.first_cell + c] * group.options[option].cell_seconds[c];
  }
  return seconds;
}

// Whether a known path gets too long when groups change their options.
bool GroupIncumbent::TooLong(const std::vector<double>& sums, const std::vector<int>& choice,
                             const std::vector<std::pair<int, int>>& changes) {
  const double most = problem_.seconds() * (1 + kClearlyTooLong);
  const auto too_long = [&](std::size_t p) {
    const GroupProblem::Path& path = relaxation_.paths()[p];
    double seconds = sums[p];
    for (const auto& [g, to] : changes) {
      seconds += SecondsOn(path, g, to) - SecondsOn(path, g, choice[g]);
    }
    work_ += 4 * static_cast<std::int64_t>(changes.size());
    return seconds > most;
  };
  // The path that forbade it last will often do so again.
  std::size_t& last = forbidding_[changes.back().first];
  if (last < sums.size() && too_long(last)) return true;
  for (std::size_t p = 0; p < sums.size(); ++p) {
    if (!too_long(p)) continue;
    last = p;
    return true;
  }
  return false;
}

// Makes the changes where they are feasible.
bool GroupIncumbent::Change(const std::vector<std::pair<int, int>>& changes,
                            std::vector<int>* choice, std::vector<double>* sums) {
  if (TooLong(*sums, *choice, changes)) return false;
  std::vector<int> changed = *choice;
  for (const auto& [g, to] : changes) changed[g] = to;
  if (!IsFeasible(changed)) {
    AddPathSums(*choice, sums);
    return false;
  }
  for (std::size_t p = 0; p < sums->size(); ++p) {
    const GroupProblem::Path& path = relaxation_.paths()[p];
    for (const auto& [g, to] : changes) {
      (*sums)[p] += SecondsOn(path, g, to) - SecondsOn(path, g, (*choice)[g]);
    }
  }
  work_ += 4 * static_cast<std::int64_t>(sums->size() * changes.size());
  *choice = std::move(changed);
  return true;
}

void GroupIncumbent::Descend(std::int64_t work_limit, std::vector<int>* choice) {
  std::vector<double> sums;
  AddPathSums(*choice, &sums);
  for (bool changed = true; changed;) {
    changed = false;
    for (int g = 0; g < problem_.num_groups(); ++g) {
      for (const int k : by_joules_[g]) {
        if (Work() > work_limit) return;
        const auto& options = problem_.groups()[g].options;
        if (options[k].joules >= options[(*choice)[g]].joules) break;
        if (!Change({{g, k}}, choice, &sums)) continue;
        changed = true;
        break;
      }
    }
  }
}

void GroupIncumbent::Improve(std::int64_t work_limit) {
  Descend(work_limit, &best_);
  std::vector<double> sums;
  AddPathSums(best_, &sums);
  int unchanged = 0;
  for (int g = 0; unchanged < problem_.num_groups() && Work() <= work_limit;
       g = (g + 1) % problem_.num_groups()) {
    ++unchanged;
    while (ImproveWith(g, work_limit, &sums)) unchanged = 0;
  }
  best_joules_ = problem_.JoulesOf(best_);
}

bool GroupIncumbent::ImproveWith(int g, std::int64_t work_limit, std::vector<double>* sums) {
  const auto joules = [this](int group, int option) {
    return problem_.groups()[group].options[option].joules;
  };
  for (int up = 1; up <= kLongestExchange && up <= best_[g]; ++up) {
    const double cost = joules(g, best_[g] - up) - joules(g, best_[g]);
    for (int h = 0; h < problem_.num_groups(); ++h) {
      if (Work() > work_limit) return false;
      if (h == g) continue;
      ++work_;
      const int most = static_cast<int>(problem_.groups()[h].options.size()) - 1;
      for (int down = 1; down <= kLongestExchange && best_[h] + down <= most; ++down) {
        const double gain = joules(h, best_[h]) - joules(h, best_[h] + down);
        if (gain <= cost + tolerance_) continue;
        if (Change({{g, best_[g] - up}, {h, best_[h] + down}}, &best_, sums)) return true;
      }
    }
  }
  return false;
}

}  // namespace perseus::plan
