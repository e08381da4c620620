// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATION_REPORT_H_
#define PERSEUS_EMULATION_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "perseus/analysis.h"
#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"

namespace perseus {

// What one policy makes of the emulated job.
struct PolicyRow {
  std::string policy;       // Name, with its granularity where it has one.
  std::string summary;      // One sentence.
  std::string why_not;      // Where it has no plan: a sentence; the figures are 0.
  double time_seconds = 0;  // All iterations.
  EnergySplit energy;
  double slowdown_percent = 0;  // Against maximum clocks in the same scenario.
  double saving_percent = 0;    // Likewise.
  double average_watts = 0;
  double peak_watts = 0;
};

// All that a report on an emulated job says. Pointers are not owned, must not be
// null (unless said so) and must outlive the call.
struct EmulationReportInput {
  const CostedPipeline* pipeline = nullptr;
  const EmulationSpec* spec = nullptr;
  const Emulation* emulation = nullptr;
  std::string title;           // Empty: "Emulated job".
  std::string policy;          // That `emulation` followed.
  std::string profile_source;  // Only the file name is shown.
  std::string profile_sha256;
  std::vector<PolicyRow> policies;          // Empty: no comparison was made.
  std::vector<PartitionResult> partitions;  // Answers to questions, where asked.
  std::vector<SweepRow> sweep;
  std::optional<RunCost> run_at_max_clocks;
  std::optional<RunCost> run;
  std::string currency;            // A label for RunCost::price, as the user gave it.
  std::vector<std::string> notes;  // A sentence each.
};

// report.html: one self-contained file that opens without network, with the
// job's power over time, where the energy went, iteration times, and the
// comparisons. The same input gives the same bytes. Never fails.
std::string FormatEmulationHtml(const EmulationReportInput& input);

// timeline.json: the iteration kept in the emulation, one process a pipeline,
// one thread a rank, power as a counter; for Perfetto.
std::string FormatEmulationTimelineJson(const EmulationReportInput& input);

// iterations.csv and power.csv (columns: docs/files.md).
std::string FormatIterationsCsv(const Emulation& emulation);
std::string FormatPowerCsv(const Emulation& emulation);

}  // namespace perseus

#endif  // PERSEUS_EMULATION_REPORT_H_
