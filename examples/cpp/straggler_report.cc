// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The plan while another pipeline is 20 % slower, as a page: straggler_report PROFILE.CSV PAGE
#include <fstream>
#include <iostream>

#include "perseus/report.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: straggler_report PROFILE.CSV PAGE\n", 2;
  perseus::JobFile settings;
  settings.schedule = "1f1b";
  settings.microbatches = 16;
  settings.blocking_power_watts = {83.64};
  settings.at = perseus::PlanTarget{perseus::PlanTarget::Kind::kBaselineFactor, 1.2};
  const auto job = perseus::Job::Load(argv[1], settings);
  if (!job) return std::cerr << job.error().message << '\n', 1;
  const auto made = job->Plan();
  if (!made) return std::cerr << made.error().message << '\n', 1;
  const auto page = perseus::FormatHtmlReport(perseus::ReportOf(*job, *made));
  if (!page) return std::cerr << page.error().message << '\n', 1;
  std::ofstream(argv[2]) << *page;
}
