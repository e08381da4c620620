// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_TENTATIVE_CHANGE_H_
#define PERSEUS_SERVER_RUNTIME_TENTATIVE_CHANGE_H_

#include <utility>

#include "server/domain/job_life.h"

namespace perseus::server {

// Takes a change of the phase back, unless it is kept: what throws leaves no half of it.
class TentativeChange {
 public:
  explicit TentativeChange(JobLife* life)
      : life_(*life), before_(life->phase), marks_(life->marks) {}
  ~TentativeChange() {
    if (is_kept_) return;
    life_.phase = std::move(before_);
    life_.marks = std::move(marks_);
  }
  TentativeChange(const TentativeChange&) = delete;
  TentativeChange& operator=(const TentativeChange&) = delete;

  const Phase& before() const { return before_; }
  void Keep() { is_kept_ = true; }

 private:
  JobLife& life_;
  Phase before_;
  store::JobMarks marks_;
  bool is_kept_ = false;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_TENTATIVE_CHANGE_H_
