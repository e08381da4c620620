// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SYNTH_SYNTH_TEXT_H_
#define PERSEUS_SYNTH_SYNTH_TEXT_H_

#include <string>

#include "perseus/synth.h"
#include "synth/synth_gpu.h"

namespace perseus::synth {

// The command line that makes the same profile again, with names as the models spell them.
std::string CommandThatMakes(const SynthSpec& spec);

// A job file for `perseus plan`, which says by what command it was made.
std::string JobFileText(const SynthSpec& spec, const GpuModel& gpu, const std::string& command);

}  // namespace perseus::synth

#endif  // PERSEUS_SYNTH_SYNTH_TEXT_H_
