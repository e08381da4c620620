// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_PROFILING_SUMMARY_H_
#define PERSEUS_SERVER_DOMAIN_PROFILING_SUMMARY_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/domain/profile_table.h"
#include "server/domain/schema.h"

namespace perseus::server {

// The part of a job's measurements that clients are shown.
struct ProfilingSummary {
  std::vector<BlockingPower> blocking;
  std::vector<std::map<int, BlockingPower>> waiting;  // See ProfileTable::Waiting().
  std::optional<SweepSummary> sweep;
  std::vector<ProfileKey> throttled;
  std::vector<std::pair<std::string, std::set<int>>> notes;  // Each with its ranks.
};
extern const Message<ProfileKey> kProfileCell;
extern const Message<ProfilingSummary> kProfilingSummary;

ProfilingSummary SummaryOf(const ProfileTable& table, int pipeline_parallel);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_PROFILING_SUMMARY_H_
