// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_PROFILE_COMPARISON_H_
#define PERSEUS_CLI_CLUSTER_PROFILE_COMPARISON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/framework/terminal.h"
#include "perseus/profile.h"

namespace perseus::cli {

// Of one quantity: the second profile's over the first's.
struct RatioSummary {
  double median = 1;
  double most = 1;   // The one that is farthest from 1, up or down,
  std::string knob;  // and where.
};

// One stage and type that both profiles have.
struct KindComparison {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  int knobs = 0;  // That both have.
  RatioSummary time;
  RatioSummary energy;  // Where the first's is above 0.
};

struct ProfileComparison {
  std::vector<KindComparison> kinds;  // By stage and type.
  int only_first = 0;                 // Rows that the other lacks.
  int only_second = 0;
};

ProfileComparison CompareProfiles(const Profile& first, const Profile& second);

// The names are those of the two profiles.
std::string ComparisonText(const ProfileComparison& comparison, const std::string& first,
                           const std::string& second, const Style& style);
nlohmann::ordered_json ComparisonJson(const ProfileComparison& comparison, const std::string& first,
                                      const std::string& second);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_PROFILE_COMPARISON_H_
