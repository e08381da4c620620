// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_RULE_H_
#define PERSEUS_SITE_DAYS_RULE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perseus/result.h"
#include "site/days/days.h"
#include "site/days/loads.h"
#include "site/days/pace.h"

namespace perseus::site {

// What a rule sees.
struct DaysMoment {
  double seconds = 0;
  std::vector<std::size_t> present = {};       // Jobs, ascending.
  std::vector<std::vector<double>> slow = {};  // [k of present]: see PaceOf().
  std::vector<double> limits = {};             // [node]
  // [k of present]: when it came, and the iterations that it has done.
  std::vector<double> arrived = {};
  std::vector<double> done = {};
};

struct DaysDecision {
  std::vector<JobRun> runs = {};  // [k of present]
  double price_per_watt = 0;
  std::optional<double> again_seconds = {};  // Ask again then, even if nothing happens.
};

class DaysRule {
 public:
  DaysRule() = default;
  DaysRule(const DaysRule&) = delete;
  DaysRule& operator=(const DaysRule&) = delete;
  virtual ~DaysRule() = default;

  virtual std::string name() const = 0;
  virtual std::string title() const = 0;
  virtual std::string says() const = 0;
  virtual bool knows_price() const { return false; }
  // Its changes are in effect at once, and budgets do not ramp.
  virtual bool at_once() const { return false; }
  virtual Result<DaysDecision> Decide(const DaysMoment& moment) = 0;
};

// All rules for this site, in the order of the table. They keep references to `site` and `tree`,
// and some keep what they decided: make new ones for each seed.
std::vector<std::unique_ptr<DaysRule>> MakeRules(const DaysSite& site, const LoadTree& tree,
                                                 double seconds);

// The parts of that list, by what the rules know.
void AddCapRules(const DaysSite& site, const LoadTree& tree,
                 std::vector<std::unique_ptr<DaysRule>>* rules);
void AddFrontierRules(const DaysSite& site, const LoadTree& tree,
                      std::vector<std::unique_ptr<DaysRule>>* rules);
// Least cost: only where there is a price, or CO2, or a deadline.
void AddPricedRule(const DaysSite& site, double seconds,
                   std::vector<std::unique_ptr<DaysRule>>* rules);
void AddBound(const DaysSite& site, std::vector<std::unique_ptr<DaysRule>>* rules);

// The fastest option within `watts`; where none is, that of least power.
const PaceOption& FastestWithin(const std::vector<PaceOption>& options, double watts);

// What perseus/fleet.h divides at this moment.
PowerSite SiteAt(const DaysSite& site, const DaysMoment& moment);

// What a healthy pipeline does in the mean where a job alternates between plans, or is between
// them: the point with which PaceOf() is the share.
IterationPoint MeanPoint(const DaysJob& job, const JobShare& share, std::span<const double> slow);

// Whether a job with this share is paused: it does nothing, or would wait too long for its next
// iteration. It never is where its owner does not accept that.
bool IsPause(const DaysJob& job, const JobShare& share, std::span<const double> slow);

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_RULE_H_
