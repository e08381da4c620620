// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/straggler_detector.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "common/median.h"

namespace perseus::server {
namespace {

constexpr std::size_t kLearnMost = 1024;
// A reference may be off by so much of a threshold, in standard deviations of it.
constexpr double kReferenceError = 0.25;
constexpr std::size_t kMostRegimes = 16;
constexpr double kUpIterations = 5000;  // In which a reference may rise by a threshold.
constexpr double kDownIterations = 500;
constexpr double kRecently = 1.0 / 32;  // Weight of the newest in what is recent.
constexpr double kNamedShare = 0.8;     // Of a slowdown, that a cause must explain.
constexpr double kMostSpread = 0.25;    // Of the types' slowdowns, where all are slow alike.
// Far beyond any real one; keeps sums finite whatever is reported.
constexpr double kMostLog = 10;

double LogRatio(double value, double expected) {
  return std::clamp(std::log(value / expected), -kMostLog, kMostLog);
}

double Threshold(const ShiftSettings& settings) { return std::log1p(settings.threshold); }

// Writes over the oldest of `size` values.
void PutRing(std::vector<float>* ring, std::size_t next, std::size_t size, double value) {
  if (ring->size() > size) ring->resize(size);
  if (ring->size() < size) {
    ring->push_back(static_cast<float>(value));
  } else {
    (*ring)[next % size] = static_cast<float>(value);
  }
}

double MedianOfCopy(std::vector<float> values) { return MedianOf(values); }

}  // namespace

void StragglerDetector::Reset() {
  const ShiftSettings settings = settings_;
  *this = StragglerDetector();
  settings_ = settings;
}

void StragglerDetector::Adopt(int number, double factor, double reference) {
  Rank& rank = ranks_[number];
  if (!rank.learned) ++learned_;
  rank.learned = true;
  rank.adopted = true;
  rank.reference = reference;
  rank.first_reference = reference;
  rank.shift.SetShifted(std::log(factor));
}

void StragglerDetector::Drop(int number) {
  const auto found = ranks_.find(number);
  if (found == ranks_.end()) return;
  if (found->second.learned) --learned_;
  ranks_.erase(found);
}

std::map<int, SlowRank> StragglerDetector::SlowRanks() const {
  std::map<int, SlowRank> slow;
  for (const auto& [number, rank] : ranks_) {
    if (!rank.shift.shifted()) continue;
    slow[number] = {.factor = std::exp(rank.shift.level()),
                    .reference = rank.reference,
                    .since_iteration = rank.slow_since,
                    .adopted = rank.adopted};
  }
  return slow;
}

std::map<int, double> StragglerDetector::Lateness() const {
  std::map<int, double> lateness;
  for (const auto& [number, rank] : ranks_) {
    if (!rank.learned) continue;
    lateness[number] = std::exp(rank.shift.shifted() ? rank.shift.level() : rank.recent);
  }
  return lateness;
}

double StragglerDetector::drift_factor() const { return std::exp(drift_.level()); }
double StragglerDetector::slow_factor() const { return std::exp(slow_.level()); }

// The deviation of a rank that is watched; nothing while it is learned.
std::optional<StragglerDetector::Deviation> StragglerDetector::Read(const RankIteration& seen) {
  if (!(seen.busy_seconds > 0) || !(seen.expected_busy_seconds > 0)) return std::nullopt;
  Rank& rank = ranks_[seen.rank];
  rank.pp_rank = seen.pp_rank;
  rank.pipeline = seen.pipeline;
  double ratio = LogRatio(seen.busy_seconds, seen.expected_busy_seconds);
  const bool has_tokens = seen.tokens > 0;
  if (has_tokens) {
    if (token_scale_ == 0) token_scale_ = seen.tokens;
    ratio -= LogRatio(seen.tokens, token_scale_);
  }
  if (rank.first.empty() && !rank.learned) rank.has_tokens = has_tokens;
  if (rank.adopted) rank.has_tokens = has_tokens;
  if (has_tokens != rank.has_tokens) {  // The trainer changed its mind: another unit.
    if (rank.learned) --learned_;
    rank = Rank();
    rank.has_tokens = has_tokens;
    rank.pp_rank = seen.pp_rank;
    rank.pipeline = seen.pipeline;
  }
  Remember(&rank, seen);
  if (!rank.learned) {
    rank.first.push_back(static_cast<float>(ratio));
    if (rank.biases.empty()) rank.biases[seen.regime] = 0;
    return std::nullopt;
  }
  const auto bias = rank.biases.find(seen.regime);
  return Deviation{.rank = &rank,
                   .number = seen.rank,
                   .regime = seen.regime,
                   .value = ratio - rank.reference - (bias == rank.biases.end() ? 0 : bias->second),
                   .seen = &seen};
}

void StragglerDetector::Remember(Rank* rank, const RankIteration& seen) {
  const auto window = static_cast<std::size_t>(settings_.window);
  const double tokens =
      seen.tokens > 0 && token_scale_ > 0 ? LogRatio(seen.tokens, token_scale_) : 0;
  for (std::size_t type = 0; type < seen.busy_by_type.size(); ++type) {
    if (!(seen.busy_by_type[type] > 0) || !(seen.expected_by_type[type] > 0)) continue;
    PutRing(&rank->newest[type], rank->next, window,
            LogRatio(seen.busy_by_type[type], seen.expected_by_type[type]) - tokens);
  }
  ++rank->next;
}

// Whether the median of what was seen is known well enough. A quiet series needs
// one window, a noisy one several.
bool StragglerDetector::IsLearned(std::vector<float> seen) const {
  const std::size_t size = seen.size();
  const auto window = static_cast<std::size_t>(settings_.window);
  if (size < window) return false;
  if (size >= kLearnMost) return true;
  if (size % window != 0) return false;
  const auto median = static_cast<float>(MedianOfCopy(seen));
  for (float& value : seen) value -= median;
  ShiftDetector noise;
  noise.Learn(seen);
  constexpr double kOfMedian = 1.25;  // A median's error, of a mean's.
  return kOfMedian * noise.lasting_noise() / std::sqrt(static_cast<double>(size)) <=
         kReferenceError * Threshold(settings_);
}

// Ranks that have been seen often enough get their references.
void StragglerDetector::FinishLearning() {
  if (learned_ == ranks_.size()) return;
  std::map<int, std::vector<float>> of_stage;  // References, also those learned before.
  std::vector<Rank*> ready;
  for (auto& [number, rank] : ranks_) {
    if (!rank.learned) {
      if (!IsLearned(rank.first)) continue;
      rank.reference = MedianOfCopy(rank.first);
      ready.push_back(&rank);
    }
    of_stage[rank.pp_rank].push_back(static_cast<float>(rank.reference));
  }
  std::map<int, double> most;  // By stage, of the references.
  for (Rank* const each : ready) {
    Rank& rank = *each;
    // The lower of two: half of a stage may be slow.
    std::vector<float> peers = of_stage[rank.pp_rank];
    const auto middle = peers.begin() + static_cast<std::ptrdiff_t>((peers.size() - 1) / 2);
    std::nth_element(peers.begin(), middle, peers.end());
    most[rank.pp_rank] = *middle + Threshold(settings_) / 2;
    rank.reference = std::min(rank.reference, most[rank.pp_rank]);
    rank.first_reference = rank.reference;
    for (std::size_t type = 0; type < rank.newest.size(); ++type) {
      rank.type_reference[type] = MedianOfCopy(rank.newest[type]);
    }
    for (float& value : rank.first) value -= static_cast<float>(rank.reference);
    rank.shift.Learn(rank.first);
    rank.first = {};
    rank.learned = true;
    ++learned_;
  }
  // Whoever was learned before its peers had nobody to be compared with.
  for (auto& [number, rank] : ranks_) {
    const auto limit = most.find(rank.pp_rank);
    if (!rank.learned || rank.adopted || limit == most.end()) continue;
    if (rank.reference > limit->second) rank.reference = rank.first_reference = limit->second;
  }
}

// What nearly all ranks share: their lower quartile, without what it lies below
// the middle by noise alone. Ranks that cannot be judged are taken to be as fast as ever: of what
// nobody sees, nobody says that nearly all have it.
double StragglerDetector::Shared(const std::vector<Deviation>& deviations,
                                 std::size_t not_judged) const {
  if (deviations.empty()) return 0;
  std::vector<float> values;
  std::vector<float> noises;
  values.reserve(deviations.size());
  noises.reserve(deviations.size());
  for (const Deviation& deviation : deviations) {
    values.push_back(static_cast<float>(deviation.value));
    noises.push_back(static_cast<float>(deviation.rank->shift.noise()));
  }
  values.resize(values.size() + not_judged);
  const std::size_t place = (values.size() - 1) / 4;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place),
                   values.end());
  const double share =
      (static_cast<double>(place) + 0.625) / (static_cast<double>(values.size()) + 0.25);
  return values[place] - NormalQuantile(share) * MedianOf(noises);
}

void StragglerDetector::LearnRegime(Rank* rank, std::int64_t regime, double deviation) {
  if (rank->biases.contains(regime) || rank->shift.shifted()) return;
  if (std::exchange(rank->new_regime, regime) != regime) rank->first.clear();
  rank->first.push_back(static_cast<float>(deviation));
  if (rank->first.size() < static_cast<std::size_t>(settings_.window)) return;
  const double most = Threshold(settings_) / 2;
  const double bias = std::clamp(MedianOf(rank->first), -most, most);
  if (rank->biases.size() >= kMostRegimes) rank->biases.erase(rank->biases.begin());
  rank->biases[regime] = bias;
  rank->shift.Rebase(bias);
  rank->first = {};
  rank->new_regime = kNoRegime;
}

// By steps of one size up or down, which tends to the median.
void StragglerDetector::Relearn(Rank* rank, double deviation) const {
  const double threshold = Threshold(settings_);
  const double step = std::clamp(deviation, -threshold, threshold);
  rank->recent += kRecently * (step - rank->recent);
  const double iterations = rank->recent < -threshold / 2 ? kDownIterations : kUpIterations;
  rank->reference += (deviation > 0 ? threshold : -threshold) / iterations;
  rank->reference = std::min(rank->reference, rank->first_reference + threshold);
}

std::vector<Finding> StragglerDetector::Add(std::int64_t iteration,
                                            const std::vector<RankIteration>& ranks) {
  std::vector<Finding> findings;
  std::vector<Deviation> deviations;
  deviations.reserve(ranks.size());
  for (const RankIteration& seen : ranks) {
    if (const auto deviation = Read(seen)) deviations.push_back(*deviation);
  }
  const auto not_judged = static_cast<std::size_t>(std::ranges::count_if(
      ranks, [](const RankIteration& seen) { return !(seen.expected_busy_seconds > 0); }));
  const double shared = Shared(deviations, not_judged);
  // Whether these are slow or all are depends on the ranks that nobody can judge: nothing is said.
  if (Shared(deviations, 0) - shared > Threshold(settings_) / 2) deviations.clear();
  if (!deviations.empty()) {
    const ShiftDetector::Change change = drift_.Add(shared, settings_);
    if (change == ShiftDetector::Change::kShifted || change == ShiftDetector::Change::kRecovered) {
      findings.push_back({.kind = change == ShiftDetector::Change::kShifted
                                      ? Finding::Kind::kDrift
                                      : Finding::Kind::kDriftOver,
                          .factor = drift_factor(),
                          .iteration = iteration,
                          .delay_iterations = drift_.since()});
    }
  }
  for (Deviation& deviation : deviations) {
    Rank& rank = *deviation.rank;
    const double own = deviation.value -= std::max(0.0, shared);
    const ShiftDetector::Change change = rank.shift.Add(own, settings_);
    LearnRegime(&rank, deviation.regime, own);
    if (!rank.shift.shifted() && shared < Threshold(settings_)) Relearn(&rank, own);
    if (change == ShiftDetector::Change::kNone) continue;
    if (change == ShiftDetector::Change::kShifted) {
      findings.push_back(Straggler(deviation, iteration));
      continue;
    }
    findings.push_back({.kind = change == ShiftDetector::Change::kMoved ? Finding::Kind::kFactor
                                                                        : Finding::Kind::kRecovered,
                        .rank = deviation.number,
                        .factor = std::exp(rank.shift.level()),
                        .iteration = iteration});
    if (change == ShiftDetector::Change::kRecovered) rank.adopted = false;
  }
  WatchPipelines(iteration, deviations, &findings);
  NameCauses(&findings);
  FinishLearning();
  WatchIterations(iteration, ranks, &findings);
  return findings;
}

Finding StragglerDetector::Straggler(const Deviation& deviation, std::int64_t iteration) const {
  Rank& rank = *deviation.rank;
  const int since = std::max(rank.shift.since(), 1);
  rank.slow_since = iteration - since + 1;
  Finding finding{.rank = deviation.number,
                  .factor = std::exp(rank.shift.level()),
                  .iteration = iteration,
                  .delay_iterations = rank.shift.since()};
  NameType(rank, *deviation.seen, &finding);
  return finding;
}

// The median over a pipeline's ranks has less noise than any of them, and one slow rank alone
// does not move it; those that were told are not in it.
void StragglerDetector::WatchPipelines(std::int64_t iteration, const std::vector<Deviation>& own,
                                       std::vector<Finding>* findings) {
  std::map<int, std::vector<float>> values;
  for (const Deviation& deviation : own) {
    if (deviation.rank->pipeline < 0 || deviation.rank->shift.shifted()) continue;
    values[deviation.rank->pipeline].push_back(static_cast<float>(deviation.value));
  }
  for (auto& [number, of_ranks] : values) {
    if (of_ranks.size() > 1) pipelines_[number].shift.Add(MedianOf(of_ranks), settings_);
  }
  for (const Deviation& deviation : own) {
    const auto pipeline = pipelines_.find(deviation.rank->pipeline);
    if (pipeline == pipelines_.end() || !pipeline->second.shift.shifted()) continue;
    ShiftDetector& shift = deviation.rank->shift;
    if (shift.shifted() || !shift.LooksShifted(settings_)) continue;
    shift.TellShift(settings_);
    findings->push_back(Straggler(deviation, iteration));
  }
}

// Slow ranks of one pipeline are one cause, which is told when the first is found and over when
// the last has recovered.
void StragglerDetector::NameCauses(std::vector<Finding>* findings) {
  if (findings->empty()) return;
  std::map<int, int> slow;
  for (const auto& [number, rank] : ranks_) {
    if (rank.shift.shifted()) ++slow[rank.pipeline];
  }
  for (Finding& finding : *findings) {
    const auto rank = ranks_.find(finding.rank);
    if (rank == ranks_.end() || rank->second.pipeline < 0) continue;
    const int pipeline = rank->second.pipeline;
    if (finding.kind == Finding::Kind::kStraggler) {
      finding.together = slow[pipeline] > 1 ? slow[pipeline] : 0;
      finding.is_of_told_cause = std::exchange(pipelines_[pipeline].is_told, true);
    } else if (finding.kind == Finding::Kind::kRecovered) {
      finding.is_of_told_cause = slow[pipeline] > 0;
      if (pipelines_[pipeline].shift.shifted()) pipelines_[pipeline].shift.EndShift();
      for (auto& [number, other] : ranks_) {
        if (other.pipeline == pipeline) other.shift.ShareHold(rank->second.shift);
      }
    }
  }
  for (auto& [number, pipeline] : pipelines_) {
    if (slow[number] == 0) pipeline.is_told = false;
  }
}

// Which type's time grew, by the medians of the window.
void StragglerDetector::NameType(const Rank& rank, const RankIteration& seen,
                                 Finding* finding) const {
  if (rank.adopted) return;
  double total = 0;
  SecondsByType grown = {};
  double least = kMostLog;
  double most = -kMostLog;
  for (std::size_t type = 0; type < grown.size(); ++type) {
    if (rank.newest[type].empty() || !(seen.expected_by_type[type] > 0)) continue;
    const double now = MedianOfCopy(rank.newest[type]);
    const double shift = now - rank.type_reference[type];
    grown[type] =
        seen.expected_by_type[type] * (std::exp(now) - std::exp(rank.type_reference[type]));
    total += grown[type];
    least = std::min(least, shift);
    most = std::max(most, shift);
  }
  if (!(total > 0)) return;
  // Of two types that are slow alike one may make up 80 % by its length alone.
  if (std::expm1(least) > (1 - kMostSpread) * std::expm1(most)) {
    finding->all_types = true;
    return;
  }
  for (std::size_t type = 0; type < grown.size(); ++type) {
    if (grown[type] >= kNamedShare * total) finding->type = static_cast<ComputationType>(type);
  }
}

// Iterations of the job against its plans, whatever the cause.
void StragglerDetector::WatchIterations(std::int64_t iteration,
                                        const std::vector<RankIteration>& ranks,
                                        std::vector<Finding>* findings) {
  double time = 0;
  double expected = 0;
  double busy = 0;
  double tokens = 0;
  int count = 0;
  for (const RankIteration& seen : ranks) {
    if (!(seen.expected_time_seconds > 0) || !(seen.busy_seconds > 0)) continue;
    time = std::max(time, seen.time_seconds);  // Who is first may wait after its end.
    expected = std::max(expected, seen.expected_time_seconds);
    busy += seen.busy_seconds;
    tokens += seen.tokens;
    ++count;
  }
  if (count == 0) return;
  busy /= count;
  double ratio = LogRatio(time, expected);
  if (tokens > 0 && token_scale_ > 0) ratio -= LogRatio(tokens / count, token_scale_);
  const double wait = std::max(0.0, time - busy) / expected;
  if (!times_learned_) {
    first_times_.push_back(static_cast<float>(ratio));
    first_waits_.push_back(static_cast<float>(wait));
    if (!IsLearned(first_times_)) return;
    time_reference_ = MedianOfCopy(first_times_);
    wait_reference_ = MedianOf(first_waits_);
    for (float& value : first_times_) value -= static_cast<float>(time_reference_);
    slow_.Learn(first_times_);
    times_learned_ = true;
    return;
  }
  PutRing(&waits_, next_wait_++, static_cast<std::size_t>(settings_.window), wait);
  const ShiftDetector::Change change = slow_.Add(ratio - time_reference_, settings_);
  if (change != ShiftDetector::Change::kShifted && change != ShiftDetector::Change::kRecovered) {
    return;
  }
  Finding finding{.kind = change == ShiftDetector::Change::kShifted
                              ? Finding::Kind::kSlowIterations
                              : Finding::Kind::kIterationsWell,
                  .factor = slow_factor(),
                  .iteration = iteration,
                  .delay_iterations = slow_.since()};
  const double grown = std::exp(time_reference_) * (finding.factor - 1);
  if (grown > 0) {
    finding.waiting_share = std::clamp((MedianOfCopy(waits_) - wait_reference_) / grown, 0.0, 1.0);
  }
  findings->push_back(finding);
}

}  // namespace perseus::server
