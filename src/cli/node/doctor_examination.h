// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_DOCTOR_EXAMINATION_H_
#define PERSEUS_CLI_NODE_DOCTOR_EXAMINATION_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/framework/findings.h"
#include "cli/node/doctor_flags.h"
#include "device/device.h"
#include "device/disturbance_probe.h"
#include "device/effect_probe.h"
#include "device/probe.h"
#include "device/step_probe.h"
#include "device/together_probe.h"
#include "perseus/result.h"

namespace perseus::cli {

struct ExaminedGpu {
  device::GpuInfo info;
  std::optional<device::GpuConditions> conditions;
  device::CounterProbe counter;
  std::optional<device::ClockProbe> clock;    // With --set-clocks, where it worked, ...
  std::optional<device::EffectProbe> effect;  // ... and where a kernel could be timed.
  std::optional<device::DisturbanceProbe> computation;
  std::optional<device::DisturbanceProbe> transfer;
  std::optional<device::StepProbe> step;
};

// What was found on a node. A plain value.
struct Examination {
  std::string driver;  // As asked for.
  std::vector<ExaminedGpu> gpus;
  std::optional<device::TogetherProbe> together;  // With --set-clocks, of two GPUs and more.
  std::optional<bool> may_set_clocks;             // This process; absent: no driver.
  std::string agent_socket;
  bool agent_sets_clocks = false;  // It answers, and is not there to watch only.
  std::vector<Finding> findings;

  // Whether no finding is a fault.
  bool can_follow_plans() const;
};

// Looks at the node, for about flags.seconds. What is missing is a finding, not
// an error. Without flags.set_clocks nothing on a GPU is changed. With it an agent of our own sets
// the clocks, and gives each back, also where this process is killed. Errors: kInvalidInput
// (--set-clocks on GPUs that an agent has), kCancelled (by a signal, which is
// delivered after the return).
Result<Examination> ExamineNode(const DoctorFlags& flags);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_DOCTOR_EXAMINATION_H_
