// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_TRACE_ANSWER_H_
#define PERSEUS_SRC_TRACE_TRACE_ANSWER_H_

#include <optional>
#include <string>
#include <vector>

#include "perseus/note.h"
#include "trace/links.h"
#include "trace/recording.h"
#include "trace/trace_energy.h"
#include "trace/what_if.h"

namespace perseus::trace {

// The option table that energies come from, for the reader.
struct TraceCostSource {
  std::string name;      // File name.
  std::string modelled;  // Profile::modelled.
  int stages = 0;
  double blocking_power_watts = 0;
  int gpus_per_rank = 1;
  int detector_steps = 0;
};

// Everything that `perseus trace` says. Refers to what it is made of.
struct TraceAnswer {
  const Recording* recording = nullptr;
  const Links* links = nullptr;
  std::string name;  // File name, without its folder.
  WhatIf what_if;
  std::vector<Note> notes;  // Of the recording, and of the profile.
  std::optional<TraceEnergy> energy;
  TraceCostSource costs;  // With energy.
};

// Said wherever energies are.
inline constexpr const char* kRelativeCosts =
    "A trace holds no energies and no clocks. Each computation is taken to have run at the "
    "profile's highest clock. Lower clocks change its time and power as they do in the profile, "
    "for the same stage and type.";

std::string FormatTraceJson(const TraceAnswer& answer);
// One page, without any script or request.
std::string FormatTraceHtml(const TraceAnswer& answer);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_TRACE_ANSWER_H_
