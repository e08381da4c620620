// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_QUESTIONS_EMULATION_SUMMARY_H_
#define PERSEUS_CLI_QUESTIONS_EMULATION_SUMMARY_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/framework/terminal.h"
#include "perseus/analysis.h"
#include "perseus/assignment.h"
#include "perseus/costed_pipeline.h"
#include "perseus/emulation_report.h"
#include "perseus/emulator.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/profile.h"

namespace perseus::cli {

// What `perseus emulate` says. The pointers are not owned.
struct EmulationSummary {
  const Profile* profile = nullptr;
  const CostedPipeline* pipeline = nullptr;
  const Plan* baseline_plan = nullptr;  // One iteration of one pipeline.
  int virtual_stages = 1;
  double split_ratio = 0.5;
  std::string target;  // Where the target comes from: "--at 1.0x".
  EmulationSpec spec;
  std::string policy;                   // As on the command line.
  std::string label;                    // The same for people: "perseus (phase)".
  std::string policy_summary;           // One sentence on what it does.
  const Emulation* baseline = nullptr;  // In the same scenario.
  const Emulation* emulation = nullptr;
  std::vector<PolicyRow> policies;  // At least maximum clocks.
  bool compared = false;            // --compare

  std::vector<PartitionResult> partitions;
  std::vector<AssignmentResult> assignments;
  int assigned_pipelines = 0;
  std::vector<SweepRow> sweep;
  std::optional<PowerBudgetAnswer> power_budget;
  std::optional<DeadlineAnswer> deadline;
  PowerLimits power_limits;
  bool shows_shape = false;  // --power-band
  std::vector<SlowerRun> slower;
  RunSpec run;
  std::string currency;
  std::optional<RunCost> run_at_baseline;
  std::optional<RunCost> run_cost;

  double change_joules = 0;       // The price of a change of clock.
  std::string change_price_name;  // The flag or key that states it.
  double usual_effort = 0;        // Of its plans, where none was asked for; 0: none is made.

  std::string plan_command;          // "perseus plan profile.csv --schedule ..."
  std::vector<Note> notes;           // Said before the figures.
  std::vector<std::string> remarks;  // Sentences.
  std::string output_directory;
  std::vector<std::string> files;
};

std::string FormatEmulationSummary(const EmulationSummary& summary, const Style& style);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_QUESTIONS_EMULATION_SUMMARY_H_
