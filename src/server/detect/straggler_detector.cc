// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/straggler_detector.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "common/numbers.h"

namespace perseus::server {
namespace {

constexpr double kLeastNoise = 0.003;  // Clocks of a processor and its operating system.
constexpr double kFalseAlarmEvery = 1e10;
constexpr double kMostDeviations = 3;  // That one value counts for.
constexpr double kMostShare = 0.75;    // "Most" of a window.
constexpr double kLeastTold = 0.75;    // Of the threshold.
constexpr double kOfMedian = 1.25;     // A median's error, of a mean's.
constexpr double kSureDeviations = 3;
constexpr int kRelapseWindows = 8;  // In which what was over is slow again.
constexpr int kMostHoldWindows = 8;
constexpr int kEstimateEvery = 8;
constexpr double kMostCorrelation = 0.9;
constexpr double kMadToDeviation = 1.4826;
// Half of the smallest shift that each test is for, in thresholds.
constexpr std::array<double, 3> kReferences = {0.5, 2, 8};

}  // namespace

double NormalQuantile(double p) {
  constexpr double kPower = 0.14;
  return 4.91 * (std::pow(p, kPower) - std::pow(1 - p, kPower));
}

void ShiftDetector::Learn(std::span<const float> deviations) {
  const std::size_t most = std::min(deviations.size(), kNoiseValues);
  older_.assign(deviations.end() - static_cast<std::ptrdiff_t>(most), deviations.end());
  older_next_ = 0;
  EstimateNoise();
}

// Robust: the median absolute deviation, and how often two neighbours are on one
// side of the median, which gives the correlation of a normal series (sin of pi/2
// times the mean product of signs). Sums of a series whose neighbours correlate by
// rho spread as if its deviation were sqrt((1 + rho) / (1 - rho)) times as large.
void ShiftDetector::EstimateNoise() {
  until_estimate_ = kEstimateEvery;
  std::vector<float> values(older_);
  const auto median = static_cast<float>(MedianOf(values));
  double signs = 0;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i + 1 < older_.size(); ++i) {
    // Oldest first, across the ring's end.
    const std::size_t size = older_.size();
    const float left = older_[(older_next_ + i) % size] - median;
    const float right = older_[(older_next_ + i + 1) % size] - median;
    if (left == 0 || right == 0) continue;
    signs += (left > 0) == (right > 0) ? 1 : -1;
    ++pairs;
  }
  for (float& value : values) value = std::abs(value - median);
  // Of few values both may be too small by chance: by two, and one, of their own deviations.
  const double error = 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(pairs, 1)));
  seen_noise_ = kMadToDeviation * MedianOf(values);
  noise_ = std::max(kLeastNoise, (1 + 2 * error) * seen_noise_);
  const double agreement =
      std::min(1.0, error + signs / static_cast<double>(std::max<std::size_t>(pairs, 1)));
  const double correlation =
      std::clamp(std::sin(std::numbers::pi / 2 * agreement), 0.0, kMostCorrelation);
  lasting_noise_ = noise_ * std::sqrt((1 + correlation) / (1 - correlation));
}

void ShiftDetector::Push(float value, std::size_t window) {
  if (window_.size() > window) {  // The settings changed.
    window_.clear();
    next_ = 0;
  }
  if (window_.size() < window) {
    // Grown to another length, a ring begins anew at its oldest.
    std::rotate(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(next_),
                window_.end());
    next_ = 0;
    window_.push_back(value);
    return;
  }
  const float leaving = std::exchange(window_[next_], value);
  next_ = (next_ + 1) % window;
  if (!shifted_) Older(leaving);
}

// One more value to know the noise by.
void ShiftDetector::Older(float value) {
  if (older_.size() < kNoiseValues) {
    std::rotate(older_.begin(), older_.begin() + static_cast<std::ptrdiff_t>(older_next_),
                older_.end());
    older_next_ = 0;
    older_.push_back(value);
  } else {
    older_[older_next_] = value;
    older_next_ = (older_next_ + 1) % kNoiseValues;
  }
  if (--until_estimate_ <= 0) EstimateNoise();
}

// Of a CUSUM in deviations whose reference is `reference` away from the mean: the
// time between false alarms is (exp(2kh) - 1 - 2kh) / (2k^2), nearly.
double ShiftDetector::Limit(double reference) const {
  const double k = reference / lasting_noise_;
  return std::log1p(2 * k * k * kFalseAlarmEvery) / (2 * k);
}

double ShiftDetector::Threshold(const ShiftSettings& settings) const {
  return std::max(std::log1p(settings.threshold), lasting_noise_ / 2);
}

// Three quarters of the threshold where a window's median is known well enough; of a noisy
// series all of it.
double ShiftDetector::LeastTold(const ShiftSettings& settings) const {
  const double threshold = Threshold(settings);
  const double error = kOfMedian * lasting_noise_ / std::sqrt(static_cast<double>(settings.window));
  return std::clamp(threshold / 2 + kSureDeviations * error, kLeastTold * threshold, threshold);
}

bool ShiftDetector::LooksShifted(const ShiftSettings& settings) const {
  const double threshold = Threshold(settings);
  const bool is_noise = threshold > std::log1p(settings.threshold);
  return WindowIsAbove(is_noise ? threshold : kLeastTold * threshold, settings);
}

bool ShiftDetector::WindowIsAbove(double least, const ShiftSettings& settings) const {
  if (window_.size() < static_cast<std::size_t>(settings.window)) return false;
  std::vector<float> values(window_);
  return MostAre(true, Threshold(settings) / 2) &&
         std::min(MedianOf(values), NewestMedian()) > least;
}

bool ShiftDetector::MostAre(bool above, double than) const {
  const auto count = std::count_if(window_.begin(), window_.end(), [&](float value) {
    return above ? value > than : value < than;
  });
  return static_cast<double>(count) >= kMostShare * static_cast<double>(window_.size());
}

ShiftDetector::Change ShiftDetector::Add(double deviation, const ShiftSettings& settings) {
  if (noise_ == 0) EstimateNoise();
  Push(static_cast<float>(deviation), static_cast<std::size_t>(settings.window));
  if (older_.size() < std::min(kLeastNoiseValues, static_cast<std::size_t>(settings.window))) {
    if (shifted_) Older(static_cast<float>(deviation - level_));
    return Change::kNone;
  }
  return shifted_ ? WhileShifted(deviation, settings) : WhileWell(deviation, settings);
}

ShiftDetector::Change ShiftDetector::WhileWell(double deviation, const ShiftSettings& settings) {
  const double threshold = Threshold(settings);
  bool sure = false;
  for (std::size_t i = 0; i < up_.size(); ++i) {
    const double reference = kReferences[i] * threshold;
    const double limit = Limit(reference);
    const double step =
        std::clamp(deviation - reference, -kMostDeviations * noise_, kMostDeviations * noise_) /
        lasting_noise_;
    // Not far beyond the limit, so that a past slowdown is soon forgotten.
    up_[i] = std::clamp(up_[i] + step, 0.0, 2 * limit);
    sure = sure || up_[i] > limit;
  }
  since_ = up_[0] > 0 ? since_ + 1 : 0;
  if (well_for_ < kNoShift) ++well_for_;
  if (!sure || !WindowIsAbove(LeastTold(settings), settings)) return Change::kNone;
  TellShift(settings);
  return Change::kShifted;
}

// After each relapse, the series must be well for longer.
void ShiftDetector::TellShift(const ShiftSettings& settings) {
  SetShifted(NewestMedian());
  const bool is_relapse = well_for_ < std::int64_t{kRelapseWindows} * settings.window;
  hold_ =
      is_relapse ? std::clamp(2 * hold_, settings.window, kMostHoldWindows * settings.window) : 0;
}

void ShiftDetector::ShareHold(const ShiftDetector& other) {
  hold_ = std::max(hold_, other.hold_);
  well_for_ = std::min(well_for_, other.well_for_);
}

bool ShiftDetector::NewestAreBelow(double than) const {
  const std::size_t count = std::max<std::size_t>(window_.size() / 4, 2);
  for (std::size_t i = 1; i <= count; ++i) {
    if (window_[(next_ + window_.size() - i) % window_.size()] >= than) return false;
  }
  return true;
}

// Leaves out the window's oldest quarter, which may be from before a shift just found.
double ShiftDetector::NewestMedian() const {
  std::vector<float> newest(window_);
  std::rotate(newest.begin(), newest.begin() + static_cast<std::ptrdiff_t>(next_), newest.end());
  newest.erase(newest.begin(), newest.begin() + static_cast<std::ptrdiff_t>(newest.size() / 4));
  return MedianOf(newest);
}

void ShiftDetector::SetShifted(double level) {
  shifted_ = true;
  level_ = level;
  at_level_ = 0;
  down_ = 0;
  down_since_ = 0;
  up_ = {};
}

void ShiftDetector::EndShift() {
  shifted_ = false;
  well_for_ = 0;
  down_ = 0;
  since_ = 0;
  window_.clear();  // Its slow values are over, and prove nothing any more.
  next_ = 0;
}

ShiftDetector::Change ShiftDetector::WhileShifted(double deviation, const ShiftSettings& settings) {
  const double threshold = Threshold(settings);
  ++at_level_;
  const double middle = std::max(level_, threshold) / 2;
  const double limit = Limit(middle);
  const double step =
      std::clamp(middle - deviation, -kMostDeviations * noise_, kMostDeviations * noise_) /
      lasting_noise_;
  down_ = std::clamp(down_ + step, 0.0, 2 * limit);
  down_since_ = down_ > 0 ? down_since_ + 1 : 0;
  if (window_.size() < static_cast<std::size_t>(settings.window)) return Change::kNone;
  std::vector<float> values(window_);
  const double median = MedianOf(values);
  if (down_ > limit && down_since_ >= hold_ && NewestAreBelow(threshold / 2)) {
    EndShift();
    return Change::kRecovered;
  }
  const double spread =
      3 * kOfMedian * lasting_noise_ / std::sqrt(static_cast<double>(settings.window));
  const bool moved = at_level_ >= settings.window && median > threshold / 2 &&
                     std::abs(median - level_) > threshold / 2 + spread &&
                     (median > level_ ? MostAre(true, level_ + threshold / 2)
                                      : MostAre(false, level_ - threshold / 2));
  if (!moved) return Change::kNone;
  level_ = NewestMedian();
  at_level_ = 0;
  return Change::kMoved;
}

void ShiftDetector::Rebase(double by) {
  for (float& value : window_) value -= static_cast<float>(by);
  up_ = {};
  since_ = 0;
}
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

// Whether the median of the values is known well enough. A quiet series needs one window, a noisy
// one several.
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
  // Ranks that were learned before their peers had no limit yet.
  for (auto& [number, rank] : ranks_) {
    const auto limit = most.find(rank.pp_rank);
    if (!rank.learned || rank.adopted || limit == most.end()) continue;
    if (rank.reference > limit->second) rank.reference = rank.first_reference = limit->second;
  }
}

// The deviation that nearly all ranks share: their lower quartile, less its distance below the
// middle by noise alone. Ranks that cannot be judged count as unchanged: unseen ranks are no
// evidence of a common deviation.
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
  // Ranks that cannot be judged decide whether these are slow or all are: nothing is said.
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
    time = std::max(time, seen.time_seconds);  // The first rank may wait after its end.
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
