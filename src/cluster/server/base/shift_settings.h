// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_BASE_SHIFT_SETTINGS_H_
#define PERSEUS_SERVER_BASE_SHIFT_SETTINGS_H_

namespace perseus::server {

// What counts as a shift of a noisy series; see watch/shift_detector.h.
struct ShiftSettings {
  double threshold = 0.05;  // Shifts from this share on are told, those below 3/4 of it never.
  int window = 16;          // Iterations that are looked at together.

  friend bool operator==(const ShiftSettings&, const ShiftSettings&) = default;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_BASE_SHIFT_SETTINGS_H_
