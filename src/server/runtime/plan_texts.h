// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_PLAN_TEXTS_H_
#define PERSEUS_SERVER_RUNTIME_PLAN_TEXTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "server/planning/curve.h"

namespace perseus::server {

// The texts of one job's plans: each is made once, for the first rank that asks, and shared by all.
// Thread-safe.
class PlanTexts {
 public:
  // See Curve::ComputationsTails().
  std::shared_ptr<const std::string> Of(const std::shared_ptr<const Curve>& curve,
                                        const CurvePlan& plan, int pp_rank) {
    const MutexLock lock(mutex_);
    if (std::exchange(curve_, curve) != curve) texts_.clear();
    auto found = texts_.find(plan.id);
    if (found == texts_.end()) {
      std::vector<std::shared_ptr<const std::string>> made;
      for (std::string& text : curve->ComputationsTails(plan)) {
        made.push_back(std::make_shared<const std::string>(std::move(text)));
      }
      const std::size_t most_plans = std::max<std::size_t>(1, kMostTexts / made.size());
      if (texts_.size() >= most_plans) texts_.clear();
      found = texts_.emplace(plan.id, std::move(made)).first;
    }
    return found->second[static_cast<std::size_t>(pp_rank)];
  }

 private:
  // Several versions of the largest jobs' stages.
  static constexpr std::size_t kMostTexts = 512;

  Mutex mutex_;
  std::shared_ptr<const Curve> curve_ PERSEUS_GUARDED_BY(mutex_);  // Of which the texts are.
  // By plan, then by rank of a pipeline.
  std::map<std::int64_t, std::vector<std::shared_ptr<const std::string>>> texts_
      PERSEUS_GUARDED_BY(mutex_);
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_PLAN_TEXTS_H_
