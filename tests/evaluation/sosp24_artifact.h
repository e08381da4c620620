// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_EMULATOR_SOSP24_SOSP24_ARTIFACT_H_
#define PERSEUS_TESTS_EMULATOR_SOSP24_SOSP24_ARTIFACT_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "common/temporary_directory.h"

namespace perseus {

// An invented artifact in the layout of the paper's: one emulated pipeline of
// two stages and one real job of two stages with two microbatches.
class TinyArtifact {
 public:
  static constexpr std::string_view kRunName =
      "merak+tiny+custom:0,1,2+dp1+pp2+tp1+mbs4+nmb2+PointSolution";

  TinyArtifact();

  std::string Root() const { return directory_.Path("sosp24_data"); }
  std::string Parent() const { return directory_.Path(); }
  std::string Derived() const { return directory_.Path("derived"); }
  // Writes a file below the parent, and its folders.
  void Put(const std::string& name, std::string_view bytes) const;
  void Remove(const std::string& name) const;
  // Below the parent: a file of the plans of a system ("perseus", "envpipe").
  static std::string RunFile(std::string_view system, std::string_view file);

 private:
  TemporaryDirectory directory_;
};

// The paper's data, or an empty path where it is not on this machine.
std::filesystem::path SharedSosp24();

}  // namespace perseus

#endif  // PERSEUS_TESTS_EMULATOR_SOSP24_SOSP24_ARTIFACT_H_
