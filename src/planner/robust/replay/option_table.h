// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_REPLAY_OPTION_TABLE_H_
#define PERSEUS_ROBUST_REPLAY_OPTION_TABLE_H_

#include <cstddef>
#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::robust {

// What every computation takes at every knob, where searches look it up.
class OptionTable {
 public:
  struct Option {
    double seconds = 0;
    double effective_joules = 0;
  };

  // The pipeline must outlive it.
  explicit OptionTable(const CostedPipeline& pipeline);

  // From now on, times at other knobs than the baseline's are longer by so many of their standard
  // errors, beside the baseline (where the profile states errors). Energies stay.
  void SetGuard(double errors);

  // At a knob by model::NearestOptions(). Where there is none: as at the table's first.
  const Option& Of(int computation, int knob) const { return CellOf(computation, knob).option; }
  // While the knob before is still in effect. Where there is none: as at its own, which is what
  // the replay of a job takes.
  const Option& OfLate(int computation, int before, int own) const {
    const Cell& late = CellOf(computation, before);
    return late.counts ? late.option : CellOf(computation, own).option;
  }

 private:
  struct Cell {
    Option option;
    bool counts = true;
  };
  // Without a guard.
  struct Measured {
    double seconds = 0;
    double error = 0;  // Standard error beside the baseline, relative.
  };
  const Cell& CellOf(int computation, int knob) const {
    return cells_[static_cast<std::size_t>(pipeline_.table_of[computation]) * num_knobs_ + knob];
  }

  const CostedPipeline& pipeline_;
  std::size_t num_knobs_;
  std::vector<Cell> cells_;            // [table x knobs + knob]
  std::vector<Measured> as_measured_;  // The same.
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_REPLAY_OPTION_TABLE_H_
