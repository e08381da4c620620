// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_EMULATION_PLOTS_H_
#define PERSEUS_SRC_REPORT_EMULATION_PLOTS_H_

#include <string>

#include "perseus/emulator.h"

namespace perseus::report {

// Each "" where there is nothing to draw.
std::string DrawPower(const Emulation& emulation);
std::string DrawIterationTimes(const Emulation& emulation);

// Where the energy went, as one bar and a table.
std::string DrawEnergySplit(const EnergySplit& energy);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_EMULATION_PLOTS_H_
