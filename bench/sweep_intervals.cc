// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How often the truth lies within the 95 % intervals of a sweep during training: those of times and
// energies, and that of the saving of a plan made from them. docs/evidence/sweep-intervals.md
//
//   build/release/bench/sweep_intervals [SWEEPS]

#include <fmt/format.h>

#include <cstdlib>

#include "measure/sweep_coverage.h"

namespace perseus::measure {
namespace {

int Main(int argc, char** argv) {
  const int sweeps = argc > 1 ? std::max(1, std::atoi(argv[1])) : 200;
  fmt::print("{:<44} {:>6} {:>7} {:>7} {:>9} {:>8} {:>7} {:>7}\n", "noise", "sweeps", "times %",
             "energies %", "waiting %", "saving %", "width", "error");
  Coverage all;
  for (const Noise& noise : Noises()) {
    Coverage coverage;
    for (int seed = 1; seed <= sweeps; ++seed) {
      AddSweep(noise, static_cast<std::uint64_t>(seed), &coverage);
    }
    all.Add(coverage);
    fmt::print("{}\n", Row(noise.name, coverage));
    std::fflush(stdout);
  }
  fmt::print("{}\n", Row("all", all));
  return 0;
}

}  // namespace
}  // namespace perseus::measure

int main(int argc, char** argv) { return perseus::measure::Main(argc, argv); }
