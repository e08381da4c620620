// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_LANE_REPLAY_H_
#define PERSEUS_ROBUST_LANE_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "robust/samples.h"

namespace perseus::robust {

// Lanes that are computed together: a block of kParts times kLanes. Each lane sees the same
// operations in the same order, so the width changes no bit of a result.
struct OneLane {
  using Part = double;
  static constexpr int kLanes = 1;
  static constexpr int kParts = 1;
};
struct EightInTwos {
  using Part __attribute__((vector_size(16))) = double;
  static constexpr int kLanes = 2;
  static constexpr int kParts = 4;
};
struct EightInFours {
  using Part __attribute__((vector_size(32))) = double;
  static constexpr int kLanes = 4;
  static constexpr int kParts = 2;
};
template <typename Block>
inline constexpr int kBlockLanes = Block::kLanes* Block::kParts;

// A function marked with it may use registers of four doubles; call it only if HasFourWide().
#if defined(__x86_64__)
#define PERSEUS_FOUR_WIDE __attribute__((target("avx2")))
inline bool HasFourWide() { return __builtin_cpu_supports("avx2") != 0; }
#else
#define PERSEUS_FOUR_WIDE
inline bool HasFourWide() { return false; }
#endif
// Takes over the registers of the function that it is called from.
#define PERSEUS_LANE_LOOP __attribute__((always_inline)) inline

// Reads or writes part `s` of the block that begins at `lanes`. By pointers: the registers in which
// a function would return four doubles depend on what it is compiled for.
template <typename Block>
PERSEUS_LANE_LOOP void Load(const double* lanes, int s, typename Block::Part* part) {
  std::memcpy(part, lanes + s * Block::kLanes, sizeof(*part));
}
template <typename Block>
PERSEUS_LANE_LOOP void Store(const typename Block::Part& part, int s, double* lanes) {
  std::memcpy(lanes + s * Block::kLanes, &part, sizeof(part));
}

// Whether the largest of some parts is above zero in any lane.
template <typename Block>
PERSEUS_LANE_LOOP bool AnyAboveZero(const typename Block::Part* parts) {
  double lanes[kBlockLanes<Block>];
  for (int s = 0; s < Block::kParts; ++s) Store<Block>(parts[s], s, lanes);
  bool any = false;
  for (const double lane : lanes) any |= lane > 0;
  return any;
}

struct KnobChange {
  int computation = 0;
  int knob = 0;
};

// Figures of a choice of knobs, in means over the lanes.
struct LaneFigures {
  double seconds = 0;           // Of the job's iteration.
  double effective_joules = 0;  // Energy less blocking power of the time computed.
  int changes = 0;              // Of clock, with that from the last computation to the first.
};

// Replays iterations of a pipeline in lanes side by side, and again where a few
// knobs change: what a search asks a hundred thousand times. Late clocks are
// modelled (docs/explanation/planning.md): a clock comes at once (`kPredicted`), or a latency
// after it was called for, while the rank goes on at the knob planned before;
// one call at a time. The search's verdicts are those of the exact replay.
class LaneReplay {
 public:
  // All must outlive it. `in_fours`: false where the machine has no such registers.
  LaneReplay(const CostedPipeline& pipeline, const ClockSwitching& switching,
             const Samples& samples, bool in_fours = HasFourWide());

  // See OptionTable. What was replayed before holds until Reset().
  void SetGuard(double errors) { options_.SetGuard(errors); }

  // Replays everything. `knobs`: [computation].
  void Reset(std::span<const int> knobs);

  // With a trial that was neither committed nor discarded: its knobs.
  const std::vector<int>& knobs() const { return knobs_; }
  const LaneFigures& figures() const { return figures_; }

  // Figures with some other knobs (no computation twice). Valid until the next call. Commit() makes
  // it so, Discard() and all else take it back.
  const LaneFigures& Try(std::span<const KnobChange> changes);
  void Commit();
  void Discard();

  // Mean time and effective energy of a computation at a knob after another, where
  // calls begin when computations start, or else where clocks come at once.
  struct Expected {
    double seconds = 0;
    double effective_joules = 0;
  };
  Expected ExpectedOf(int computation, int before, int knob) const {
    const OptionTable::Option& option = options_.Of(computation, knob);
    Expected expected = {option.seconds, option.effective_joules * samples_.weight[computation]};
    if (knob == before || switching_.call_ahead != CallAhead::kNone) return expected;
    const OptionTable::Option& old = options_.OfLate(computation, before, knob);
    const double latency = latencies_[static_cast<std::size_t>(knob)];
    const double wait = latency < old.seconds ? latency : old.seconds;
    const double share = wait / old.seconds;
    expected.seconds += wait - share * option.seconds;
    expected.effective_joules += share * (old.effective_joules - option.effective_joules);
    return expected;
  }
  int before(int computation) const { return previous_[computation]; }
  int after(int computation) const { return next_[computation]; }
  int lanes() const { return lanes_; }
  // [group of the samples]: sums of the times of its jobs, without the delay at the end.
  std::vector<double> GroupSums() const;

  // The share of lanes in which a computation lies on the critical path, each
  // counted with its factor of time.
  std::vector<double> Criticality() const;

 private:
  // Results of a computation; rows of times are in `ends_` and `calls_`.
  struct Node {
    double effective_joules = 0;
    int end_row = 0;
    int call_row = 0;  // When its rank's last call ends.
    // In some lane a call outlasts the computation. With kPredicted, the next call of every lane
    // then waits for the lane's last one; else that one counts as over, though it may not be.
    bool calling = false;
    int old_knob = 0;  // In effect until then.
  };

  int KnobBefore(int computation) const { return knobs_[previous_[computation]]; }
  template <typename Block>
  bool Run(int i, Node* node);
  bool RunInFours(int computation, Node* node);
  bool RunAny(int computation, Node* node);
  double JobSeconds() const;
  const Node& Now(int computation) const {
    return touched_[computation] ? trial_[computation] : nodes_[computation];
  }

  const CostedPipeline& pipeline_;
  const ClockSwitching switching_;
  const std::vector<double> latencies_;  // [knob]
  const Samples& samples_;
  int lanes_ = 1;
  bool in_fours_;
  OptionTable options_;
  std::vector<int> previous_;  // [computation]: on its rank; of the first: the last.
  std::vector<int> next_;      // [computation]: on its rank; of the last: the first.
  std::vector<bool> first_;    // [computation]: of its rank.
  std::vector<int> last_of_rank_;
  std::vector<int> knobs_;
  std::vector<Node> nodes_;
  std::vector<Node> trial_;
  std::vector<char> touched_;  // Has a trial.
  std::vector<char> marked_;   // Must be run again.
  std::vector<int> touched_list_;
  std::vector<KnobChange> undo_;  // Of the trial.
  std::vector<double> rows_;      // Four for each computation: end, call; now and trial.
  LaneFigures figures_;
  LaneFigures tried_;
  bool has_trial_ = false;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_LANE_REPLAY_H_
