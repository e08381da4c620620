// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_STRAGGLER_TEXT_H_
#define PERSEUS_EMULATE_STRAGGLER_TEXT_H_

#include <string>
#include <string_view>

#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/result.h"

namespace perseus::emulate {

// "slow=1.2,pipeline=3,rank=2,from=100,for=50"; all but the first may be left
// out. "clock=1100", "power=250", "stall=0.5".
Result<Straggler> ParseStraggler(std::string_view text);

// Refuses a limit that is above all clocks or powers of the profile, or below all of them: it is
// one of another unit, or of another GPU. A GPU that waits has a power, too.
Result<void> CheckLimit(const CostedPipeline& pipeline, StragglerKind kind, double value);

// "slow=1.2": how the user wrote it.
std::string StragglerText(StragglerKind kind, double value);

// Whether the value makes sense for the kind; the error starts with `what`.
Result<void> CheckStragglerValue(StragglerKind kind, double value, const std::string& what);

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_STRAGGLER_TEXT_H_
