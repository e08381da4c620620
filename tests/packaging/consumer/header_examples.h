// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CONSUMER_HEADER_EXAMPLES_H_
#define PERSEUS_CONSUMER_HEADER_EXAMPLES_H_

#include <iostream>
#include <string>

#include "perseus/frontier.h"
#include "perseus/job.h"
#include "perseus/profile.h"
#include "perseus/report.h"

// Names that the examples in comments of headers take for granted.

using namespace perseus;  // NOLINT: as their readers would.

inline int Fail(const std::string& message) {
  std::cerr << message << '\n';
  return 1;
}

#define EXAMPLE_ARGUMENTS_frontier
#define EXAMPLE_ARGUMENTS_job
#define EXAMPLE_ARGUMENTS_profile
#define EXAMPLE_ARGUMENTS_report const Result<Job>&job, const Result<JobPlan>&made

int Example_frontier(EXAMPLE_ARGUMENTS_frontier);
int Example_job(EXAMPLE_ARGUMENTS_job);
int Example_profile(EXAMPLE_ARGUMENTS_profile);
int Example_report(EXAMPLE_ARGUMENTS_report);

#endif  // PERSEUS_CONSUMER_HEADER_EXAMPLES_H_
