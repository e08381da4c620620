// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_POWER_SHAPE_H_
#define PERSEUS_SRC_REPORT_POWER_SHAPE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "perseus/emulation_report.h"
#include "report/document.h"

namespace perseus::report {

// The power of a job as the grid sees it (docs/explanation/emulation.md, "Shape of the
// power"), for emulation.json and report.html.

nlohmann::ordered_json ShapeToJson(const PowerShape& shape);             // null where not stated.
nlohmann::ordered_json LimitsToJson(const EmulationReportInput& input);  // null: none asked for.

// "yes", "no" or "not resolved".
std::string_view VerdictText(LimitVerdict verdict);

// "0.1 to 20 Hz"
std::string BandText(const PowerBand& band);

// A row for each policy that has a plan, in the order of the policies.
Table ShapeTable(const EmulationReportInput& input);

// The same job, slowed down until it keeps the limits that were asked for.
Table LimitTable(const EmulationReportInput& input);

// The spectra of maximum clocks and of the policy; "" where they are not stated.
std::string DrawSpectrum(const EmulationReportInput& input);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_POWER_SHAPE_H_
