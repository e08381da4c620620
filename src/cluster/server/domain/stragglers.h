// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_STRAGGLERS_H_
#define PERSEUS_SERVER_DOMAIN_STRAGGLERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/base/shape.h"
#include "server/planning/curve.h"
#include "store/facts.h"

namespace perseus::server {

// In place of a plan's id: no plan.
inline constexpr std::int64_t kMaximumClocks = 0;

// Which plan every pipeline runs.
struct Assignment {
  std::int64_t plan = 0;                   // Of all pipelines but:
  std::map<int, std::int64_t> exceptions;  // pipeline -> plan, or kMaximumClocks
  bool for_straggler = false;              // Whether a straggler decided it.
  double straggler_time_seconds = 0;       // T', where there is a straggler.
  double straggler_baseline_seconds = 0;   // The same at maximum clocks.

  friend bool operator==(const Assignment&, const Assignment&) = default;
};

bool IsActive(const store::StragglerRecord& straggler, double now_seconds);
bool IsExpired(const store::StragglerRecord& straggler, double now_seconds);

// T' is the iteration time of the slowest straggling pipeline, which runs the
// fastest plan or, where a slow stage makes that later by over 1 %, maximum clocks
// (it slows computations that were not critical before). Every other pipeline runs the slowest plan
// at hand that ends by min(T*, T'), or by the target where that is later. Several stragglers of one
// pipeline rank count as the worst of them: to overstate T' would slow the job.
// `stragglers` are those in effect; `ranks` tell where ranks and nodes are.
Assignment Assign(const Curve& curve, double target_seconds, const Shape& shape,
                  const std::vector<store::StragglerRecord>& stragglers,
                  const std::map<int, store::RankRecord>& ranks);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_STRAGGLERS_H_
