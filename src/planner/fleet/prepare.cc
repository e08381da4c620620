// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/printable.h"
#include "fleet/division.h"

namespace perseus::fleet {
namespace {

// Beyond these, sums lose digits or overflow. No site is near them.
constexpr double kLargest = 1e15;
constexpr double kSmallestTime = 1e-9;

std::string Label(std::string_view kind, const std::string& name, std::size_t index) {
  return name.empty() ? fmt::format("{} {}", kind, index)
                      : fmt::format("{} \"{}\"", kind, Printable(name));
}

// For messages: job "a", or job 3 where it has no name. Jobs and nodes count from 0.
std::string JobLabel(const PowerSite& site, std::size_t job) {
  return Label("job", site.jobs[job].name, job);
}

std::string NodeLabel(const PowerSite& site, std::size_t node) {
  return node == 0 && site.nodes[0].name.empty() ? "site"
                                                 : Label("node", site.nodes[node].name, node);
}

// Says what is wrong with a site.
class Checker {
 public:
  explicit Checker(const PowerSite& site) : site_(site) {}

  std::optional<Error> Run() {
    CheckNodes();
    Number("site", "meter_factor", site_.meter_factor, 1e-3, 1e3, "a factor above 0");
    for (std::size_t j = 0; j < site_.jobs.size() && !fault_; ++j) CheckJob(j);
    return std::move(fault_);
  }

 private:
  void Fail(std::string_view field, std::string message) {
    if (fault_) return;
    fault_ = Error{ErrorCode::kInvalidInput, std::move(message)};
    fault_->field = field;
  }

  void Number(std::string_view where, std::string_view field, double value, double least,
              double most, std::string_view expected) {
    if (value >= least && value <= most) return;
    Fail(field, fmt::format("{}: {} is {}, but expected {}.", where, field, value, expected));
  }
  void Time(std::string_view where, std::string_view field, double value) {
    Number(where, field, value, kSmallestTime, kLargest, "seconds above 0");
  }
  void Positive(std::string_view where, std::string_view field, double value,
                std::string_view unit) {
    Number(where, field, value, 0, kLargest, fmt::format("{}, 0 or more", unit));
  }

  void CheckNodes() {
    if (site_.nodes.empty()) {
      return Fail("nodes", "The site has no node: add node 0, which carries the whole site.");
    }
    for (std::size_t n = 0; n < site_.nodes.size() && !fault_; ++n) {
      const PowerNode& node = site_.nodes[n];
      const std::string where = NodeLabel(site_, n);
      if (!(node.limit_watts >= 0)) {
        Fail("limit_watts", fmt::format("{}: limit_watts is {}, but expected watts, 0 or more.",
                                        where, node.limit_watts));
      }
      if ((n == 0) == node.parent.has_value()) {
        return Fail("parent", n == 0
                                  ? where + ": it is the whole site, but has a parent: remove it."
                                  : where + ": it has no parent; name the node that feeds it.");
      }
      if (n > 0 && *node.parent >= site_.nodes.size()) {
        return Fail("parent", fmt::format("{}: its parent is node {}, but there are {} nodes.",
                                          where, *node.parent, site_.nodes.size()));
      }
    }
    for (std::size_t n = 1; n < site_.nodes.size() && !fault_; ++n) CheckReachesRoot(n);
  }

  void CheckReachesRoot(std::size_t start) {
    std::size_t n = start;
    for (std::size_t steps = 0; n != 0; ++steps) {
      if (steps == site_.nodes.size()) {
        return Fail("parent", fmt::format("{}: its parents form a circle; lead them to {}.",
                                          NodeLabel(site_, start), NodeLabel(site_, 0)));
      }
      n = *site_.nodes[n].parent;
    }
  }

  void CheckJob(std::size_t j) {
    const FleetJob& job = site_.jobs[j];
    const std::string where = JobLabel(site_, j);
    if (job.frontier.empty()) {
      return Fail("frontier", where + ": it has no frontier; give one point at least.");
    }
    double fastest = kLargest;
    for (const IterationPoint& point : job.frontier)
      fastest = CheckPoint(where, "frontier", point, fastest);
    double fastest_plan = kLargest;
    for (const IterationPoint& point : job.plans) {
      fastest_plan = CheckPoint(where, "plans", point, fastest_plan);
    }
    if (!job.plans.empty()) fastest = fastest_plan;
    for (const LatePipeline& late : job.late) CheckPoint(where, "late", late.point, fastest);
    Time(where, "full_speed_seconds", job.full_speed_seconds);
    Positive(where, "waiting_watts", job.waiting_watts, "watts");
    Positive(where, "fixed_watts", job.fixed_watts, "watts");
    Positive(where, "least_watts", job.least_watts, "watts");
    Number(where, "weight", job.weight, 1e-12, 1e12, "a number above 0");
    Number(where, "pipelines", job.pipelines, 1, 1e9, "1 or more");
    if (job.pipelines >= 1 && job.late.size() > static_cast<std::size_t>(job.pipelines)) {
      Fail("late", fmt::format("{}: {} of its pipelines are late, but it has {}.", where,
                               job.late.size(), job.pipelines));
    }
    if (job.slowest_seconds) {
      Time(where, "slowest_seconds", *job.slowest_seconds);
      if (*job.slowest_seconds < fastest) {
        Fail("slowest_seconds",
             fmt::format("{}: its owner accepts {} s for an iteration at most, but its fastest{} "
                         "takes {} s; accept a longer time.",
                         where, *job.slowest_seconds, job.plans.empty() ? "" : " plan", fastest));
      }
    }
    CheckShares(where, job);
  }

  double CheckPoint(std::string_view where, std::string_view field, const IterationPoint& point,
                    double fastest) {
    if (!(point.time_seconds >= kSmallestTime && point.time_seconds <= kLargest &&
          point.energy_joules >= 0 && point.energy_joules <= kLargest)) {
      Fail(field, fmt::format("{}: a point of {} takes {} s and {} J, but expected a time above 0 "
                              "and an energy of 0 or more.",
                              where, field, point.time_seconds, point.energy_joules));
    }
    return std::min(fastest, point.time_seconds);
  }

  void CheckShares(std::string_view where, const FleetJob& job) {
    if (job.shares.empty()) return;
    double sum = 0;
    for (const PowerShare& share : job.shares) {
      if (share.node >= site_.nodes.size()) {
        return Fail("shares", fmt::format("{}: a share is in node {}, but there are {} nodes.",
                                          where, share.node, site_.nodes.size()));
      }
      Number(where, "shares", share.fraction, 0, 1, "fractions from 0 to 1");
      sum += share.fraction;
    }
    if (!(std::abs(sum - 1) <= 1e-9)) {
      Fail("shares", fmt::format("{}: its shares sum to {}, but expected 1.", where, sum));
    }
  }

  const PowerSite& site_;
  std::optional<Error> fault_ = {};
};

struct PowerPoint {
  double x = 0;
  double watts = 0;
};

// The lower hull of points with ascending x.
std::vector<PowerPoint> LowerHull(const std::vector<PowerPoint>& points) {
  std::vector<PowerPoint> hull;
  hull.reserve(points.size());
  for (const PowerPoint& point : points) {
    if (!hull.empty() && point.x == hull.back().x) {
      if (point.watts >= hull.back().watts) continue;
      hull.pop_back();
    }
    while (hull.size() >= 2) {
      const PowerPoint& a = hull[hull.size() - 2];
      const PowerPoint& b = hull.back();
      if ((b.watts - a.watts) * (point.x - b.x) < (point.watts - b.watts) * (b.x - a.x)) break;
      hull.pop_back();
    }
    hull.push_back(point);
  }
  return hull;
}

double Between(double from, double to, double low, double high, double at) {
  return from + (to - from) * ((at - low) / (high - low));
}

// The index of the segment that holds `value`, of a list with two elements or more.
std::size_t SegmentOf(const std::vector<double>& ascending, double value) {
  const auto next = std::upper_bound(ascending.begin() + 1, ascending.end() - 1, value);
  return static_cast<std::size_t>(next - ascending.begin()) - 1;
}

// Cuts what is left of `x`. The first corner is at it or before it.
void CutBefore(double x, PowerCurve* curve) {
  if (x <= curve->x.front()) return;
  if (x >= curve->x.back()) {
    *curve = {{curve->x.back()}, {curve->watts.back()}};
    return;
  }
  const double watts = curve->WattsAt(x);
  const auto cut = std::upper_bound(curve->x.begin(), curve->x.end(), x) - curve->x.begin();
  curve->x.erase(curve->x.begin(), curve->x.begin() + (cut - 1));
  curve->watts.erase(curve->watts.begin(), curve->watts.begin() + (cut - 1));
  curve->x.front() = x;
  curve->watts.front() = watts;
}

void CutAfter(double x, PowerCurve* curve) {
  if (x >= curve->x.back()) return;
  const double watts = curve->WattsAt(x);
  const auto cut = std::lower_bound(curve->x.begin(), curve->x.end(), x) - curve->x.begin();
  curve->x.resize(static_cast<std::size_t>(cut) + 1);
  curve->watts.resize(static_cast<std::size_t>(cut) + 1);
  curve->x.back() = x;
  curve->watts.back() = watts;
}

// Leaves out corners between segments whose slopes, as SlopeAfter() computes them, do not rise:
// what searches by slope relies on it.
PowerCurve WithRisingSlopes(const PowerCurve& curve) {
  PowerCurve kept;
  for (std::size_t k = 0; k < curve.size(); ++k) {
    const auto slope_to = [&](std::size_t from) {
      return (curve.watts[k] - kept.watts[from]) / (curve.x[k] - kept.x[from]);
    };
    while (kept.size() >= 2 && slope_to(kept.size() - 1) <= kept.SlopeAfter(kept.size() - 2)) {
      kept.x.pop_back();
      kept.watts.pop_back();
    }
    kept.x.push_back(curve.x[k]);
    kept.watts.push_back(curve.watts[k]);
  }
  return kept;
}

// Sums may round by this part of a limit.
constexpr double kSumRounding = 1e-12;
constexpr std::size_t kNamedJobs = 5;

// The jobs whose suspension frees `missing` watts of a node, least weight for a watt first.
std::vector<std::size_t> CheapestSuspensions(const State& state, std::size_t node, double missing,
                                             const std::vector<double>& least_watts) {
  struct Candidate {
    double price = 0;
    double watts = 0;
    std::size_t job = 0;
  };
  std::vector<Candidate> candidates;
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    for (const PowerShare& share : state.members[j].nodes) {
      const double watts = share.fraction * least_watts[j];
      if (share.node != node || watts == 0) continue;
      candidates.push_back({state.members[j].weight / watts, watts, j});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.price < b.price; });
  double freed = 0;
  std::vector<Candidate> chosen;
  for (const Candidate& candidate : candidates) {
    if (freed >= missing) break;
    chosen.push_back(candidate);
    freed += candidate.watts;
  }
  // The last ones may free so much that earlier, dearer ones of them are not needed.
  for (std::size_t i = chosen.size(); i-- > 0;) {
    if (freed - chosen[i].watts < missing) continue;
    freed -= chosen[i].watts;
    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::vector<std::size_t> jobs;
  jobs.reserve(chosen.size());
  for (const Candidate& candidate : chosen) jobs.push_back(candidate.job);
  return jobs;
}

// Power of all pipelines of a job at the meter while one that is not late draws `watts`.
struct JobScale {
  JobScale(const FleetJob& job, double meter_factor)
      : factor(meter_factor),
        pipelines(job.pipelines - static_cast<double>(job.late.size())),
        constant_watts(job.fixed_watts) {
    for (const LatePipeline& late : job.late) {
      late_joules += late.point.energy_joules - job.waiting_watts * late.point.time_seconds;
      constant_watts += job.waiting_watts;
      fastest = std::min(fastest, 1 / late.point.time_seconds);
    }
  }

  double WattsOfJob(double x, double watts) const {
    return factor * (pipelines * watts + late_joules * x + constant_watts);
  }

  double factor = 1;
  double pipelines = 0;       // Those that are not late.
  double late_joules = 0;     // What late ones need for an iteration beyond waiting.
  double constant_watts = 0;  // Late ones that wait, and the job's own.
  double fastest = std::numeric_limits<double>::infinity();  // The most iterations a second.
};

// The lower hull of these points and of waiting, for the whole job, without what more throughput
// for less power makes useless. Clipped to what late pipelines, the owner and least_watts allow.
PowerCurve MakePowerCurve(const FleetJob& job, double meter_factor,
                          std::span<const IterationPoint> points) {
  const JobScale scale(job, meter_factor);
  std::vector<PowerPoint> all = {{0, job.waiting_watts}};
  all.reserve(points.size() + 1);
  for (const IterationPoint& point : points) {
    all.push_back({1 / point.time_seconds, point.energy_joules / point.time_seconds});
  }
  std::sort(all.begin(), all.end(), [](const PowerPoint& a, const PowerPoint& b) {
    return a.x != b.x ? a.x < b.x : a.watts < b.watts;
  });
  PowerCurve curve;
  for (const PowerPoint& corner : LowerHull(all)) {
    curve.x.push_back(corner.x);
    curve.watts.push_back(scale.WattsOfJob(corner.x, corner.watts));
  }
  CutAfter(scale.fastest, &curve);
  if (job.slowest_seconds) CutBefore(1 / *job.slowest_seconds, &curve);
  // From here on more power always means more throughput.
  std::size_t useful = 0;
  while (useful + 1 < curve.size() && curve.watts[useful + 1] <= curve.watts[useful]) ++useful;
  CutBefore(curve.x[useful], &curve);
  CutBefore(curve.ThroughputAt(meter_factor * job.least_watts), &curve);
  return WithRisingSlopes(curve);
}

// A part of a job is all of it, up to rounding.
constexpr double kWhole = 1 - 1e-12;
// Steps of waiting after the slowest plan of a job that has plans and may wait.
constexpr int kWaitingSteps = 64;

std::vector<PlanOption> OptionsOf(const FleetJob& job, double meter_factor) {
  const JobScale scale(job, meter_factor);
  std::vector<PlanOption> all;
  std::size_t slowest = 0;
  for (std::size_t p = 0; p < job.plans.size(); ++p) {
    if (job.plans[p].time_seconds > job.plans[slowest].time_seconds) slowest = p;
  }
  // One that is faster than late pipelines waits for them; so does one that must be slower.
  const auto add = [&](std::size_t p, double at) {
    const double x = 1 / job.plans[p].time_seconds;
    const double watts = job.plans[p].energy_joules / job.plans[p].time_seconds;
    const double waits = job.waiting_watts + (watts - job.waiting_watts) * (at / x);
    all.push_back({at, scale.WattsOfJob(at, waits), p});
  };
  for (std::size_t p = 0; p < job.plans.size(); ++p) {
    add(p, std::min(1 / job.plans[p].time_seconds, scale.fastest));
  }
  const double least = MakePowerCurve(job, meter_factor, job.plans).x.front();
  const double rest = std::min(1 / job.plans[slowest].time_seconds, scale.fastest);
  if (rest > least) {
    for (int i = 0; i < kWaitingSteps; ++i)
      add(slowest, least + (rest - least) * i / kWaitingSteps);
  }
  // Remove options that the owner does not accept, or that draw more watts for less throughput.
  std::erase_if(all, [&](const PlanOption& option) { return option.x < least * kWhole; });
  std::sort(all.begin(), all.end(), [](const PlanOption& a, const PlanOption& b) {
    if (a.watts != b.watts) return a.watts < b.watts;
    return a.x != b.x ? a.x > b.x : a.plan < b.plan;
  });
  std::vector<PlanOption> kept;
  for (const PlanOption& option : all) {
    if (kept.empty() || option.x > kept.back().x) kept.push_back(option);
  }
  return kept;
}

std::vector<PowerShare> NodesOf(const FleetJob& job, const State& state) {
  std::map<std::size_t, double> fractions;
  const std::vector<PowerShare> whole = {{0, 1.0}};
  for (const PowerShare& share : job.shares.empty() ? whole : job.shares) {
    if (share.fraction == 0) continue;
    for (std::size_t n = share.node;; n = state.nodes[n].parent) {
      fractions[n] += share.fraction;
      if (n == 0) break;
    }
  }
  std::vector<PowerShare> nodes;
  for (const std::size_t n : state.leaves_first) {
    if (const auto found = fractions.find(n); found != fractions.end()) {
      nodes.push_back({n, found->second > kWhole ? 1.0 : found->second});
    }
  }
  return nodes;
}

std::vector<std::size_t> LeavesFirst(const std::vector<NodeState>& nodes) {
  std::vector<std::size_t> depth(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (std::size_t up = n; up != 0; up = nodes[up].parent) ++depth[n];
  }
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return depth[a] > depth[b]; });
  return order;
}

Member MakeMember(const PowerSite& site, std::size_t j, const State& state) {
  const FleetJob& job = site.jobs[j];
  Member member;
  member.label = JobLabel(site, j);
  if (job.plans.empty()) {
    member.curve = MakePowerCurve(job, site.meter_factor, job.frontier);
  } else {
    std::vector<IterationPoint> points = job.frontier;
    points.insert(points.end(), job.plans.begin(), job.plans.end());
    member.curve = MakePowerCurve(job, site.meter_factor, points);
    member.options = OptionsOf(job, site.meter_factor);
  }
  member.per_speed = 1 / job.full_speed_seconds;
  member.weight = job.weight;
  member.nodes = NodesOf(job, state);
  return member;
}

}  // namespace

double PowerCurve::WattsAt(double at) const {
  if (size() == 1 || at <= x.front()) return watts.front();
  if (at >= x.back()) return watts.back();
  const std::size_t k = SegmentOf(x, at);
  return Between(watts[k], watts[k + 1], x[k], x[k + 1], at);
}

double PowerCurve::ThroughputAt(double power) const {
  if (size() == 1 || power <= watts.front()) return x.front();
  if (power >= watts.back()) return x.back();
  const std::size_t k = SegmentOf(watts, power);
  return Between(x[k], x[k + 1], watts[k], watts[k + 1], power);
}

std::vector<PowerShortage> ShortagesOf(const State& state, const Limits& limits,
                                       const std::vector<double>& least_watts) {
  const std::vector<double> sums = NodeWatts(state, least_watts);
  std::vector<PowerShortage> shortages;
  for (std::size_t n = 0; n < sums.size(); ++n) {
    if (sums[n] <= limits[n] * (1 + kSumRounding)) continue;
    const double missing = sums[n] - limits[n];
    shortages.push_back({n, missing, CheapestSuspensions(state, n, missing, least_watts)});
  }
  return shortages;
}

std::optional<Error> FirstShortage(const State& state, const Limits& limits,
                                   const std::vector<double>& least_watts) {
  const std::vector<PowerShortage> shortages = ShortagesOf(state, limits, least_watts);
  if (shortages.empty()) return std::nullopt;
  const PowerShortage& first = shortages.front();
  std::vector<std::string> names;
  for (const std::size_t j : first.suspend) {
    if (names.size() == kNamedJobs) break;
    names.push_back(state.members[j].label);
  }
  const std::size_t more = first.suspend.size() - names.size();
  return Error{
      ErrorCode::kInfeasible,
      fmt::format("{}: its limit is {:.0f} W, but its jobs need {:.0f} W more even as slow "
                  "as their owners accept; raise the limit, accept slower jobs, or suspend "
                  "{}{}.",
                  state.nodes[first.node].label, limits[first.node],
                  std::max(1.0, first.missing_watts), fmt::join(names, ", "),
                  more == 0 ? "" : fmt::format(" and {} more", more))};
}

std::vector<double> LeastOfCurves(const State& state) {
  std::vector<double> watts;
  watts.reserve(state.members.size());
  for (const Member& member : state.members) watts.push_back(member.curve.watts.front());
  return watts;
}

std::vector<double> LeastOfPlans(const State& state) {
  std::vector<double> watts;
  watts.reserve(state.members.size());
  for (const Member& member : state.members) watts.push_back(member.LeastWatts());
  return watts;
}

Result<Limits> LimitsOf(const State& state, std::span<const double> limit_watts) {
  Limits limits;
  if (limit_watts.empty()) {
    for (const NodeState& node : state.nodes) limits.push_back(node.limit_watts);
    return limits;
  }
  if (limit_watts.size() != state.nodes.size()) {
    return InvalidInput(fmt::format("There are {} limits, but {} nodes: expected one for each.",
                                    limit_watts.size(), state.nodes.size()));
  }
  for (std::size_t n = 0; n < limit_watts.size(); ++n) {
    if (!(limit_watts[n] >= 0)) {
      return InvalidInput(fmt::format("{}: its limit is {} W, but expected watts, 0 or more.",
                                      state.nodes[n].label, limit_watts[n]));
    }
  }
  limits.assign(limit_watts.begin(), limit_watts.end());
  return limits;
}

std::vector<double> NodeWatts(const State& state, std::span<const double> watts) {
  std::vector<double> sums(state.nodes.size(), 0);
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    for (const PowerShare& share : state.members[j].nodes) {
      sums[share.node] += share.fraction * watts[j];
    }
  }
  return sums;
}

}  // namespace perseus::fleet

namespace perseus {
inline namespace v0 {

PreparedSite::PreparedSite(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<PreparedSite> PreparedSite::Make(const PowerSite& site) {
  if (auto fault = fleet::Checker(site).Run()) return tl::unexpected<Error>(std::move(*fault));
  auto state = std::make_shared<State>();
  state->meter_factor = site.meter_factor;
  for (std::size_t n = 0; n < site.nodes.size(); ++n) {
    state->nodes.push_back(
        {fleet::NodeLabel(site, n), site.nodes[n].parent.value_or(0), site.nodes[n].limit_watts});
  }
  state->leaves_first = fleet::LeavesFirst(state->nodes);
  std::map<std::string, std::size_t> tenants;
  state->members.reserve(site.jobs.size());
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    fleet::Member& member = state->members.emplace_back(fleet::MakeMember(site, j, *state));
    const std::string& tenant = site.jobs[j].tenant;
    member.tenant =
        tenant.empty() ? state->tenants : tenants.emplace(tenant, state->tenants).first->second;
    if (member.tenant == state->tenants) ++state->tenants;
  }
  return PreparedSite(std::move(state));
}

}  // namespace v0
}  // namespace perseus
