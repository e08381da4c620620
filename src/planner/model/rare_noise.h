// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_RARE_NOISE_H_
#define PERSEUS_MODEL_RARE_NOISE_H_

#include "perseus/conditions.h"

namespace perseus::model {

// Whether rare computations have a length without a share, or a share without a length. That says
// nothing, so all who read conditions refuse it.
inline bool HasHalfOfRareNoise(const TimeNoise& noise) {
  return (noise.rare_length > 0) != (noise.rare_share > 0);
}

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_RARE_NOISE_H_
