// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_TOLD_H_
#define PERSEUS_PLAN_TOLD_H_

#include "perseus/progress.h"
#include "perseus/result.h"

namespace perseus::plan {

// Passes progress on and remembers whether the caller stopped. A search that is stopped returns the
// best so far; this is for work of several searches, which is then of no use.
class Told {
 public:
  // `progress` must outlive this, and this the functions that it gives out.
  explicit Told(const ProgressFunction& progress) : progress_(progress) {}
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  bool operator()(const Progress& now) {
    stopped_ = stopped_ || (progress_ && !progress_(now));
    return !stopped_;
  }
  // Empty where nobody listens.
  ProgressFunction Function() {
    if (!progress_) return {};
    return [this](const Progress& now) { return (*this)(now); };
  }
  bool stopped() const { return stopped_; }

 private:
  const ProgressFunction& progress_;
  bool stopped_ = false;
};

inline tl::unexpected<Error> SearchCancelled() {
  return MakeError(ErrorCode::kCancelled, "the search for a plan was cancelled");
}

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_TOLD_H_
