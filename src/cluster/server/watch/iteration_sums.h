// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_WATCH_ITERATION_SUMS_H_
#define PERSEUS_SERVER_WATCH_ITERATION_SUMS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/watch/reports.h"
#include "store/facts.h"

namespace perseus::server {

// Sums of what ranks reported of their iterations, by version of the plan; version 0 is maximum
// clocks. What is stored of a version replaces what was stored before, so a sum is never forgotten
// while its process lives: it would begin again at nothing, and replace what was acknowledged. A
// value.
class IterationSums {
 public:
  explicit IterationSums(std::string job) : job_(std::move(job)) {}

  // Of this server's ranks.
  void Add(const IterationReport& report);
  // What others heard of, and what this server did before it started anew.
  void SetElsewhere(const std::vector<store::IterationSummary>& summaries);

  bool has_news() const { return !unwritten_.empty(); }
  // The sums that the store does not have yet. They count as written until Unwritten().
  std::vector<store::Fact> Take();
  // The store did not take them.
  void Unwritten(const std::vector<store::Fact>& facts);

  // By version, of all servers.
  std::vector<store::IterationSummary> All() const;

 private:
  std::string job_;
  std::map<std::int64_t, store::IterationSummary> own_;
  std::map<std::int64_t, store::IterationSummary> elsewhere_;
  std::set<std::int64_t> unwritten_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_WATCH_ITERATION_SUMS_H_
