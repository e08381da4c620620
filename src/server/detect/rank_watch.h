// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_RANK_WATCH_H_
#define PERSEUS_SERVER_DETECT_RANK_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/detect/reports.h"
#include "server/planning/job_spec.h"

namespace perseus::server {

// Finds reports that cannot be right: two processes with one rank, and iterations that are not the
// schedule's. Knows only the reports to this server. Not thread-safe.
class RankWatch {
 public:
  // A client that was silent for so long does not count any more.
  static constexpr double kSilentSeconds = 60;
  // After so many iterations without a rank that is missing, it trains without Perseus, or in
  // another job: the ranks of a pipeline wait for each other.
  static constexpr std::int64_t kEnoughIterations = 30;

  // `iterations`: how many it reports with this.
  void Hear(const ClientReport& client, std::size_t iterations, double now_seconds);
  // A client registers: the last word of one that ended is old.
  void Register(int rank);

  // Which other process has the rank of this client, too; "": none has.
  std::string OtherOf(const ClientReport& client, double now_seconds) const;
  // The computations of the rank's iterations; none: not known, or it has a plan.
  std::optional<ComputationCounts> RanBy(int rank) const;
  bool HasTrained(const ClientReport& client) const;

 private:
  // Its clients spoke in turn so often: not a restart, after which the first is silent.
  static constexpr int kMostReturns = 1;
  static constexpr std::size_t kMostSpeakers = 4;

  struct Speaker {
    std::string client;
    std::string process;
    double heard_at_seconds = 0;
    std::int64_t iterations = 0;
  };
  struct Rank {
    std::vector<Speaker> speakers;  // The last that spoke is the last here.
    int returns = 0;                // How often one spoke again after another.
    std::optional<ComputationCounts> ran;
  };
  std::map<int, Rank> ranks_;
};

// How iterations of a rank differ from those of its schedule, one sentence; "": they do not.
// Of computations whose stage was not said, only the types are compared.
std::string DifferenceText(int rank, int pp_rank, const ComputationCounts& ran,
                           const ComputationCounts& planned);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_RANK_WATCH_H_
