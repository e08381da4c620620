// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATION_REPORT_H_
#define PERSEUS_EMULATION_REPORT_H_

// Link perseus::report (pkg-config: perseus-report).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/export.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/profile.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// The emulated job under one policy or plan.
struct PolicyRow {
  std::string policy = {};  // Name, with its granularity where it has one.
  double time_seconds = 0;  // All iterations.
  EnergySplit energy = {};
  double slowdown_percent = 0;  // Against maximum clocks in the same scenario.
  double saving_percent = 0;    // Likewise.
  double average_watts = 0;
  double peak_watts = 0;
};

// All that a report on an emulated job says. Pointers are not owned and must outlive the call.
//
// The functions below that take one give the same bytes for the same input. Errors: a pointer that
// is null, an emulation or plan of another pipeline.
struct EmulationReportInput {
  const Profile* profile = nullptr;
  const CostedPipeline* pipeline = nullptr;
  const EmulationSpec* spec = nullptr;
  const Emulation* emulation = nullptr;
  const Emulation* baseline = nullptr;   // The same scenario at maximum clocks.
  const Plan* baseline_plan = nullptr;   // One iteration of one pipeline.
  std::string title = {};                // Empty: "Emulated job".
  std::string policy = {};               // That `emulation` followed, for programs.
  std::string label = {};                // The same for people: "perseus (phase)".
  std::vector<PolicyRow> policies = {};  // Empty: no comparison was made.
  std::string scenario = {};             // What disturbs the job, a sentence; empty: not said.
  double change_joules = 0;              // Price of a change of clock, in no energy; 0: none given.
  std::vector<Note> notes = {};  // What was found odd in the input: said before the figures.
  std::vector<std::string> remarks = {};  // A sentence each.
  std::vector<std::string> files = {};    // Names of what is written beside emulation.json.
};

// emulation.json (fields: docs/reference/files.md): every figure of the job, one iteration
// a line.
Result<std::string> FormatEmulationJson(const EmulationReportInput& input);

// report.html: one self-contained file that opens without network, with the
// job's power over time, where the energy went, iteration times, and the
// comparisons.
Result<std::string> FormatEmulationHtml(const EmulationReportInput& input);

// timeline.pftrace: the iteration kept in the emulation for Perfetto, in its own
// protocol buffers (TrackEvent): one process a pipeline, one thread a rank, power
// as a counter.
Result<std::string> FormatEmulationTimelineTrace(const EmulationReportInput& input);

// iterations.csv and power.csv (columns: docs/reference/files.md).
std::string FormatIterationsCsv(const Emulation& emulation);
std::string FormatPowerCsv(const Emulation& emulation);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_EMULATION_REPORT_H_
