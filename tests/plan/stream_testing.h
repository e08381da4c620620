// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_PLAN_STREAM_TESTING_H_
#define PERSEUS_TESTS_PLAN_STREAM_TESTING_H_

#include <gtest/gtest.h>

#include "perseus/stream.h"
#include "plan/pipelines.h"

namespace perseus::plan_testing {

// Rows of a profile.
inline constexpr const char* kTwoStages =
    "0,forward,1400,1,100\n0,forward,1200,1.25,80\n0,forward,1000,1.5,75\n"
    "0,backward,1400,2,200\n0,backward,1200,2.5,160\n0,backward,1000,3,150\n"
    "1,forward,1400,1,110\n1,forward,1200,1.2,80\n1,forward,1000,1.5,75\n"
    "1,backward,1400,2,220\n1,backward,1200,2.4,170\n1,backward,1000,3,150\n";

// Of these two stages in 1F1B.
inline StreamPlanner Stream(int microbatches, const StreamOptions& options = {}) {
  auto stream = StreamPlanner::Create(ProfileOf(kTwoStages), DagOf("1f1b", 2, microbatches),
                                      Blocking(20), options);
  EXPECT_TRUE(stream) << stream.error().message;
  return *stream;
}

}  // namespace perseus::plan_testing

#endif  // PERSEUS_TESTS_PLAN_STREAM_TESTING_H_
