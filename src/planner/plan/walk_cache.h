// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_WALK_CACHE_H_
#define PERSEUS_PLAN_WALK_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "perseus/costed_pipeline.h"
#include "perseus/result.h"
#include "plan/cost_options.h"
#include "plan/plan_search.h"

namespace perseus::plan {

// The walks of one pipeline, for the margins that were asked for last: made at
// the first question and kept, so that many plans cost little more than their
// searches. Thread-safe.
class WalkCache {
 public:
  Result<std::shared_ptr<const WalkedPipeline>> For(const CostedPipeline& pipeline,
                                                    const Guard& guard,
                                                    double slope_quantum) const {
    // Who asks for a walk that another thread is making waits for it.
    const MutexLock lock(mutex_);
    const auto same = [&guard](const auto& walked) {
      return walked->guard().sigmas == guard.sigmas && walked->guard().fraction == guard.fraction;
    };
    auto found = std::find_if(walks_.begin(), walks_.end(), same);
    if (found == walks_.end()) {
      auto walked = WalkedPipeline::Make(pipeline, guard, slope_quantum);
      if (!walked) return tl::unexpected(walked.error());
      if (walks_.size() == kMostWalks) walks_.pop_back();
      found = walks_.insert(walks_.end(), *std::move(walked));
    }
    std::rotate(walks_.begin(), found, found + 1);  // The last asked for first.
    return walks_.front();
  }

 private:
  static constexpr std::size_t kMostWalks = 3;
  mutable Mutex mutex_;
  mutable std::vector<std::shared_ptr<const WalkedPipeline>> walks_ PERSEUS_GUARDED_BY(mutex_);
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_WALK_CACHE_H_
