// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "report/chart.h"
#include "report/document.h"
#include "report/page.h"
#include "report/text.h"
#include "site/days/days_report.h"

namespace perseus::site {
namespace {

using report::FixedText;

constexpr double kKiloWatt = 1e3;
constexpr int kPageColumns = 600;
constexpr std::string_view kOurs = "perseus";

// A group of jobs in the picture.
struct Layer {
  std::string name;
  std::vector<double> watts;  // [column], at the meter.
};

class DaysPage {
 public:
  explicit DaysPage(const DaysReport& report)
      : report_(report),
        site_(*report.site),
        answer_(*report.answer),
        in_days_(report.seconds > 3 * kSecondsOfDay),
        unit_seconds_(in_days_ ? kSecondsOfDay : kSecondsOfHour) {}

  std::string Format() {
    Header();
    RuleTable();
    const RuleAnswer* ours = FindRule(answer_, kOurs);
    const RuleAnswer* priced = FindRule(answer_, "perseus-priced");
    Power(*ours, "power");
    Prices(*ours);
    Givers(*ours);
    if (priced != nullptr) {
      Power(*priced, "pricedpower");
      Series();
      Givers(*priced);
    }
    SmallPrint();
    return report::HtmlOf(document_);
  }

 private:
  static std::string Kilowatts(double watts, int decimals = 1) {
    return FixedText(watts / kKiloWatt, decimals);
  }
  std::string Text(const RuleAnswer& rule, double DaysFigures::*figure, double factor,
                   int decimals) const {
    const Spread spread = SpreadOf(rule.figures, figure);
    std::string text = FixedText(spread.mean / factor, decimals);
    if (rule.figures.size() > 1) {
      text += " \u00b1 " + FixedText(spread.deviation / factor, decimals);
    }
    return text;
  }

  void Header() {
    std::int64_t gpus = 0;
    for (const DaysJob& job : site_.jobs) gpus += job.gpus;
    document_.title = fmt::format("The site {} for {}", report_.name, Length());
    document_.subtitle =
        fmt::format("{} on {} GPUs; usual limit {} kW; {}",
                    report::Plural(static_cast<std::int64_t>(site_.jobs.size()), "job"), gpus,
                    Kilowatts(site_.nodes.front().limit_watts),
                    report::Plural(static_cast<std::int64_t>(report_.seeds.size()), "seed"));
    document_.notes = report_.notes;
    const RuleAnswer& ours = *FindRule(answer_, kOurs);
    const RuleAnswer* best = nullptr;
    const auto lost = [](const RuleAnswer& rule) {
      return SpreadOf(rule.figures, &DaysFigures::lost_percent).mean;
    };
    // First those that are over the limit no longer than ours.
    const auto over = [](const RuleAnswer& rule) {
      return SpreadOf(rule.figures, &DaysFigures::over_seconds).mean;
    };
    const auto rank = [&](const RuleAnswer& rule) {
      return std::pair(over(rule) > over(ours), lost(rule));
    };
    for (const char* name : {"shedding", "uniform-cap", "one-clock", "proportional-cap",
                             "request-matching", "greedy"}) {
      const RuleAnswer* rule = FindRule(answer_, name);
      if (rule != nullptr && (best == nullptr || rank(*rule) < rank(*best))) best = rule;
    }
    document_.figures = {
        {"Work lost, divided exactly", Text(ours, &DaysFigures::lost_percent, 1, 2) + " %",
         "against maximum clocks", "hero"},
        {"Work lost by the best other rule", FixedText(lost(*best), 2) + " %",
         best->title + (over(*best) > over(ours)
                            ? fmt::format("; over the limit for {:.1f} min", over(*best) / 60)
                            : ""),
         "hero"},
        {"Time over the limit", Text(ours, &DaysFigures::over_seconds, 60, 1) + " min",
         "at most " + Text(ours, &DaysFigures::over_most_watts, kKiloWatt, 2) + " kW"},
        {"Energy", Text(ours, &DaysFigures::energy_joules, kJoulesOfMwh, 2) + " MWh", "perseus"}};
  }

  std::string Length() const {
    if (std::fmod(report_.seconds, kSecondsOfDay) == 0) {
      return report::Plural(static_cast<std::int64_t>(report_.seconds / (kSecondsOfDay)), "day");
    }
    return fmt::format("{} h", report::RoundSignificant(report_.seconds / kSecondsOfHour, 4));
  }

  void RuleTable() {
    document_.Heading("The rules side by side");
    document_.Paragraph(
        "The same days under each rule. Work lost: weighted iterations that maximum clocks would "
        "have done. Over the limit: how long, and by how much at most. Fairness is 1 where all "
        "jobs "
        "keep the same share of their work." +
        std::string(report_.seeds.size() > 1 ? " Means over the seeds, with the standard deviation."
                                             : ""));
    std::vector<std::string> columns = {"Rule", "Work lost (%)", "Energy (MWh)"};
    if (HasPrice(site_)) {
      columns.push_back(report_.currency.empty() ? "Cost"
                                                 : fmt::format("Cost ({})", report_.currency));
    }
    if (HasCarbon(site_)) columns.emplace_back("CO\u2082 (t)");
    columns.insert(columns.end(), {"Over the limit (min)", "by at most (kW)"});
    if (answer_.deadlines > 0) columns.emplace_back("Deadlines missed");
    columns.insert(columns.end(),
                   {"Too slow for owners (job hours)", "Fairness", "Changes of plan"});
    report::Table table{"", columns, 1, {}};
    for (const RuleAnswer& rule : answer_.rules) {
      std::vector<report::Cell> cells = {
          {rule.title, "", rule.says},
          {Text(rule, &DaysFigures::lost_percent, 1, 2)},
          {Text(rule, &DaysFigures::energy_joules, kJoulesOfMwh, 2)}};
      if (HasPrice(site_)) cells.push_back({Text(rule, &DaysFigures::cost, 1, 2)});
      if (HasCarbon(site_)) cells.push_back({Text(rule, &DaysFigures::co2_grams, 1e6, 3)});
      cells.push_back({Text(rule, &DaysFigures::over_seconds, 60, 1)});
      cells.push_back({Text(rule, &DaysFigures::over_most_watts, kKiloWatt, 2)});
      if (answer_.deadlines > 0)
        cells.push_back({Text(rule, &DaysFigures::deadlines_missed, 1, 1)});
      cells.push_back({Text(rule, &DaysFigures::too_slow_seconds, kSecondsOfHour, 1)});
      cells.push_back({Text(rule, &DaysFigures::fairness, 1, 4)});
      cells.push_back({Text(rule, &DaysFigures::plan_changes, 1, 0)});
      table.Add(std::move(cells), rule.rule.starts_with(kOurs) ? "total" : "");
    }
    document_.Put(std::move(table));
  }

  double TimeOf(int column) const {
    return report_.seconds * column / kPageColumns / unit_seconds_;
  }
  std::string TimeLabel() const { return in_days_ ? "time (days)" : "time (h)"; }

  // At most as many as there are colours; small ones together.
  std::vector<Layer> Layers(const RuleDays& days) const {
    constexpr std::size_t kMostLayers = 5;
    const auto series = PowerSeries(days, report_.seconds, kPageColumns);
    std::vector<Layer> layers;
    std::map<std::string, std::size_t> index;
    for (std::size_t j = 0; j < series.size(); ++j) {
      const auto [known, is_new] = index.emplace(site_.jobs[j].group, layers.size());
      if (is_new) {
        layers.push_back({site_.jobs[j].group, std::vector<double>(kPageColumns, 0.0)});
      }
      for (std::size_t i = 0; i < series[j].size(); ++i) {
        layers[known->second].watts[i] += site_.meter_factor * series[j][i];
      }
    }
    if (layers.size() <= kMostLayers) return layers;
    const auto energy = [](const Layer& layer) {
      double sum = 0;
      for (const double watts : layer.watts) sum += watts;
      return sum;
    };
    std::stable_sort(layers.begin(), layers.end(),
                     [&](const Layer& a, const Layer& b) { return energy(a) > energy(b); });
    Layer& rest = layers[kMostLayers - 1];
    rest.name = "all other jobs";
    for (std::size_t k = kMostLayers; k < layers.size(); ++k) {
      for (std::size_t i = 0; i < rest.watts.size(); ++i) rest.watts[i] += layers[k].watts[i];
    }
    layers.resize(kMostLayers);
    return layers;
  }

  void Power(const RuleAnswer& rule, std::string id) {
    document_.Heading("Power of the site against its limit");
    document_.Paragraph(
        fmt::format("{}. Seed {}, at the meter, stacked by job; each value is a mean over {} min. "
                    "The red line is "
                    "the limit, the grey one what maximum clocks would draw.",
                    Capital(rule.title), report_.seeds.front(),
                    report::RoundSignificant(report_.seconds / kPageColumns / 60, 3)));
    static constexpr std::string_view kColours[] = {"c0", "c2", "c3", "c4", "c5"};
    report::LineChart chart;
    chart.id = std::move(id);
    chart.title = "Power of the site over time";
    chart.x_label = TimeLabel();
    chart.y_label = "power (kW)";
    chart.height = 380;
    chart.fill_x = true;
    std::vector<double> below(kPageColumns, 0.0);
    std::size_t colour = 0;
    for (const Layer& layer : Layers(rule.first)) {
      report::ChartArea area{layer.name, std::string(kColours[colour++]), {}};
      for (int i = 0; i < kPageColumns; ++i) {
        const double low = below[static_cast<std::size_t>(i)];
        const double high = low + layer.watts[static_cast<std::size_t>(i)] / kKiloWatt;
        area.bands.push_back({TimeOf(i), TimeOf(i + 1), low, high});
        below[static_cast<std::size_t>(i)] = high;
      }
      chart.areas.push_back(std::move(area));
    }
    chart.series.push_back(FullPower());
    chart.series.push_back(Limit());
    document_.Figure(report::DrawLineChart(chart));
  }

  report::ChartSeries FullPower() const {
    report::ChartSeries series{"at maximum clocks", "c5", {}};
    std::vector<double> sum(kPageColumns, 0.0);
    for (const auto& job :
         PowerSeries(answer_.rules.front().first, report_.seconds, kPageColumns)) {
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += site_.meter_factor * job[i] / kKiloWatt;
      }
    }
    for (int i = 0; i < kPageColumns; ++i) {
      series.points.push_back({TimeOf(i), sum[static_cast<std::size_t>(i)]});
      series.points.push_back({TimeOf(i + 1), sum[static_cast<std::size_t>(i)]});
    }
    return series;
  }

  report::ChartSeries Limit() const { return Steps("limit", "c1", answer_.limits, 1 / kKiloWatt); }

  report::ChartSeries Steps(std::string name, std::string css, const std::vector<SeriesStep>& steps,
                            double factor) const {
    report::ChartSeries series{std::move(name), std::move(css), {}};
    for (std::size_t i = 0; i < steps.size() && steps[i].seconds < report_.seconds; ++i) {
      const double end =
          i + 1 < steps.size() ? std::min(steps[i + 1].seconds, report_.seconds) : report_.seconds;
      const double value = steps[i].value * factor;
      series.points.push_back({steps[i].seconds / unit_seconds_, value});
      series.points.push_back({end / unit_seconds_, value});
    }
    return series;
  }

  void Prices(const RuleAnswer& ours) {
    std::vector<SeriesStep> steps;
    double highest = 0;
    for (const PriceStep& price : ours.first.prices) {
      const double worth =
          price.weight > 0 ? 100 * kKiloWatt * price.price_per_watt / price.weight : 0;
      highest = std::max(highest, worth);
      steps.push_back({price.seconds, worth});
    }
    if (!(highest > 0)) return;
    document_.Heading("What one more kilowatt would be worth");
    document_.Paragraph(
        "How much of the site's work at full speed one more kW of the limit would add, by the "
        "exact "
        "division. 0: the limit takes nothing from the jobs.");
    report::LineChart chart;
    chart.id = "price";
    chart.title = "Worth of one more kilowatt over time";
    chart.x_label = TimeLabel();
    chart.y_label = "% of the site's work a kW";
    chart.height = 240;
    chart.fill_x = true;
    chart.series.push_back(Steps("worth of a kW", "c0", steps, 1));
    document_.Figure(report::DrawLineChart(chart));
  }

  void Series() {
    if (!HasPrice(site_)) return;
    document_.Heading("Price of energy");
    document_.Paragraph("As the price file gives it.");
    report::LineChart chart;
    chart.id = "energyprice";
    chart.title = "Price of a kWh over time";
    chart.x_label = TimeLabel();
    chart.y_label = report_.currency.empty() ? "a kWh" : report_.currency + " a kWh";
    chart.height = 220;
    chart.fill_x = true;
    chart.series.push_back(Steps("price", "c3", site_.price_per_joule, kJoulesOfKwh));
    document_.Figure(report::DrawLineChart(chart));
  }

  void Givers(const RuleAnswer& rule) {
    const std::vector<GroupDays> groups = GroupsOf(site_, rule.first, report_.seconds);
    const bool has_events = std::any_of(groups.begin(), groups.end(), [](const GroupDays& group) {
      return group.full_watts_in_events > 0;
    });
    document_.Heading("Who gave what");
    document_.Paragraph(
        fmt::format("{}. Seed {}. Power is the mean over the days, at the meter.{}",
                    Capital(rule.title), report_.seeds.front(),
                    has_events ? " In events: while a limit is below the usual one." : ""));
    std::vector<std::string> columns = {
        "Jobs",       "Number",    "GPUs",         "At maximum clocks (kW)",
        "Drawn (kW)", "Gave (kW)", "Work lost (%)"};
    if (has_events) {
      columns.insert(columns.end(),
                     {"Gave in events (kW)", "of its power (%)", "Work lost in events (%)"});
    }
    report::Table table{"", columns, 1, {}};
    for (const GroupDays& group : groups) {
      std::vector<report::Cell> cells = {{group.name},
                                         {fmt::format("{}", group.jobs)},
                                         {fmt::format("{}", group.gpus)},
                                         {Kilowatts(group.full_watts)},
                                         {Kilowatts(group.watts)},
                                         {Kilowatts(group.full_watts - group.watts, 2)},
                                         {FixedText(group.lost_percent, 2)}};
      if (has_events) {
        const double gave = group.full_watts_in_events - group.watts_in_events;
        cells.push_back({Kilowatts(gave, 2)});
        cells.push_back({FixedText(
            group.full_watts_in_events > 0 ? 100 * gave / group.full_watts_in_events : 0, 1)});
        cells.push_back({FixedText(group.lost_percent_in_events, 2)});
      }
      table.Add(std::move(cells));
    }
    document_.Put(std::move(table));
  }

  void SmallPrint() {
    document_.Heading("What is modelled");
    document_.List(
        {"Nothing ran on a GPU for this page: power and speed are those of profiles, job by job.",
         "Plans, power caps and stragglers take effect at a job's next iteration. A job that is to "
         "draw more waits until those that are to draw less do.",
         "Every rule knows the power of each job at each of its clocks exactly.",
         "docs/explanation/fleet-days.md defines every rule and figure."});
  }

  static std::string Capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
      text[0] = static_cast<char>(text[0] - 'a' + 'A');
    }
    return text;
  }

  const DaysReport& report_;
  const DaysSite& site_;
  const DaysAnswer& answer_;
  bool in_days_;
  double unit_seconds_;
  report::Document document_;
};

}  // namespace

std::string FormatDaysHtml(const DaysReport& report) { return DaysPage(report).Format(); }

}  // namespace perseus::site
