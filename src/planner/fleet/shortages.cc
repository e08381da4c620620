// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/shortages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

namespace perseus::fleet {
namespace {

// Sums may round by this part of a limit.
constexpr double kSumRounding = 1e-12;
constexpr std::size_t kNamedJobs = 5;

// The jobs whose suspension frees `missing` watts of a node, least weight for a watt first.
std::vector<std::size_t> CheapestSuspensions(const State& state, std::size_t node, double missing,
                                             const std::vector<double>& least_watts) {
  struct Candidate {
    double price = 0;
    double watts = 0;
    std::size_t job = 0;
  };
  std::vector<Candidate> candidates;
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    for (const PowerShare& share : state.members[j].nodes) {
      const double watts = share.fraction * least_watts[j];
      if (share.node != node || watts == 0) continue;
      candidates.push_back({state.members[j].weight / watts, watts, j});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.price < b.price; });
  double freed = 0;
  std::vector<Candidate> chosen;
  for (const Candidate& candidate : candidates) {
    if (freed >= missing) break;
    chosen.push_back(candidate);
    freed += candidate.watts;
  }
  // The last ones may free so much that earlier, dearer ones of them are not needed.
  for (std::size_t i = chosen.size(); i-- > 0;) {
    if (freed - chosen[i].watts < missing) continue;
    freed -= chosen[i].watts;
    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::vector<std::size_t> jobs;
  jobs.reserve(chosen.size());
  for (const Candidate& candidate : chosen) jobs.push_back(candidate.job);
  return jobs;
}

}  // namespace

std::vector<PowerShortage> ShortagesOf(const State& state, const Limits& limits,
                                       const std::vector<double>& least_watts) {
  const std::vector<double> sums = NodeWatts(state, least_watts);
  std::vector<PowerShortage> shortages;
  for (std::size_t n = 0; n < sums.size(); ++n) {
    if (sums[n] <= limits[n] * (1 + kSumRounding)) continue;
    const double missing = sums[n] - limits[n];
    shortages.push_back({n, missing, CheapestSuspensions(state, n, missing, least_watts)});
  }
  return shortages;
}

std::optional<Error> FirstShortage(const State& state, const Limits& limits,
                                   const std::vector<double>& least_watts) {
  const std::vector<PowerShortage> shortages = ShortagesOf(state, limits, least_watts);
  if (shortages.empty()) return std::nullopt;
  const PowerShortage& first = shortages.front();
  std::vector<std::string> names;
  for (const std::size_t j : first.suspend) {
    if (names.size() == kNamedJobs) break;
    names.push_back(state.members[j].label);
  }
  const std::size_t more = first.suspend.size() - names.size();
  return Error{
      ErrorCode::kInfeasible,
      fmt::format("{}: its limit is {:.0f} W, but its jobs need {:.0f} W more even as slow "
                  "as their owners accept; raise the limit, accept slower jobs, or suspend "
                  "{}{}.",
                  state.nodes[first.node].label, limits[first.node],
                  std::max(1.0, first.missing_watts), fmt::join(names, ", "),
                  more == 0 ? "" : fmt::format(" and {} more", more))};
}

std::vector<double> LeastOfCurves(const State& state) {
  std::vector<double> watts;
  watts.reserve(state.members.size());
  for (const Member& member : state.members) watts.push_back(member.curve.watts.front());
  return watts;
}

std::vector<double> LeastOfPlans(const State& state) {
  std::vector<double> watts;
  watts.reserve(state.members.size());
  for (const Member& member : state.members) watts.push_back(member.LeastWatts());
  return watts;
}

}  // namespace perseus::fleet
