// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_REPORT_EMULATION_FIXTURE_H_
#define PERSEUS_TESTS_REPORT_EMULATION_FIXTURE_H_

#include <cstdint>

#include "perseus/report.h"
#include "report_fixture.h"

namespace perseus::report {

// An emulated job put together by hand: `iterations` of three pipelines, of
// which number 2 straggles from a third to two thirds of the time.
struct EmulatedSample {
  Sample sample;
  EmulationSpec spec;
  Emulation emulation;

  // Every section has something to say.
  EmulationReportInput Full() const;
  // Only what is always there.
  EmulationReportInput Bare() const;
};

EmulatedSample MakeEmulatedSample(std::int64_t iterations, int power_values);

}  // namespace perseus::report

#endif  // PERSEUS_TESTS_REPORT_EMULATION_FIXTURE_H_
