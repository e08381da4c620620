// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLANNER_C_HANDLES_H_
#define PERSEUS_PLANNER_C_HANDLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/planner_c.h"
#include "perseus/stream.h"
#include "planner_c/boundary.h"

// What the pointers of perseus/planner_c.h point to.
namespace perseus::planner_c {

struct FrontierColumns {
  explicit FrontierColumns(const Planner& planner);

  // Its pointers are good as long as this is.
  perseus_frontier Frontier() const;

  std::vector<double> time_seconds;
  std::vector<double> energy_joules;
  std::vector<double> slope_watts;
  perseus_frontier scalars = {};
};

struct PlannedJob {
  Job job;
  Planner planner;
  FrontierColumns frontier;
  StreamPlanner stream;
};

// The note of this index, for C: its texts are those of `notes`.
perseus_status GiveNote(const std::vector<Note>& notes, std::size_t index, perseus_note* to,
                        char** message);

// The computations of a plan as columns. Moved, not copied: `knob` points into `labels`.
struct PlanColumns {
  explicit PlanColumns(const PlanDocument& document);
  PlanColumns(const PlanColumns&) = delete;
  PlanColumns& operator=(const PlanColumns&) = delete;
  PlanColumns(PlanColumns&&) = default;
  PlanColumns& operator=(PlanColumns&&) = default;
  ~PlanColumns() = default;

  perseus_plan_columns Columns() const;

  int num_ranks = 0;
  std::vector<std::int32_t> rank;
  std::vector<std::int32_t> type;
  std::vector<std::int32_t> stage;
  std::vector<std::int32_t> microbatch;
  std::vector<std::int32_t> fused_type;
  std::vector<std::int32_t> fused_stage;
  std::vector<std::int32_t> fused_microbatch;
  std::vector<double> clock_mhz;
  std::vector<std::string> labels;
  std::vector<const char*> knob;  // Into labels.
  std::vector<double> start_seconds;
  std::vector<double> duration_seconds;
  std::vector<double> energy_joules;
};

}  // namespace perseus::planner_c

// NOLINTBEGIN(readability-identifier-naming): names of C.
struct perseus_planner {
  std::shared_ptr<const perseus::planner_c::PlannedJob> job;
};

struct perseus_plan {
  perseus::PlanDocument document;
  perseus::planner_c::PlanColumns columns;
  // What a report is made of; a plan that was read has none.
  std::shared_ptr<const perseus::planner_c::PlannedJob> job = {};
  perseus::JobFile settings = {};
  std::optional<perseus::JobPlan> made = {};  // Without its document, which is above.
};
// NOLINTEND(readability-identifier-naming)

#endif  // PERSEUS_PLANNER_C_HANDLES_H_
