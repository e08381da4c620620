// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SUPPORT_POWER_LOSS_H_
#define PERSEUS_TESTS_SUPPORT_POWER_LOSS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/temporary_directory.h"

namespace perseus {

// The names in folders that a power cut leaves: those that the program flushed, or,
// as file systems that write a folder before its files, all of them. Of bytes only
// those that were flushed are left.
enum class Names : std::uint8_t { kFlushed, kAll };

// A program that works in a folder until the power is cut. The program is a test of
// this very binary, which is left out otherwise (its name begins with DISABLED_); it
// works in the folder that PowerLossRoot() names, and calls TellDone() after each step.
class PowerLoss {
 public:
  explicit PowerLoss(std::string test) : test_(std::move(test)) {}

  std::string Root() const { return root_.Path(); }
  // Runs the program until it has told of `steps`, then kills it. Returns the last
  // step that it told of. `disk_lies`: nothing is flushed that the program flushes.
  int RunUntil(int steps, bool disk_lies = false) const;
  // Puts into `folder`, which is empty, what a power cut would leave.
  void Restore(Names names, const std::string& folder) const;

 private:
  const std::string test_;
  const TemporaryDirectory root_;
  const TemporaryDirectory kept_;
};

// For the program.
std::string PowerLossRoot();
void TellDone(int step);

}  // namespace perseus

#endif  // PERSEUS_TESTS_SUPPORT_POWER_LOSS_H_
