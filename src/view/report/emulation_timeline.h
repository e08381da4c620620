// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_EMULATION_TIMELINE_H_
#define PERSEUS_SRC_REPORT_EMULATION_TIMELINE_H_

#include <string>

#include "perseus/emulation_report.h"

namespace perseus::report {

// The kept iteration: legend and one drawing per pipeline, as many as stay
// readable; "" where none is kept.
std::string DrawEmulatedTimeline(const EmulationReportInput& input);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_EMULATION_TIMELINE_H_
