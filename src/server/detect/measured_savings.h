// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_MEASURED_SAVINGS_H_
#define PERSEUS_SERVER_DETECT_MEASURED_SAVINGS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/comparison_blocks.h"
#include "common/nearest_name.h"

namespace perseus::server {

// Quantile of Student's t distribution for a two-sided 95 % interval, to 1e-3. `freedom` (degrees
// of freedom) >= 1.
double StudentT95(std::int64_t freedom);

// The mean without the lowest and the highest fifth (rounded up; of three values or more). A few
// wild values do not move it. Needs a value.
double TrimmedMean(std::vector<double> values);

// A mean and half the width of its 95 % interval.
struct MeanInterval {
  double mean = 0;
  double half_width = 0;
};

// The mean without the lowest and the highest 15 % (rounded down), and the interval of Tukey and
// McLaughlin (Sankhya A 25, 1963) from the Winsorised variance. For six values or fewer this is
// Student's interval. Needs two values.
MeanInterval TrimmedInterval(std::vector<double> values);

// A share with its 95 % confidence interval: 0.03 is 3 %.
struct ShareEstimate {
  double share = 0;
  double least = 0;
  double most = 0;
};

// Whether the effect of a change of clocks is over within half a phase.
enum class Settling : std::uint8_t {
  kUnknown,  // Phases are too short, or too few, to tell.
  kOver,     // As far as noise lets it be seen.
  kGoesOn,   // The figures are biased: phases are too short.
};
inline constexpr EnumNames<Settling, 3> kSettlingNames = {{"unknown", "over", "goes_on"}};

// One version of the plan compared with default clocks.
struct MeasuredSaving {
  std::int64_t plan_version = 0;
  std::int64_t pairs = 0;         // Phases at default clocks that were compared by time.
  std::int64_t energy_pairs = 0;  // Those that were compared by energy.
  double with_seconds = 0;        // Iteration time with the plan; without: at default clocks.
  double without_seconds = 0;
  double with_joules = 0;  // Of one GPU. 0: GPUs report no energy.
  double without_joules = 0;
  std::optional<ShareEstimate> slowdown = {};  // Of iteration time. None below kLeastPairs pairs.
  std::optional<ShareEstimate> saving = {};    // Of energy. None below kLeastPairs pairs.
  Settling settling = Settling::kUnknown;
};

// One complete iteration of a job.
struct ComparedIteration {
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;  // 0: the iteration ran at default clocks.
  bool is_known = false;          // All ranks reported that they ran this version.
  int ranks = 0;
  double seconds = 0;  // Maximum over the ranks.
  int energy_ranks = 0;
  double joules = 0;  // Mean over energy_ranks.
};

// Compares iterations under the plan with phases at default clocks, whose places
// ComparisonBlocks draws at random. Not thread-safe.
//
// Each phase at default clocks gives one sample: it is compared with half of the iterations under
// the plan before it and half of those after it. So no iteration is in two samples.
// - Rare iterations that last far longer: each of the three parts counts by its trimmed mean of
//   logarithms, and samples by a trimmed mean with the interval of Tukey and McLaughlin.
// - Drift: the parts before and after are weighted so that a steady trend cancels out.
// - Settling: clocks change at once, temperatures do not. So after each change of clocks half the
//   length of a phase is left out. Settling::kGoesOn says that the effect still grows in the
//   other half, or that noise hides whether it does although it grew before.
// A chain of phases breaks when the plan changes, iterations are missing, or a rank runs at
// other clocks. A sample counts for energy only if nine tenths of the ranks reported their energy
// in each of its iterations.
class MeasuredSavings {
 public:
  static constexpr std::int64_t kLeastPairs = 3;
  static constexpr int kLongPhase = 40;  // Shorter ones can't show what settles slowly.
  static constexpr std::size_t kMostVersions = 16;
  static constexpr std::size_t kMostSamples = 256;  // Of a version; the newest.
  static constexpr std::int64_t kJudgedPairs = 8;   // Whether phases are long enough: after these.
  static constexpr int kLongestByItself = 1024;     // Longer() asks for no longer phases.

  // Starts again from nothing if the blocks changed.
  void Set(const ComparisonBlocks& blocks);
  const ComparisonBlocks& blocks() const { return blocks_; }

  // Adds an iteration; call it in ascending order. If that completes a pair, returns the version
  // whose figures changed.
  std::optional<std::int64_t> Add(const ComparedIteration& iteration);

  // Blocks twice as long, with the same share at default clocks, once figures are found biased
  // because phases are too short. It looks after 8, 16, 32, ... pairs of a version: looks after
  // each pair would some time find a bias by chance.
  std::optional<ComparisonBlocks> Longer() const;

  std::optional<MeasuredSaving> Of(std::int64_t plan_version) const;
  std::vector<MeasuredSaving> All() const;  // By version.
  std::int64_t dropped_cycles() const { return dropped_; }

 private:
  // Iterations in a row with the same clocks. Of long runs only the begin and the end are kept.
  struct Run {
    static constexpr std::size_t kMostKept = 1024;
    struct Logs {
      double seconds = 0;
      double joules = 0;
    };
    bool at_maximum = false;
    bool has_energy = true;
    std::int64_t length = 0;
    std::vector<Logs> first = {};
    std::deque<Logs> last = {};
  };
  // Logarithms.
  struct Compared {
    double with = 0;
    double without = 0;
    // By how much the effect of default clocks grows from the first to the second half of as many
    // iterations after a change of clocks, and from the third to the fourth quarter.
    double growth = 0;
    double late_growth = 0;
  };
  struct Samples {
    std::deque<Compared> seconds = {};
    std::deque<Compared> joules = {};
    std::int64_t pairs = 0;
    std::int64_t energy_pairs = 0;
  };
  struct Figures {
    double with = 0;
    double without = 0;
    std::optional<ShareEstimate> change = {};  // with / without - 1
    Settling settling = Settling::kUnknown;
  };

  // Whether the iteration continues the chain or begins one. If not, its whole cycle is dropped.
  bool Belongs(const ComparedIteration& iteration);
  void Append(const ComparedIteration& iteration, bool at_maximum);
  // From a plan's run, one at default clocks, and a plan's run.
  void AddSample();
  Compared Compare(double Run::Logs::*value) const;
  Figures FiguresOf(const std::deque<Compared>& samples) const;

  ComparisonBlocks blocks_;
  bool is_too_short_ = false;      // See Longer().
  std::vector<Run> chain_;         // At most three.
  std::int64_t next_ = 0;          // Iteration that continues the chain.
  std::int64_t plan_version_ = 0;  // Of the chain; 0: not known yet.
  int most_ranks_ = 0;             // In the chain.
  std::optional<std::int64_t> dropped_cycle_;
  std::map<std::int64_t, Samples> samples_;  // By version.
  std::int64_t dropped_ = 0;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_MEASURED_SAVINGS_H_
