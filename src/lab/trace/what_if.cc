// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/what_if.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "trace/rank_order.h"
#include "trace/trace_replay.h"

namespace perseus::trace {
namespace {

// Replays with the usual times, but for some operations.
class Attribution {
 public:
  Attribution(const Recording& recording, const Links& links, std::span<const double> own,
              std::span<const double> usual, double usual_step_seconds)
      : recording_(recording),
        links_(links),
        own_(own),
        usual_(usual),
        usual_step_seconds_(usual_step_seconds) {}

  template <typename Keeps>
  double Slowdown(const Keeps& keeps) {
    seconds_.assign(usual_.begin(), usual_.end());
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
      if (keeps(recording_.operations[i])) seconds_[i] = own_[i];
    }
    ReplayTrace(recording_, links_, seconds_, &timing_);
    return usual_step_seconds_ > 0 ? MeanOf(timing_.step_seconds) / usual_step_seconds_ : 1;
  }

 private:
  const Recording& recording_;
  const Links& links_;
  std::span<const double> own_;
  std::span<const double> usual_;
  double usual_step_seconds_;
  std::vector<double> seconds_;
  TraceTiming timing_;
};

// Walks the chain that made a recorded step as long as it was, from its end: from
// each operation back to the last of what its group waited for, or of what the rank
// that came last to the group did before. Sums the gaps; what is left are operations.
class RecordedChain {
 public:
  RecordedChain(const Recording& recording, const Links& links)
      : recording_(recording), links_(links) {}

  // Returns the time of the step's operations on the chain.
  double Walk(int step_index, std::map<std::pair<std::string, int>, double>* gaps) const {
    const int begin = recording_.first_of[recording_.Cell(step_index, 0, 0)];
    const int end = recording_.first_of[recording_.Cell(step_index + 1, 0, 0)];
    double step_start = At(begin).start_seconds;
    int current = begin;
    for (int i = begin; i < end; ++i) {
      step_start = std::min(step_start, At(i).start_seconds);
      if (At(i).end_seconds() > At(current).end_seconds()) current = i;
    }
    std::map<int, RankOrder> orders;  // By cell, where the chain comes to it.
    double busy = 0;
    // Clocks of ranks differ: a chain through them might not go back in time.
    for (int length = begin; length < end; ++length) {
      int last = current;
      int before = -1;
      for (const int member : links_.MembersOf(links_.group_of[current])) {
        if (At(member).start_seconds > At(last).start_seconds) last = member;
        for (const int wait : links_.WaitsOf(member)) {
          if (before < 0 || At(wait).end_seconds() > At(before).end_seconds()) before = wait;
        }
      }
      const int cell = recording_.Cell(step_index, At(last).pipeline, At(last).stage);
      const int own = orders.try_emplace(cell, recording_, cell).first->second.Before(last);
      if (own >= 0 && (before < 0 || At(own).end_seconds() > At(before).end_seconds())) {
        before = own;
      }
      const double ready = before < 0 ? step_start : At(before).end_seconds();
      busy += At(current).end_seconds() - At(last).start_seconds;
      double& gap = (*gaps)[{std::string(OperationKindName(At(last).kind)), At(last).stage}];
      gap += At(last).start_seconds - ready;
      if (before < 0) return busy;
      if (length + 1 == end) gap += ready - step_start;
      current = before;
    }
    return busy;
  }

 private:
  const Operation& At(int operation) const { return recording_.operations[operation]; }

  const Recording& recording_;
  const Links& links_;
};

void FindLaunchDelays(const Recording& recording, const Links& links, WhatIf* answer) {
  const RecordedChain chain(recording, links);
  std::map<std::pair<std::string, int>, double> gaps;
  const double steps = static_cast<double>(recording.steps.size());
  double busy = 0;
  for (std::size_t step = 0; step < recording.steps.size(); ++step) {
    busy += chain.Walk(static_cast<int>(step), &gaps);
  }
  answer->other_chain_seconds = busy / steps - answer->replayed_seconds;
  for (const auto& [where, seconds] : gaps) {
    answer->launch_delays.push_back({where.first, where.second, seconds / steps});
  }
  std::stable_sort(
      answer->launch_delays.begin(), answer->launch_delays.end(),
      [](const LaunchDelay& a, const LaunchDelay& b) { return a.seconds > b.seconds; });
}

void Attribute(const Recording& recording, const Links& links, std::span<const double> own,
               std::span<const double> usual, double most_replayed, WhatIf* answer) {
  const auto few = [&](int replays) {
    return replays * static_cast<double>(recording.operations.size()) <= most_replayed;
  };
  Attribution attribution(recording, links, own, usual, answer->without_stragglers_seconds);
  for (int stage = 0; few(recording.stages) && stage < recording.stages; ++stage) {
    answer->by_stage.push_back(
        attribution.Slowdown([&](const Operation& each) { return each.stage == stage; }));
  }
  for (int pipeline = 0; few(recording.pipelines) && pipeline < recording.pipelines; ++pipeline) {
    answer->by_pipeline.push_back(
        attribution.Slowdown([&](const Operation& each) { return each.pipeline == pipeline; }));
  }
  for (int place = 0; few(recording.places()) && place < recording.places(); ++place) {
    answer->by_place.push_back(attribution.Slowdown([&](const Operation& each) {
      return recording.Place(each.pipeline, each.stage) == place;
    }));
  }
  std::vector<std::string> names;
  for (const Operation& operation : recording.operations) {
    const std::string name(OperationName(operation.kind));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    answer->by_operation.push_back({name, attribution.Slowdown([&](const Operation& each) {
                                      return OperationName(each.kind) == name;
                                    })});
  }
  std::stable_sort(
      answer->by_operation.begin(), answer->by_operation.end(),
      [](const NamedSlowdown& a, const NamedSlowdown& b) { return a.slowdown > b.slowdown; });
}

}  // namespace

WhatIf AskWhatIf(const Recording& recording, const Links& links, double most_replayed) {
  WhatIf answer;
  const std::vector<double> own = OwnSeconds(recording, links);
  const std::vector<double> usual = UsualSeconds(recording, own);
  const std::vector<double> recorded = RecordedSeconds(recording);
  TraceTiming replayed;
  TraceTiming without;
  ReplayTrace(recording, links, own, &replayed);
  ReplayTrace(recording, links, usual, &without);
  for (std::size_t step = 0; step < recording.steps.size(); ++step) {
    answer.steps.push_back({recording.steps[step], recorded[step], replayed.step_seconds[step],
                            without.step_seconds[step]});
  }
  answer.recorded_seconds = MeanOf(recorded);
  answer.replayed_seconds = MeanOf(replayed.step_seconds);
  answer.without_stragglers_seconds = MeanOf(without.step_seconds);
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : 1; };
  answer.launch_slowdown = ratio(answer.recorded_seconds, answer.replayed_seconds);
  answer.blocking_slowdown = ratio(answer.replayed_seconds, answer.without_stragglers_seconds);
  Attribute(recording, links, own, usual, most_replayed, &answer);
  FindLaunchDelays(recording, links, &answer);
  return answer;
}

}  // namespace perseus::trace
