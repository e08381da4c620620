// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "fleet/division.h"

namespace perseus::fleet {
namespace {

struct Filling {
  std::vector<double> x = {};       // [job]
  std::vector<double> prices = {};  // [node]
};

// The price of a segment of a curve, in watts for a unit of weighted speed.
double KeyOf(const Member& member, std::size_t segment) {
  return member.curve.SlopeAfter(segment) * member.per_speed / member.weight;
}

// Speed over weight at a corner.
double RatioAt(const Member& member, std::size_t corner) {
  return member.curve.x[corner] / (member.per_speed * member.weight);
}

// The first index from `low` to `high` for which `above` is true, if it never turns false again.
template <typename Above>
std::size_t FirstAbove(std::size_t low, std::size_t high, const Above& above) {
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (above(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Each job is in one node, or every limit holds all of it or nothing.
bool IsTree(const State& state, const Limits& limits) {
  return std::all_of(state.members.begin(), state.members.end(), [&](const Member& member) {
    return std::all_of(member.nodes.begin(), member.nodes.end(), [&](const PowerShare& share) {
      return share.fraction == 1 || std::isinf(limits[share.node]);
    });
  });
}

// The nodes that carry all of the job and have a limit, nearest the leaves first.
std::vector<std::size_t> LimitedNodes(const Member& member, const Limits& limits) {
  std::vector<std::size_t> nodes;
  for (const PowerShare& share : member.nodes) {
    if (share.fraction == 1 && !std::isinf(limits[share.node])) nodes.push_back(share.node);
  }
  return nodes;
}

// A division with jobs at x on their curves; prices are 0.
PowerDivision DivisionAt(const State& state, const std::vector<double>& x) {
  PowerDivision division;
  std::vector<double> watts;
  watts.reserve(x.size());
  division.jobs.reserve(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Member& member = state.members[j];
    watts.push_back(member.curve.WattsAt(x[j]));
    JobShare& share = division.jobs.emplace_back();
    share.time_seconds = 1 / x[j];
    share.iterations_per_second = x[j];
    share.watts = watts.back() / state.meter_factor;
    share.speed = x[j] / member.per_speed;
  }
  for (const double sum : NodeWatts(state, watts)) division.nodes.push_back({sum, 0});
  return division;
}

// How far jobs are filled: all segments whose key is less, and `fraction` of those with this key.
struct Level {
  double key = std::numeric_limits<double>::infinity();
  double fraction = 1;

  friend bool operator<(const Level& a, const Level& b) {
    return a.key != b.key ? a.key < b.key : a.fraction < b.fraction;
  }
};

// The most weighted throughput in a tree, segment by segment, the cheapest first: water-filling
// from the leaves up. Each node has a level at which its limit is reached by what is below it; a
// job stops at the lowest level of the nodes above it. Exact. The least of all jobs keeps all
// limits.
class TreeFiller {
 public:
  TreeFiller(const State& state, const Limits& limits)
      : state_(state), limits_(limits), levels_(state.nodes.size()), jobs_of_(state.nodes.size()) {
    for (std::size_t j = 0; j < state.members.size(); ++j) {
      const Member& member = state.members[j];
      filling_.x.push_back(member.curve.x.back());
      stops_.push_back({&member, {}, member.curve.watts.back()});
      for (const std::size_t n : LimitedNodes(member, limits)) jobs_of_[n].push_back(j);
    }
  }

  Filling Run() {
    for (const std::size_t n : state_.leaves_first) {
      if (!jobs_of_[n].empty()) FillNode(n);
    }
    // Jobs are held back by the lowest level above them.
    filling_.prices.assign(state_.nodes.size(), 0);
    for (auto n = state_.leaves_first.rbegin(); n != state_.leaves_first.rend(); ++n) {
      if (*n == 0) {
        filling_.prices[0] = 1 / levels_[0].key;
        continue;
      }
      const double above = levels_[state_.nodes[*n].parent].key;
      if (levels_[*n].key < above) {
        filling_.prices[*n] = 1 / levels_[*n].key - 1 / above;
      } else {
        levels_[*n].key = above;
      }
    }
    return std::move(filling_);
  }

 private:
  // A job in the search for the level of one node.
  struct Filled {
    const Member* member = nullptr;
    // The level at which a node below stops it, and its power there.
    Level stop = {};
    double stop_watts = 0;
    // Its count of segments at the highest key that is known to keep the limit, and at the lowest
    // known not to.
    std::size_t low = 0;
    std::size_t high = 0;
  };

  // Halves the doubles between the least key and the most, until `kept` and `broken` are
  // neighbours. False: the limit holds no job back.
  static bool FindKey(double limit, std::vector<Filled>* jobs, double* kept_key,
                      double* broken_key) {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (Filled& job : *jobs) {
      job.low = 0;
      job.high = job.member->curve.size() - 1;
      least = std::min(least, job.high > 0 ? KeyOf(*job.member, 0) : 0);
      most = std::max(most, job.high > 0 ? KeyOf(*job.member, job.high - 1) : 0);
    }
    std::vector<std::size_t> counts(jobs->size());
    const auto watts_at = [&](double key) {
      double sum = 0;
      for (std::size_t i = 0; i < jobs->size(); ++i) {
        const Filled& job = (*jobs)[i];
        counts[i] = FirstAbove(job.low, job.high,
                               [&](std::size_t k) { return KeyOf(*job.member, k) > key; });
        sum += key >= job.stop.key ? job.stop_watts : job.member->curve.watts[counts[i]];
      }
      return sum;
    };
    if (watts_at(most) <= limit) return false;
    // Below the least key, all jobs have their least, which keeps the limit. Doubles of 0 and more
    // are in the order of their bits.
    std::uint64_t kept = std::max<std::uint64_t>(std::bit_cast<std::uint64_t>(least), 1) - 1;
    auto broken = std::bit_cast<std::uint64_t>(most);
    if (broken <= kept) return false;  // No job can have more than the least.
    while (broken - kept > 1) {
      const std::uint64_t middle = kept + (broken - kept) / 2;
      const bool keeps = watts_at(std::bit_cast<double>(middle)) <= limit;
      (keeps ? kept : broken) = middle;
      for (std::size_t i = 0; i < jobs->size(); ++i) {
        ((*jobs)[i].*(keeps ? &Filled::low : &Filled::high)) = counts[i];
      }
    }
    *kept_key = std::bit_cast<double>(kept);
    *broken_key = std::bit_cast<double>(broken);
    return true;
  }

  void FillNode(std::size_t n) {
    std::vector<Filled> jobs;
    jobs.reserve(jobs_of_[n].size());
    for (const std::size_t j : jobs_of_[n]) jobs.push_back(stops_[j]);
    double kept = 0;
    double broken = 0;
    if (!FindKey(limits_[n], &jobs, &kept, &broken)) return;
    const Level level = {broken, FractionOf(limits_[n], kept, broken, jobs)};
    levels_[n] = level;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::size_t j = jobs_of_[n][i];
      if (!(level < stops_[j].stop)) continue;
      const Filled& job = jobs[i];
      const PowerCurve& curve = job.member->curve;
      const auto part = [&](const std::vector<double>& axis) {
        return axis[job.low] + level.fraction * (axis[job.high] - axis[job.low]);
      };
      stops_[j].stop = level;
      stops_[j].stop_watts = part(curve.watts);
      filling_.x[j] = part(curve.x);
    }
  }

  // Of the segments whose key is the first that breaks the limit, the part that is taken.
  static double FractionOf(double limit, double kept, double broken,
                           const std::vector<Filled>& jobs) {
    std::vector<std::pair<double, double>> parts;  // Where a node below stops it; watts.
    double sum = 0;
    for (const Filled& job : jobs) {
      const PowerCurve& curve = job.member->curve;
      const bool stopped = kept >= job.stop.key;
      sum += stopped ? job.stop_watts : curve.watts[job.low];
      if (stopped || job.high == job.low) continue;
      parts.emplace_back(job.stop.key == broken ? job.stop.fraction : 1,
                         curve.watts[job.high] - curve.watts[job.low]);
    }
    std::sort(parts.begin(), parts.end());
    double slope = 0;
    for (const auto& part : parts) slope += part.second;
    double fraction = 0;
    for (const auto& [stop, watts] : parts) {
      const double next = fraction + (limit - sum) / slope;
      if (next <= stop) return std::clamp(next, 0.0, 1.0);
      sum += slope * (stop - fraction);
      slope -= watts;
      fraction = stop;
    }
    return fraction;
  }

  const State& state_;
  const Limits& limits_;
  std::vector<Level> levels_;                      // [node]
  std::vector<std::vector<std::size_t>> jobs_of_;  // [node] that has a limit
  std::vector<Filled> stops_ = {};                 // [job]
  Filling filling_ = {};
};

// Max-min fairness: all rise together; those that touch a limit which is reached stay, the others
// go on. Jobs may have shares in several nodes. The limit that is reached first holds its jobs;
// then the next. Holding jobs never makes another limit bind earlier, so a level is computed again
// only when its turn comes.
class ShareFiller {
 public:
  ShareFiller(const State& state, const Limits& limits)
      : state_(state),
        limits_(limits),
        rising_(state.members.size(), true),
        jobs_of_(limits.size()) {
    for (std::size_t j = 0; j < state.members.size(); ++j) {
      const Member& member = state.members[j];
      filling_.x.push_back(member.curve.x.front());
      most_ = std::max(most_, RatioAt(member, member.curve.size() - 1));
      for (const PowerShare& share : member.nodes) {
        if (!std::isinf(limits[share.node])) jobs_of_[share.node].emplace_back(j, share.fraction);
      }
    }
    filling_.prices.assign(state.nodes.size(), 0);
  }

  Filling Run() {
    using Turn = std::pair<double, std::size_t>;  // Level, node.
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    for (std::size_t n = 0; n < jobs_of_.size(); ++n) {
      if (const auto level = LevelOf(n, 0)) turns.emplace(*level, n);
    }
    while (!turns.empty()) {
      const auto [known, n] = turns.top();
      turns.pop();
      const std::optional<double> level = LevelOf(n, known);
      if (!level) continue;
      if (*level > known) {
        turns.emplace(*level, n);
      } else {
        Hold(n, *level);
      }
    }
    for (std::size_t j = 0; j < rising_.size(); ++j) filling_.x[j] = ThroughputAt(j, most_);
    return std::move(filling_);
  }

 private:
  double ThroughputAt(std::size_t j, double ratio) const {
    if (!rising_[j]) return filling_.x[j];
    const Member& member = state_.members[j];
    return std::clamp(ratio * (member.per_speed * member.weight), member.curve.x.front(),
                      member.curve.x.back());
  }

  double WattsOf(std::size_t n, double ratio) const {
    double sum = 0;
    for (const auto& [j, fraction] : jobs_of_[n]) {
      sum += fraction * state_.members[j].curve.WattsAt(ThroughputAt(j, ratio));
    }
    return sum;
  }

  // The highest ratio that keeps a limit; `kept` is one that does. None: it holds nobody back. One
  // whose jobs all stay does not: rounding alone breaks it.
  std::optional<double> LevelOf(std::size_t n, double kept) const {
    const bool rises = std::any_of(jobs_of_[n].begin(), jobs_of_[n].end(),
                                   [&](const auto& job) { return rising_[job.first]; });
    if (!rises || WattsOf(n, most_) <= limits_[n]) return std::nullopt;
    auto low = std::bit_cast<std::uint64_t>(kept);
    auto high = std::bit_cast<std::uint64_t>(most_);
    while (low + 1 < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      (WattsOf(n, std::bit_cast<double>(middle)) <= limits_[n] ? low : high) = middle;
    }
    return std::bit_cast<double>(low);
  }

  void Hold(std::size_t n, double ratio) {
    double slope = 0;
    for (const auto& [j, fraction] : jobs_of_[n]) {
      if (!rising_[j]) continue;
      const Member& member = state_.members[j];
      filling_.x[j] = ThroughputAt(j, ratio);
      rising_[j] = false;
      const std::size_t last = member.curve.size() - 1;
      if (ratio < RatioAt(member, 0) || ratio >= RatioAt(member, last)) continue;
      const std::size_t k = FirstAbove(
          0, last, [&](std::size_t segment) { return RatioAt(member, segment + 1) > ratio; });
      slope += fraction * member.curve.SlopeAfter(k) * member.per_speed * member.weight;
    }
    filling_.prices[n] = slope > 0 ? 1 / slope : 0;
  }

  const State& state_;
  const Limits& limits_;
  std::vector<bool> rising_;
  std::vector<std::vector<std::pair<std::size_t, double>>> jobs_of_;  // [node]: job, its fraction.
  double most_ = 0;                                                   // Of all ratios.
  Filling filling_ = {};
};

// All jobs of a tenant as one: weighted speed against watts, the cheapest segments first.
Member TenantOf(const std::vector<const Member*>& members) {
  std::vector<std::tuple<double, double, double>> segments;  // Key, weighted speed, watts.
  Member tenant;
  double x = 0;
  double watts = 0;
  double weight = 0;
  for (const Member* member : members) {
    const PowerCurve& curve = member->curve;
    x += member->ValueOf(curve.x.front());
    watts += curve.watts.front();
    weight += member->weight;
    for (std::size_t k = 0; k + 1 < curve.size(); ++k) {
      segments.emplace_back(KeyOf(*member, k), member->ValueOf(curve.x[k + 1] - curve.x[k]),
                            curve.watts[k + 1] - curve.watts[k]);
    }
  }
  std::sort(segments.begin(), segments.end());
  tenant.curve = {{x}, {watts}};
  for (const auto& [key, speed, draws] : segments) {
    x += speed;
    watts += draws;
    if (x <= tenant.curve.x.back() || watts <= tenant.curve.watts.back()) continue;
    tenant.curve.x.push_back(x);
    tenant.curve.watts.push_back(watts);
  }
  tenant.per_speed = weight;
  tenant.nodes = {{0, 1.0}};
  return tenant;
}

// Max-min fairness among tenants under one limit, which holds all jobs.
Filling FillTenants(const State& state, double limit) {
  std::vector<std::vector<std::size_t>> jobs_of(state.tenants);
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    jobs_of[state.members[j].tenant].push_back(j);
  }
  State tenants;
  tenants.nodes = {NodeState{}};
  tenants.leaves_first = {0};
  for (const std::vector<std::size_t>& jobs : jobs_of) {
    std::vector<const Member*> members;
    members.reserve(jobs.size());
    for (const std::size_t j : jobs) members.push_back(&state.members[j]);
    tenants.members.push_back(TenantOf(members));
  }
  const Filling among = ShareFiller(tenants, {limit}).Run();
  Filling filling;
  filling.x.resize(state.members.size());
  for (std::size_t i = 0; i < jobs_of.size(); ++i) {
    State own;
    own.nodes = {NodeState{}};
    own.leaves_first = {0};
    for (const std::size_t j : jobs_of[i]) {
      own.members.push_back(state.members[j]);
      own.members.back().nodes = {{0, 1.0}};
    }
    const double watts = tenants.members[i].curve.WattsAt(among.x[i]);
    const Filling inside = TreeFiller(own, {watts}).Run();
    for (std::size_t k = 0; k < jobs_of[i].size(); ++k) filling.x[jobs_of[i][k]] = inside.x[k];
  }
  filling.prices = among.prices;
  return filling;
}

// The most weighted throughput where jobs have shares in several nodes with a limit: a linear
// program whose columns are the segments of all curves, by the simplex method on the rows of
// limits. It starts where all jobs have their least, which keeps all limits. Slopes rise along a
// curve, so a job is at a corner, or on one segment that is in the basis.
class ShareProgram {
 public:
  ShareProgram(const State& state, const Limits& limits)
      : state_(state), full_(state.members.size(), 0), is_basic_(state.members.size(), false) {
    constexpr auto kNoRow = static_cast<std::size_t>(-1);
    std::vector<std::size_t> row_of(limits.size(), kNoRow);
    const std::vector<double> least = NodeWatts(state, LeastOfCurves(state));
    for (const Member& member : state.members) {
      auto& parts = parts_.emplace_back();
      for (const PowerShare& share : member.nodes) {
        if (std::isinf(limits[share.node])) continue;
        if (row_of[share.node] == kNoRow) {
          row_of[share.node] = basis_.size();
          nodes_.push_back(share.node);
          basis_.push_back({kSlack, basis_.size()});
          values_.push_back(std::max(0.0, limits[share.node] - least[share.node]));
        }
        parts.emplace_back(row_of[share.node], share.fraction);
      }
    }
    const std::size_t rows = basis_.size();
    inverse_.assign(rows, std::vector<double>(rows, 0));
    for (std::size_t r = 0; r < rows; ++r) inverse_[r][r] = 1;
    slack_is_basic_.assign(rows, true);
  }

  // Errors: kInternal.
  Result<Filling> Run() {
    // The inverse is dense: its size and each pivot grow with the square of the rows.
    constexpr std::size_t kMostRows = 2000;
    if (basis_.size() > kMostRows) {
      return InvalidInput(
          fmt::format("jobs that span nodes are in nodes with {} limits, and this is exact for at "
                      "most {}; give "
                      "fewer of these nodes a limit",
                      basis_.size(), kMostRows));
    }
    std::int64_t most_pivots = 1'000'000;
    for (const Member& member : state_.members) {
      most_pivots += 2 * static_cast<std::int64_t>(member.curve.size());
    }
    int standing = 0;  // Pivots in a row that moved nothing.
    for (std::int64_t pivots = 0; pivots < most_pivots; ++pivots) {
      SetPrices();
      // After some pivots that move nothing the first that gains is taken until one moves, so that
      // the walk cannot go in circles (Bland's rule).
      constexpr int kMostStanding = 16;
      const Entry entry = Best(standing >= kMostStanding);
      if (entry.gain <= 0) return Filled();
      standing = Enter(entry) > 0 ? 0 : standing + 1;
    }
    return MakeError(ErrorCode::kInternal,
                     "no division was found where there is one; please report this");
  }

 private:
  static constexpr auto kSlack = static_cast<std::size_t>(-1);
  struct Column {
    std::size_t job = kSlack;  // kSlack: `index` is a row; else a segment.
    std::size_t index = 0;
  };
  struct Entry {
    double gain = 0;  // For a watt.
    Column column = {};
    bool falls = false;  // From all of the segment, not from nothing of it.
  };

  // Of a watt.
  double ValueOf(const Column& column) const {
    if (column.job == kSlack) return 0;
    return 1 / KeyOf(state_.members[column.job], column.index);
  }
  double WattsOf(const Column& column) const {
    const PowerCurve& curve = state_.members[column.job].curve;
    return curve.watts[column.index + 1] - curve.watts[column.index];
  }

  void SetPrices() {
    prices_.assign(basis_.size(), 0);
    for (std::size_t r = 0; r < basis_.size(); ++r) {
      const double value = ValueOf(basis_[r]);
      if (value == 0) continue;
      for (std::size_t k = 0; k < basis_.size(); ++k) prices_[k] += value * inverse_[r][k];
    }
  }

  Entry Best(bool any) const {
    constexpr double kRounding = 1e-12;
    Entry best;
    const auto offer = [&](double gain, double size, const Column& column, bool falls) {
      if (gain > kRounding * size && gain > best.gain) best = {gain, column, falls};
    };
    for (std::size_t j = 0; j < full_.size() && !(any && best.gain > 0); ++j) {
      if (is_basic_[j]) continue;
      double price = 0;
      for (const auto& [row, fraction] : parts_[j]) price += fraction * prices_[row];
      const auto worth = [&](std::size_t k) { return 1 / KeyOf(state_.members[j], k); };
      if (full_[j] + 1 < state_.members[j].curve.size()) {
        offer(worth(full_[j]) - price, price, {j, full_[j]}, false);
      }
      if (full_[j] > 0) offer(price - worth(full_[j] - 1), price, {j, full_[j] - 1}, true);
    }
    for (std::size_t r = 0; r < prices_.size() && !(any && best.gain > 0); ++r) {
      if (!slack_is_basic_[r]) offer(-prices_[r], std::abs(prices_[r]), {kSlack, r}, false);
    }
    return best;
  }

  // Moves a column as far as the basis allows, in watts of a segment or of a slack. Returns how
  // far.
  double Enter(const Entry& entry) {
    const Column& column = entry.column;
    const bool is_slack = column.job == kSlack;
    const double sign = entry.falls ? -1 : 1;
    std::vector<double> direction(basis_.size(), 0);
    for (std::size_t r = 0; r < basis_.size(); ++r) {
      if (is_slack) {
        direction[r] = inverse_[r][column.index];
      } else {
        for (const auto& [row, fraction] : parts_[column.job]) {
          direction[r] += fraction * inverse_[r][row];
        }
      }
    }
    double step = is_slack ? kNoPowerLimit : WattsOf(column);
    std::size_t leaves = basis_.size();
    bool leaves_full = false;
    for (std::size_t r = 0; r < basis_.size(); ++r) {
      constexpr double kSmallestPivot = 1e-11;
      const double rate = -sign * direction[r];
      if (std::abs(rate) < kSmallestPivot) continue;
      const bool has_most = basis_[r].job != kSlack;
      if (rate > 0 && !has_most) continue;
      const double room = rate < 0 ? values_[r] : WattsOf(basis_[r]) - values_[r];
      const double at = std::max(0.0, room) / std::abs(rate);
      if (at < step ||
          (at == step && leaves < basis_.size() && std::abs(rate) > std::abs(direction[leaves]))) {
        step = at;
        leaves = r;
        leaves_full = rate > 0;
      }
    }
    for (std::size_t r = 0; r < basis_.size(); ++r) values_[r] -= sign * step * direction[r];
    if (leaves == basis_.size()) {  // All of the segment, or nothing of it, without a pivot.
      if (!is_slack) full_[column.job] = column.index + (entry.falls ? 0 : 1);
      return step;
    }
    const Column left = basis_[leaves];
    if (left.job == kSlack) {
      slack_is_basic_[left.index] = false;
    } else {
      is_basic_[left.job] = false;
      full_[left.job] = left.index + (leaves_full ? 1 : 0);
    }
    if (is_slack) {
      slack_is_basic_[column.index] = true;
    } else {
      is_basic_[column.job] = true;
      full_[column.job] = column.index;
    }
    basis_[leaves] = column;
    values_[leaves] = entry.falls ? WattsOf(column) - step : step;
    std::vector<double>& pivot_row = inverse_[leaves];
    for (double& element : pivot_row) element /= direction[leaves];
    for (std::size_t r = 0; r < basis_.size(); ++r) {
      if (r == leaves || direction[r] == 0) continue;
      for (std::size_t k = 0; k < basis_.size(); ++k) {
        inverse_[r][k] -= direction[r] * pivot_row[k];
      }
    }
    return step;
  }

  Filling Filled() const {
    Filling filling;
    for (std::size_t j = 0; j < full_.size(); ++j) {
      filling.x.push_back(state_.members[j].curve.x[full_[j]]);
    }
    for (std::size_t r = 0; r < basis_.size(); ++r) {
      const auto& [job, segment] = basis_[r];
      if (job == kSlack) continue;
      const PowerCurve& curve = state_.members[job].curve;
      filling.x[job] = curve.ThroughputAt(curve.watts[segment] + std::max(0.0, values_[r]));
    }
    filling.prices.assign(state_.nodes.size(), 0);
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      filling.prices[nodes_[r]] = std::max(0.0, prices_[r]);
    }
    return filling;
  }

  const State& state_;
  std::vector<std::vector<std::pair<std::size_t, double>>> parts_ = {};  // [job]: row, fraction.
  std::vector<std::size_t> full_;        // [job]: segments that it has all of.
  std::vector<bool> is_basic_;           // [job]: whether the next segment is in the basis.
  std::vector<std::size_t> nodes_ = {};  // [row]
  std::vector<Column> basis_ = {};       // [row]
  std::vector<double> values_ = {};      // [row]: watts of the column in the basis.
  std::vector<std::vector<double>> inverse_ = {};
  std::vector<bool> slack_is_basic_ = {};  // [row]
  std::vector<double> prices_ = {};        // [row]: value for a watt.
};

// The options of every job: its plans, or some corners of its curve where it has none.
using OptionTable = std::vector<std::vector<PlanOption>>;  // [job]

// From one option of a job to a faster one.
struct PlanStep {
  double key = 0;  // Watts for a unit of weighted speed.
  std::size_t job = 0;
  std::size_t from = 0;
  std::size_t to = 0;
};

// One option for each job, and the watts of each node.
class Selection {
 public:
  // All at their least, which keeps all limits.
  Selection(const State& state, const Limits& limits, const OptionTable& options)
      : state_(state), options_(options), choices_(options.size(), 0) {
    for (const double limit : limits) limits_.push_back(limit * (1 + kLimitRounding));
    std::vector<double> watts;
    watts.reserve(options.size());
    for (const std::vector<PlanOption>& of_job : options) watts.push_back(of_job[0].watts);
    loads_ = NodeWatts(state, watts);
  }

  std::size_t ChoiceOf(std::size_t job) const { return choices_[job]; }
  const std::vector<std::size_t>& choices() const { return choices_; }
  // The most watts that the job may draw more, at the nodes from `first` on.
  double Room(std::size_t job, std::size_t first = 0) const {
    double room = std::numeric_limits<double>::infinity();
    for (const PowerShare& share : state_.members[job].nodes) {
      if (share.node < first) continue;
      room = std::min(room, (limits_[share.node] - loads_[share.node]) / share.fraction);
    }
    return room;
  }
  // Whether this many watts more keep the limit of node 0.
  bool FitsSite(double watts) const { return loads_[0] + watts <= limits_[0]; }
  void Choose(std::size_t job, std::size_t option) {
    const double more = options_[job][option].watts - options_[job][choices_[job]].watts;
    for (const PowerShare& share : state_.members[job].nodes) {
      loads_[share.node] += share.fraction * more;
    }
    choices_[job] = option;
  }

 private:
  // Sums may round by this part of a limit.
  static constexpr double kLimitRounding = 1e-12;

  const State& state_;
  const OptionTable& options_;
  Limits limits_;
  std::vector<std::size_t> choices_ = {};  // [job]
  std::vector<double> loads_ = {};         // [node]
};

// A curve without plans is represented by so many of its corners.
constexpr std::size_t kCurveOptions = 64;

OptionTable OptionsOfAll(const State& state) {
  OptionTable options;
  for (const Member& member : state.members) {
    options.push_back(member.options);
    if (!member.options.empty()) continue;
    const PowerCurve& curve = member.curve;
    const std::size_t last = curve.size() - 1;
    const std::size_t parts = std::min(last, kCurveOptions);
    for (std::size_t i = 0; i <= parts; ++i) {
      const std::size_t k = parts == 0 ? 0 : last * i / parts;
      options.back().push_back({curve.x[k], curve.watts[k], 0});
    }
  }
  return options;
}

// The steps along the lower hull of a job's options, cheapest first.
std::vector<PlanStep> HullSteps(const State& state, const OptionTable& options, std::size_t job) {
  const Member& member = state.members[job];
  const std::vector<PlanOption>& all = options[job];
  std::vector<PlanStep> steps;
  const auto key = [&](std::size_t from, std::size_t to) {
    return (all[to].watts - all[from].watts) / member.ValueOf(all[to].x - all[from].x);
  };
  for (std::size_t i = 1; i < all.size(); ++i) {
    while (!steps.empty() && key(steps.back().to, i) <= steps.back().key) steps.pop_back();
    const std::size_t from = steps.empty() ? 0 : steps.back().to;
    steps.push_back({key(from, i), job, from, i});
  }
  return steps;
}

// Steps that rise together: of one job, or of the jobs of a tenant.
struct Group {
  std::vector<PlanStep> steps = {};
  std::size_t next = 0;
  double ratio = 0;
  double weight = 0;  // What a unit of ratio is, in speed of a job or weighted speed of a tenant.
};

// All options of a job, one after the other.
std::vector<PlanStep> AllSteps(const OptionTable& options, std::size_t job) {
  std::vector<PlanStep> steps;
  for (std::size_t i = 0; i + 1 < options[job].size(); ++i) steps.push_back({0, job, i, i + 1});
  return steps;
}

std::vector<Group> GroupsOf(const State& state, const OptionTable& options, bool by_tenant) {
  std::vector<Group> groups(by_tenant ? state.tenants : state.members.size());
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    const Member& member = state.members[j];
    Group& group = groups[by_tenant ? member.tenant : j];
    group.weight += member.weight;
    group.ratio += (by_tenant ? member.weight : 1) * (options[j][0].x / member.per_speed);
    const std::vector<PlanStep> steps =
        by_tenant ? HullSteps(state, options, j) : AllSteps(options, j);
    group.steps.insert(group.steps.end(), steps.begin(), steps.end());
  }
  for (Group& group : groups) {
    group.ratio /= group.weight;
    std::stable_sort(group.steps.begin(), group.steps.end(),
                     [](const PlanStep& a, const PlanStep& b) { return a.key < b.key; });
  }
  return groups;
}

// Real plans for max-min fairness: the group with the smallest ratio takes its next step; one whose
// step does not fit stays. Groups are jobs or tenants. No choice of plans has a larger smallest
// ratio among jobs.
std::vector<std::size_t> FairChoices(const State& state, const Limits& limits,
                                     const OptionTable& options, bool by_tenant) {
  Selection selection(state, limits, options);
  std::vector<Group> groups = GroupsOf(state, options, by_tenant);
  using Turn = std::pair<double, std::size_t>;  // Ratio, group.
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  for (std::size_t g = 0; g < groups.size(); ++g) turns.emplace(groups[g].ratio, g);
  while (!turns.empty()) {
    const std::size_t g = turns.top().second;
    Group& group = groups[g];
    turns.pop();
    if (group.next == group.steps.size()) continue;
    const PlanStep& step = group.steps[group.next];
    const PlanOption& from = options[step.job][step.from];
    const PlanOption& to = options[step.job][step.to];
    if (to.watts - from.watts > selection.Room(step.job)) continue;
    selection.Choose(step.job, step.to);
    ++group.next;
    const Member& member = state.members[step.job];
    group.ratio +=
        (by_tenant ? member.weight : 1) * (to.x - from.x) / member.per_speed / group.weight;
    turns.emplace(group.ratio, g);
  }
  return selection.choices();
}

struct Move {
  double gain = 0;
  std::size_t job = 0;
  std::size_t option = 0;
};

// Real plans for weighted throughput: the steps of all jobs in the order of their cost, up to some
// place, then one job moved to any other of its options. The best of these that keeps all limits.
// The limit of node 0 decides only which of them do, so more watts there never lower the answer.
class Mover {
 public:
  Mover(const State& state, const Limits& limits, const OptionTable& options)
      : state_(state), options_(options), selection_(state, limits, options) {}

  std::vector<std::size_t> Run() {
    TakeSteps();
    double most_gain = 0;  // Of any move from anywhere.
    for (std::size_t j = 0; j < options_.size(); ++j) {
      most_gain = std::max(most_gain, Gain(j, 0, options_[j].size() - 1));
    }
    double lost = 0;  // Since the last step that fits.
    Move best = BestMove();
    double best_value = best.gain;
    std::size_t best_taken = taken_.size();
    for (std::size_t taken = taken_.size(); taken-- > 0;) {
      const PlanStep& step = taken_[taken];
      lost += Gain(step.job, step.from, step.to);
      if (most_gain - lost <= best_value) break;
      selection_.Choose(step.job, step.from);
      const Move move = BestMove();
      if (move.gain - lost <= best_value) continue;
      best = move;
      best_value = move.gain - lost;
      best_taken = taken;
    }
    std::vector<std::size_t> choices(options_.size(), 0);
    for (std::size_t i = 0; i < best_taken; ++i) choices[taken_[i].job] = taken_[i].to;
    if (best.gain > 0) choices[best.job] = best.option;
    return choices;
  }

 private:
  double Gain(std::size_t job, std::size_t from, std::size_t to) const {
    return state_.members[job].ValueOf(options_[job][to].x - options_[job][from].x);
  }

  // Up to the first step that the site has no watts for. A job whose step another node has no watts
  // for stays, and the others go on.
  void TakeSteps() {
    std::vector<PlanStep> steps;
    for (std::size_t j = 0; j < options_.size(); ++j) {
      const std::vector<PlanStep> of_job = HullSteps(state_, options_, j);
      steps.insert(steps.end(), of_job.begin(), of_job.end());
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const PlanStep& a, const PlanStep& b) { return a.key < b.key; });
    std::vector<bool> stays(options_.size(), false);
    for (const PlanStep& step : steps) {
      if (stays[step.job]) continue;
      const double watts = options_[step.job][step.to].watts - options_[step.job][step.from].watts;
      if (watts > selection_.Room(step.job, 1)) {
        stays[step.job] = true;
        continue;
      }
      if (!selection_.FitsSite(watts)) return;
      selection_.Choose(step.job, step.to);
      taken_.push_back(step);
    }
  }

  Move BestMove() const {
    Move best;
    for (std::size_t j = 0; j < options_.size(); ++j) {
      const std::vector<PlanOption>& options = options_[j];
      const std::size_t now = selection_.ChoiceOf(j);
      if (now + 1 == options.size()) continue;
      const double most = options[now].watts + selection_.Room(j);
      if (options[now + 1].watts > most) continue;
      const auto next = std::upper_bound(
          options.begin() + static_cast<std::ptrdiff_t>(now), options.end(), most,
          [](double watts, const PlanOption& option) { return watts < option.watts; });
      const auto option = static_cast<std::size_t>(next - options.begin()) - 1;
      const double gain = Gain(j, now, option);
      if (gain > best.gain) best = {gain, j, option};
    }
    return best;
  }

  const State& state_;
  const OptionTable& options_;
  Selection selection_;
  std::vector<PlanStep> taken_ = {};
};

double ObjectiveOf(const State& state, const std::vector<JobShare>& jobs,
                   FleetObjective objective) {
  if (jobs.empty()) return 0;
  double sum = 0;
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> speeds(state.tenants, 0);
  std::vector<double> weights(state.tenants, 0);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Member& member = state.members[j];
    sum += member.weight * jobs[j].speed;
    least = std::min(least, jobs[j].speed / member.weight);
    speeds[member.tenant] += member.weight * jobs[j].speed;
    weights[member.tenant] += member.weight;
  }
  if (objective == FleetObjective::kThroughput) return sum;
  if (objective == FleetObjective::kMaxMin) return least;
  least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < speeds.size(); ++i) least = std::min(least, speeds[i] / weights[i]);
  return least;
}

// The tightest limit, if every limit holds all of each job.
struct OneLimit {
  bool found = false;
  std::size_t node = 0;
  double watts = kNoPowerLimit;
};

OneLimit FindOneLimit(const State& state, const Limits& limits) {
  OneLimit one = {true};
  for (std::size_t n = 0; n < limits.size(); ++n) {
    if (std::isinf(limits[n])) continue;
    std::size_t inside = 0;
    std::size_t touching = 0;
    for (const Member& member : state.members) {
      for (const PowerShare& share : member.nodes) {
        touching += share.node == n;
        inside += share.node == n && share.fraction == 1;
      }
    }
    if (touching == 0) continue;
    if (inside < state.members.size()) return {};
    if (limits[n] < one.watts) one = {true, n, limits[n]};
  }
  return one;
}

Result<Filling> Fill(const State& state, const Limits& limits, FleetObjective objective) {
  if (objective == FleetObjective::kThroughput) {
    if (IsTree(state, limits)) return TreeFiller(state, limits).Run();
    return ShareProgram(state, limits).Run();
  }
  if (objective == FleetObjective::kMaxMin) return ShareFiller(state, limits).Run();
  const OneLimit one = FindOneLimit(state, limits);
  if (!one.found) {
    return InvalidInput(
        "fairness among tenants is divided under one limit, and here several hold some of the "
        "jobs; "
        "choose max-min, or remove limits that cannot be reached");
  }
  Filling filling = FillTenants(state, one.watts);
  filling.prices.resize(limits.size(), 0);
  std::swap(filling.prices[0], filling.prices[one.node]);
  return filling;
}

// Sums round. Moves jobs towards their least by as little as keeps all limits.
std::vector<double> Kept(const State& state, const Limits& limits, const PowerDivision& division,
                         std::vector<double> x) {
  const std::vector<double> least = NodeWatts(state, LeastOfCurves(state));
  std::vector<double> parts(limits.size(), 0);  // [node]
  for (std::size_t n = 0; n < limits.size(); ++n) {
    const double above = division.nodes[n].watts - limits[n];
    if (above <= 0) continue;
    const double most = division.nodes[n].watts - least[n];
    // Once more what this sum may round by.
    parts[n] = most > above ? std::min(1.0, above / most + 1e-15) : 1;
  }
  for (std::size_t j = 0; j < x.size(); ++j) {
    double part = 0;
    for (const PowerShare& share : state.members[j].nodes) part = std::max(part, parts[share.node]);
    x[j] -= part * (x[j] - state.members[j].curve.x.front());
  }
  return x;
}

PowerDivision DivisionOf(const State& state, const Limits& limits, const Filling& filling,
                         FleetObjective objective) {
  PowerDivision division = DivisionAt(state, filling.x);
  division = DivisionAt(state, Kept(state, limits, division, filling.x));
  for (std::size_t n = 0; n < limits.size(); ++n) {
    division.nodes[n].price_per_watt = filling.prices[n];
  }
  division.objective = ObjectiveOf(state, division.jobs, objective);
  return division;
}

Result<PowerDivision> BoundOf(const State& state, const Limits& limits, FleetObjective objective) {
  if (auto shortage = FirstShortage(state, limits, LeastOfCurves(state))) {
    return tl::unexpected<Error>(std::move(*shortage));
  }
  if (state.members.empty()) return DivisionAt(state, {});
  const Result<Filling> filling = Fill(state, limits, objective);
  if (!filling) return tl::unexpected<Error>(filling.error());
  return DivisionOf(state, limits, *filling, objective);
}

// Divides what plans leave among the jobs that have none.
Result<PowerDivision> DivideRest(const State& state, const Limits& limits, FleetObjective objective,
                                 const std::vector<double>& watts) {
  State rest;
  rest.nodes = state.nodes;
  rest.leaves_first = state.leaves_first;
  rest.tenants = state.tenants;
  rest.meter_factor = state.meter_factor;
  std::vector<double> taken = watts;
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    if (!state.members[j].options.empty()) continue;
    rest.members.push_back(state.members[j]);
    taken[j] = 0;
  }
  // Tenants without such a job would count as ratios of nothing.
  std::vector<std::size_t> numbers(state.tenants, state.tenants);
  rest.tenants = 0;
  for (Member& member : rest.members) {
    std::size_t& number = numbers[member.tenant];
    if (number == state.tenants) number = rest.tenants++;
    member.tenant = number;
  }
  Limits left = limits;
  const std::vector<double> sums = NodeWatts(state, taken);
  // The least of these jobs fits: what is missing of it is the rounding of the difference.
  const std::vector<double> least = NodeWatts(rest, LeastOfCurves(rest));
  for (std::size_t n = 0; n < left.size(); ++n) left[n] = std::max(least[n], left[n] - sums[n]);
  return BoundOf(rest, left, objective);
}

Result<PowerDivision> PlansOf(const State& state, const Limits& limits, FleetObjective objective) {
  const OptionTable options = OptionsOfAll(state);
  const std::vector<std::size_t> choices =
      objective == FleetObjective::kThroughput
          ? Mover(state, limits, options).Run()
          : FairChoices(state, limits, options, objective == FleetObjective::kMaxMinTenants);
  std::vector<double> watts;
  bool rest = false;
  for (std::size_t j = 0; j < choices.size(); ++j) {
    watts.push_back(options[j][choices[j]].watts);
    rest = rest || state.members[j].options.empty();
  }
  PowerDivision of_rest;
  if (rest) {
    Result<PowerDivision> divided = DivideRest(state, limits, objective, watts);
    if (!divided) return divided;
    of_rest = std::move(*divided);
  }
  PowerDivision division;
  std::size_t next = 0;
  for (std::size_t j = 0; j < choices.size(); ++j) {
    JobShare& share = division.jobs.emplace_back();
    if (state.members[j].options.empty()) {
      share = of_rest.jobs[next++];
      watts[j] = share.watts * state.meter_factor;
      continue;
    }
    const PlanOption& option = options[j][choices[j]];
    share.time_seconds = 1 / option.x;
    share.iterations_per_second = option.x;
    share.watts = option.watts / state.meter_factor;
    share.speed = option.x / state.members[j].per_speed;
    share.plan = option.plan;
  }
  for (const double sum : NodeWatts(state, watts)) division.nodes.push_back({sum, 0});
  division.objective = ObjectiveOf(state, division.jobs, objective);
  return division;
}

}  // namespace
}  // namespace perseus::fleet

namespace perseus {
inline namespace v0 {

Result<PowerDivision> PreparedSite::DivideBound(FleetObjective objective,
                                                std::span<const double> limit_watts) const {
  const Result<fleet::Limits> limits = fleet::LimitsOf(*state_, limit_watts);
  if (!limits) return tl::unexpected<Error>(limits.error());
  return fleet::BoundOf(*state_, *limits, objective);
}

Result<FleetAnswer> PreparedSite::Divide(FleetObjective objective,
                                         std::span<const double> limit_watts) const {
  const Result<fleet::Limits> limits = fleet::LimitsOf(*state_, limit_watts);
  if (!limits) return tl::unexpected<Error>(limits.error());
  if (auto shortage = fleet::FirstShortage(*state_, *limits, fleet::LeastOfPlans(*state_))) {
    return tl::unexpected<Error>(std::move(*shortage));
  }
  Result<PowerDivision> bound = fleet::BoundOf(*state_, *limits, objective);
  if (!bound) return tl::unexpected<Error>(bound.error());
  const bool has_plans =
      std::any_of(state_->members.begin(), state_->members.end(),
                  [](const fleet::Member& member) { return !member.options.empty(); });
  if (!has_plans) {
    PowerDivision same = *bound;
    return FleetAnswer{std::move(*bound), std::move(same)};
  }
  Result<PowerDivision> plans = fleet::PlansOf(*state_, *limits, objective);
  if (!plans) return tl::unexpected<Error>(plans.error());
  return FleetAnswer{std::move(*bound), std::move(*plans)};
}

Result<std::vector<PowerShortage>> PreparedSite::Shortages(
    std::span<const double> limit_watts) const {
  const Result<fleet::Limits> limits = fleet::LimitsOf(*state_, limit_watts);
  if (!limits) return tl::unexpected<Error>(limits.error());
  return fleet::ShortagesOf(*state_, *limits, fleet::LeastOfPlans(*state_));
}

Result<std::vector<PowerShortage>> FindShortages(const PowerSite& site) {
  const Result<PreparedSite> prepared = PreparedSite::Make(site);
  if (!prepared) return tl::unexpected<Error>(prepared.error());
  return prepared->Shortages();
}

Result<FleetAnswer> DividePower(const PowerSite& site, FleetObjective objective) {
  const Result<PreparedSite> prepared = PreparedSite::Make(site);
  if (!prepared) return tl::unexpected<Error>(prepared.error());
  return prepared->Divide(objective);
}

}  // namespace v0
}  // namespace perseus
