// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_BASE_SHIFT_SETTINGS_H_
#define PERSEUS_SERVER_BASE_SHIFT_SETTINGS_H_

namespace perseus::server {

// When a change in a noisy series counts as a shift; see watch/shift_detector.h.
struct ShiftSettings {
  // Relative change from which a shift is reported. A change below 3/4 of this never is.
  double threshold = 0.05;
  int window = 16;  // Iterations that are compared together.

  friend bool operator==(const ShiftSettings&, const ShiftSettings&) = default;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_BASE_SHIFT_SETTINGS_H_
