// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/input_limits.h"

namespace perseus::wire {
namespace {

constexpr int kMostClocks = 4096;
constexpr std::size_t kMostSources = 64;
constexpr std::size_t kMostWaiting = 1000;
// Beyond what any number of the kind can be; what is beyond is another unit, or damage.
constexpr double kMostSeconds = 1e9;
constexpr double kMostJoules = 1e15;
constexpr NumberRange kSomeSeconds = {.least = 0, .most = kMostSeconds};
constexpr NumberRange kSomeJoules = {.least = 0, .most = kMostJoules};
constexpr NumberRange kSignedSeconds = {.least = -kMostSeconds, .most = kMostSeconds};
constexpr NumberRange kSignedJoules = {.least = -kMostJoules, .most = kMostJoules};
constexpr NumberRange kCelsius = {.least = -100, .most = 200};
constexpr NumberRange kWork = {.least = 0, .most = 1e15};
constexpr NumberRange kRelative = {.least = -1e3, .most = 1e3};
constexpr NumberRange kWatts = {.least = 0, .most = 1e6};
constexpr NumberRange kNanoseconds = {.least = 0, .most = 1e15};
constexpr NumberRange kCounts = {.least = 0, .most = 1e15};
constexpr NumberRange kVariances = {.least = -1e6, .most = 1e6};
constexpr NumberRange kShares = {.least = 0, .most = 1};

constexpr Field kGpuFields[] = {Value<&Gpu::uuid>("uuid").Most(256).Sometimes(),
                                Value<&Gpu::name>("name").Most(256).Sometimes()};
constexpr Field kRankFields[] = {Value<&Rank::rank>("rank"),
                                 Value<&Rank::dp_rank>("dp_rank"),
                                 Value<&Rank::pp_rank>("pp_rank"),
                                 Value<&Rank::tp_rank>("tp_rank").Sometimes(),
                                 Value<&Rank::node>("node").Most(256).Optional(),
                                 Object<&Rank::gpu>("gpu", kGpu).Optional().LeftOut(),
                                 Value<&Rank::clocks_mhz>("clocks_mhz")
                                     .In(kNotNegative)
                                     .List(kMostClocks, "clocks")
                                     .Optional()
                                     .LeftOut()};

// A frequency of 0 would be none.
void CheckClock(const TreeCursor& at, int clock_mhz) {
  if (clock_mhz <= 0) at.Get("frequency").FailExpected("MHz above 0");
}
void CheckRow(const TreeCursor& at, MeasuredRow* row) { CheckClock(at, row->clock_mhz); }
void CheckWaiting(const TreeCursor& at, MeasuredWaiting* row) { CheckClock(at, row->clock_mhz); }

constexpr Field kMeasuredCostFields[] = {
    Value<&MeasuredRow::stage>("stage"),
    Choice<&MeasuredRow::type>("instruction", kComputationTypeNames),
    Value<&MeasuredRow::time_seconds>("time").In(kPositive),
    Value<&MeasuredRow::energy_joules>("energy").In(kNotNegative).Says("Of one GPU"),
    Value<&MeasuredRow::samples>("samples")
        .In({.least = 1})
        .Sometimes()
        .Says("Computations that the row is of."),
    Value<&MeasuredRow::time_std_seconds>("time_std")
        .In(kSomeSeconds)
        .Optional()
        .Says("Standard error of `time`, seconds."),
    Value<&MeasuredRow::energy_std_joules>("energy_std")
        .In(kSomeJoules)
        .Optional()
        .Says("Standard error of `energy`, joules."),
    Value<&MeasuredRow::time_sources>("time_errors")
        .In(kRelative)
        .List(kMostSources, "numbers")
        .Optional()
        .LeftOut()
        .Says("What each source of errors that the rank's rows share adds to the logarithm of "
              "`time`."),
    Value<&MeasuredRow::power_sources>("power_errors")
        .In(kRelative)
        .List(kMostSources, "numbers")
        .Optional()
        .LeftOut()
        .Says("The same of energy over time, of other sources."),
    Value<&MeasuredRow::temperature_celsius>("temperature_c")
        .In(kCelsius)
        .Optional()
        .LeftOut()
        .Says("Mean temperature of the GPU meanwhile."),
    Value<&MeasuredRow::throttled>("throttled")
        .Optional()
        .Says("The GPU slowed itself down while this was measured. Such rows count only where no "
              "other rank measured the same without."),
    Value<&MeasuredRow::work>("work").In(kWork).Optional().LeftOut().Says(
        "Mean work of the computations (tokens, or any unit)."),
    Value<&MeasuredRow::seconds_per_work>("time_per_work")
        .In(kSignedSeconds)
        .Optional()
        .LeftOut()
        .Says("Seconds that one more unit of work takes, where work varied."),
    Value<&MeasuredRow::joules_per_work>("energy_per_work")
        .In(kSignedJoules)
        .Optional()
        .LeftOut()
        .Says("Joules of one more unit of work."),
    Value<&MeasuredRow::time_residual_std_seconds>("time_residual_std")
        .In(kSomeSeconds)
        .Optional()
        .Says("Standard deviation that is left unexplained, seconds."),
    Value<&MeasuredRow::energy_residual_std_joules>("energy_residual_std")
        .In(kSomeJoules)
        .Optional()
        .Says("The same, joules.")};
constexpr Message<MeasuredRow> kMeasuredCost = {"MeasuredCost", kMeasuredCostFields};

constexpr Field kMeasuredRowFields[] = {Base(kMeasuredCost),
                                        Value<&MeasuredRow::clock_mhz>("frequency").Says("MHz")};
constexpr Message<MeasuredRow> kMeasuredRow =
    Message<MeasuredRow>("MeasuredRow", kMeasuredRowFields).Checked<CheckRow>();

constexpr Field kMeasuredWaitingFields[] = {
    Value<&MeasuredWaiting::clock_mhz>("frequency").Says("MHz"),
    Value<&MeasuredWaiting::watts>("power_w").In(kWatts).Says("Of one GPU."),
    Value<&MeasuredWaiting::std_watts>("power_std_w")
        .In(kWatts)
        .Optional()
        .Says("Standard error of `power_w`.")};
constexpr Message<MeasuredWaiting> kMeasuredWaiting =
    Message<MeasuredWaiting>("MeasuredWaiting", kMeasuredWaitingFields).Checked<CheckWaiting>();
constexpr Field kSweepCostFields[] = {
    Value<&SweepCost::iterations>("iterations").In({.least = 0, .most = kMostNumber}).Optional(),
    Value<&SweepCost::seconds>("seconds").In(kSomeSeconds).Optional(),
    Value<&SweepCost::joules>("joules").In(kSomeJoules).Optional(),
    Value<&SweepCost::extra_seconds>("extra_seconds").In(kSignedSeconds).Optional().LeftOut(),
    Value<&SweepCost::extra_joules>("extra_joules").In(kSignedJoules).Optional().LeftOut()};
constexpr Message<SweepCost> kSweepCost = {"SweepCost", kSweepCostFields};

// Sentences of one line; the empty ones say nothing.
void CheckMeasurements(const TreeCursor& /*at*/, Measurements* measured) {
  for (std::string& note : measured->notes) {
    std::replace_if(
        note.begin(), note.end(), [](unsigned char letter) { return letter < ' '; }, ' ');
  }
  std::erase(measured->notes, "");
  for (MeasuredRow& row : measured->default_clocks) {
    row.clock_mhz = kDefaultClockMhz;
    row.throttled = false;  // A power cap is a part of how it runs then.
  }
}
constexpr Field kMeasurementsFields[] = {
    Value<&Measurements::rank>("rank"),
    Object<&Measurements::rows>("rows", kMeasuredRow).Sometimes(),
    Object<&Measurements::default_clocks>("default_clocks", kMeasuredCost)
        .Optional()
        .LeftOut()
        .Says("What was measured at default clocks, as the job runs without Perseus."),
    Value<&Measurements::blocking_power_watts>("blocking_power_w").Optional(),
    Value<&Measurements::blocking_power_std_watts>("blocking_power_std_w")
        .In(kWatts)
        .Optional()
        .LeftOut()
        .Says("Standard error of `blocking_power_w`."),
    Object<&Measurements::waiting>("waiting", kMeasuredWaiting)
        .List(kMostWaiting, "clocks")
        .Optional()
        .LeftOut()
        .Says("What a GPU that waits draws, by clock, where the sweep shows that it depends on it; "
              "`blocking_power_w` is then that at the highest clock."),
    Value<&Measurements::counter_period_seconds>("counter_period_s")
        .In(kSomeSeconds)
        .Optional()
        .LeftOut()
        .Says("How often the GPU's energy counter is updated."),
    Object<&Measurements::sweep>("sweep", kSweepCost)
        .Optional()
        .Says("What the sweep cost this rank so far; `extra_` against the highest clock, negative "
              "where it saved."),
    Value<&Measurements::notes>("notes")
        .Most(kMostReportedNoteBytes)
        .List(kMostReportedNotes, "notes")
        .Optional()
        .LeftOut()
        .Says("Sentences on what was odd; each becomes an event of the job."),
    Value<&Measurements::done>("done").Optional().Says("The rank's sweep has ended.")};

template <ComputationType kType>
constexpr Field Busy() {
  constexpr auto kIndex = static_cast<std::size_t>(kType);
  Field field =
      Value(kComputationTypeNames[kIndex], [](const SecondsByType& busy) { return busy[kIndex]; });
  field.into = [](void* object) -> void* {
    return &(*static_cast<SecondsByType*>(object))[kIndex];
  };
  return field.In(kNotNegative).Optional().LeftOut();
}
constexpr Field kBusyByTypeFields[] = {
    Busy<ComputationType::kForward>(), Busy<ComputationType::kBackward>(),
    Busy<ComputationType::kBackwardInput>(), Busy<ComputationType::kBackwardWeight>(),
    Busy<ComputationType::kRecompute>()};
constexpr Message<SecondsByType> kBusyByType = {"BusyByType", kBusyByTypeFields};
// An array that is written as an object.
constexpr TypeOps kWhole = {.kind = Kind::kObject};
constexpr Field BusyField() {
  Field field = Object<&IterationReport::busy_by_type>("busy_by_type_s", kBusyByType).Optional();
  field.is_list = false;
  field.type = &kWhole;
  return field;
}
constexpr Field kKindFields[] = {
    Value<&KindReport::key, &ProfileKey::stage>("stage"),
    Choice<&KindReport::key, &ProfileKey::type>("instruction", kComputationTypeNames)
        .Lenient()
        .As(Kind::kText),
    Value<&KindReport::key, &ProfileKey::clock_mhz>("frequency"),
    Value<&KindReport::count>("count").In(kNotNegative),
    Value<&KindReport::time_seconds>("time").In(kPositive),
    Value<&KindReport::is_steady>("steady").Optional().Says(
        "Of computations whose clock is in effect all through in nearly every iteration. Only "
        "these correct the profile.")};
constexpr Message<KindReport> kKindReport = {"KindReport", kKindFields};

void CheckTimeline(const TreeCursor& at, RankTimeline* timeline) {
  if (timeline->end_ns.size() == timeline->begin_ns.size()) return;
  at.Get("end_ns").FailExpected("as many as begins");
}
constexpr Field kTimelineFields[] = {
    Value<&RankTimeline::begin_ns>("begin_ns")
        .In(kNanoseconds)
        .List(kMostTimelineRows, "rows")
        .Says("[row of the plan]"),
    Value<&RankTimeline::end_ns>("end_ns").In(kNanoseconds).List(kMostTimelineRows, "rows"),
    Value<&RankTimeline::changes>("changes")
        .In(kNotNegative)
        .List(kMostTimelineRows, "rows")
        .Optional()
        .LeftOut()
        .Says("Rows before which the plan changes the clock.")};
constexpr Message<RankTimeline> kRankTimeline =
    Message<RankTimeline>("RankTimeline", kTimelineFields).Checked<CheckTimeline>();

constexpr std::array<std::string_view, 4> kClockNames = {"", "plan", "coarse", "maximum"};
constexpr Field kIterationFields[] = {
    Value<&IterationReport::rank>("rank"),
    Value<&IterationReport::iteration>("iteration").Optional(),
    Value<&IterationReport::plan_version>("plan_version").Optional(),
    Value<&IterationReport::time_seconds>("time_s").In(kPositive),
    Value<&IterationReport::energy_joules>("energy_j").In(kNotNegative).Optional(),
    Value<&IterationReport::tokens>("tokens")
        .In(kNotNegative)
        .Optional()
        .UnlessEmpty()
        .Says("Of the iteration on this rank: work that differs is no straggler"),
    Value<&IterationReport::busy_seconds>("busy_s")
        .In(kNotNegative)
        .Optional()
        .Says("In its own computations"),
    BusyField(),
    Choice<&IterationReport::clocks>("clocks", kClockNames)
        .Most(64)
        .Optional()
        .UnlessEmpty()
        .Lenient()
        .As(Kind::kText)
        .Says("plan: as planned; coarse: followed less finely; maximum: the driver's own; else not "
              "known"),
    Object<&IterationReport::kinds>("kinds", kKindReport)
        .List(kMostReportedKinds, "kinds of computations")
        .Optional()
        .LeftOut()
        .Lenient()
        .Says("Means since the rank's last report, of computations whose clock was in effect all "
              "through."),
    Object<&IterationReport::timeline>("timeline", kRankTimeline)
        .Optional()
        .LeftOut()
        .Says("When its computations ran, since its iteration began. Of every tenth iteration of "
              "the first pipeline: transfers between stages are found from it.")};
constexpr Message<IterationReport> kIterationReport = {"IterationReport", kIterationFields};

struct Ran {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  std::int64_t count = 0;
};
constexpr Field kRanFields[] = {
    Value<&Ran::stage>("stage").In({.least = -1}).Says("-1: not said."),
    Choice<&Ran::type>("instruction", kComputationTypeNames).Lenient().As(Kind::kText),
    Value<&Ran::count>("count").In(kNotNegative)};
constexpr Message<Ran> kRan = {"Ran", kRanFields};
std::vector<Ran> RanOf(const ClientReport& client) {
  std::vector<Ran> list;
  for (const auto& [kind, count] : *client.ran) list.push_back({kind.second, kind.first, count});
  return list;
}
constexpr Field RanField() {
  Field field = Object<RanOf>("ran", kRan).List(kMostReportedKinds, "kinds of computations");
  // An empty list says that nothing ran; where it is not known, there is none.
  field.with = [](const void* object, void* context, internal::UseValue use) {
    const auto& client = *static_cast<const ClientReport*>(object);
    if (!client.ran) return;
    const std::vector<Ran> list = RanOf(client);
    use(context, &list);
  };
  field.into = internal::Into<ClientReport, &ClientReport::ran>;
  field.read = [](const Field& field, const TreeCursor& at, void* member) {
    if (at.Size() > kMostReportedKinds) {
      return at.FailExpected(fmt::format("at most {} {}", field.most_elements, field.noun));
    }
    auto& counts = static_cast<std::optional<ComputationCounts>*>(member)->emplace();
    for (std::size_t i = 0; i < at.Size(); ++i) {
      Ran ran;
      if (Read(kRan, at.At(i), &ran)) counts[{ran.type, ran.stage}] = ran.count;
    }
  };
  return field;
}

// The value or the error of a figure.
template <auto kMember, double RankFigure::*kHalf>
constexpr Field Half(std::string_view name) {
  using C = decltype(internal::ObjectOf(kMember));
  Field field = Value(name, [](const C& of) -> std::optional<double> {
    return of.*kMember ? std::optional((*(of.*kMember)).*kHalf) : std::nullopt;
  });
  field.into = internal::Into<C, kMember>;
  field.read = [](const Field& field, const TreeCursor& at, void* member) {
    constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
    auto& figure = *static_cast<std::optional<RankFigure>*>(member);
    if (!figure) figure = RankFigure{kMissing, kMissing};
    (*figure).*kHalf = at.Number(field.range);
  };
  return field.Optional().LeftOut();
}
template <auto kMember>
constexpr Field Figure(std::string_view name, NumberRange range) {
  return Half<kMember, &RankFigure::value>(name).In(range);
}
template <auto kMember>
constexpr Field ErrorOf(std::string_view name) {
  return Half<kMember, &RankFigure::error>(name).In(kNotNegative);
}
// Figures are known with their error, or not at all.
void DropHalf(std::optional<RankFigure>* figure) {
  if (*figure && (std::isnan((*figure)->value) || std::isnan((*figure)->error))) figure->reset();
}
void CheckLatency(const TreeCursor& /*at*/, RankClockLatency* latency) {
  DropHalf(&latency->seconds);
}
void CheckConditions(const TreeCursor& /*at*/, RankConditions* conditions) {
  for (const auto member :
       {&RankConditions::noise_variance, &RankConditions::rank_noise_variance,
        &RankConditions::noise_correlation, &RankConditions::rare_noise_variance,
        &RankConditions::rare_noise_share, &RankConditions::latency_seconds,
        &RankConditions::latency_spread_seconds}) {
    DropHalf(&(conditions->*member));
  }
  std::erase_if(conditions->latency_at,
                [](const auto& each) { return !each.seconds || each.clock_mhz == 0; });
}
constexpr Field kClockLatencyFields[] = {
    Value<&RankClockLatency::clock_mhz>("clock_mhz").In({.least = 1, .most = 1e9}),
    Value<&RankClockLatency::calls>("calls").In(kCounts).Says("That it comes from."),
    Figure<&RankClockLatency::seconds>("switch_latency_s", kNotNegative),
    ErrorOf<&RankClockLatency::seconds>("switch_latency_s_std")};
constexpr Message<RankClockLatency> kClockLatency =
    Message<RankClockLatency>("ClockLatency", kClockLatencyFields,
                              "How long calls for one clock took.")
        .Checked<CheckLatency>();
using Told = RankConditions;
constexpr Field kConditionsFields[] = {
    Figure<&Told::noise_variance>("noise_variance", kVariances)
        .Says("Relative to the time, of each computation; below 0 where there is too little noise "
              "to tell."),
    ErrorOf<&Told::noise_variance>("noise_variance_std").Says("Standard error; so the others."),
    Figure<&Told::rank_noise_variance>("rank_noise_variance", kVariances)
        .Says("The same of all that the rank computes in an iteration."),
    ErrorOf<&Told::rank_noise_variance>("rank_noise_variance_std"),
    Figure<&Told::noise_correlation>("noise_correlation", kShares)
        .Says("From one computation to the next."),
    ErrorOf<&Told::noise_correlation>("noise_correlation_std"),
    Figure<&Told::rare_noise_variance>("rare_noise_variance", kVariances)
        .Says("What computations add that stand out from the others."),
    ErrorOf<&Told::rare_noise_variance>("rare_noise_variance_std"),
    Figure<&Told::rare_noise_share>("rare_noise_share", kShares)
        .Says("How many of all computations these are."),
    ErrorOf<&Told::rare_noise_share>("rare_noise_share_std"),
    Value<&Told::iterations>("iterations")
        .In(kCounts)
        .Optional()
        .Says("That the noise comes from."),
    Value<&Told::computations>("computations").In(kCounts).Optional(),
    Figure<&Told::latency_seconds>("switch_latency_s", kNotNegative)
        .Says("From the call until the clock is in effect."),
    ErrorOf<&Told::latency_seconds>("switch_latency_s_std"),
    Figure<&Told::latency_spread_seconds>("switch_latency_spread_s", kNotNegative),
    ErrorOf<&Told::latency_spread_seconds>("switch_latency_spread_s_std"),
    Value<&Told::calls>("calls").In(kCounts).Optional().Says("That the latency comes from."),
    Object<&Told::latency_at>("switch_latency_at", kClockLatency)
        .List(kMostClocks, "clocks")
        .Optional()
        .Says("The same of single clocks.")};
constexpr Message<RankConditions> kRankConditions =
    Message<RankConditions>("RankConditions", kConditionsFields,
                            "What the rank measured of its noise and latency.")
        .Checked<CheckConditions>();

// Cuts off longer lists and texts.
void ReadConflicts(const Field& field, const TreeCursor& at, void* member) {
  const std::size_t count = std::min(at.Size(), field.most_elements);
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<std::vector<std::string>*>(member)->push_back(
        at.At(i).String().substr(0, field.most_bytes));
  }
}
constexpr Field kAgentFields[] = {
    Value<&AgentReport::version>("version").Most(kMostVersionBytes).Optional(),
    Value<&AgentReport::clock_conflicts>("clock_conflicts")
        .Most(kMostConflictBytes)
        .List(kMostConflicts)
        .ReadBy(ReadConflicts)
        .Optional()
        .Says("What acts against the clock of the rank's GPU, a sentence each.")};
constexpr Message<AgentReport> kAgentReport = {"AgentReport", kAgentFields,
                                               "What the node's agent says."};

void ReadCount(const Field& field, const TreeCursor& at, void* member) {
  auto& counts = *static_cast<std::map<std::string, double>*>(member);
  counts[std::string(field.name)] = at.Number(field.range);
}
constexpr Field Count(std::string_view name) {
  return Value<&ClientReport::counts>(name).Picked().ReadBy(ReadCount).In(kNotNegative).Optional();
}
constexpr Field kClientFields[] = {
    Value<&ClientReport::rank>("rank"),
    Value<&ClientReport::client>("client").Most(64).Optional().Says(
        "Of this client alone: two with one rank are told apart by it."),
    Value<&ClientReport::process>("process").Most(512).Optional().Says(
        "Which process it is, for people."),
    Value<&ClientReport::version>("version")
        .Most(kMostVersionBytes)
        .Optional()
        .Says("Of the client."),
    Value<&ClientReport::state>("state").Most(64).Optional(),
    Value<&ClientReport::shadow>("shadow").Optional().Says("It sets no clock"),
    Value<&ClientReport::plan_version>("plan_version").Optional(),
    Count("calls"),
    Count("coalesced"),
    Count("refused"),
    Count("early"),
    Count("on_time"),
    Count("late"),
    Count("missed"),
    Count("order_mismatches"),
    Count("lost_events"),
    Value<&ClientReport::error>("error").Most(512).Optional(),
    Object<&ClientReport::agent>("agent", kAgentReport)
        .Optional()
        .LeftOut()
        .Says("None: no agent answers."),
    RanField().Optional().Says("What its iterations run, where it has no plan and knows."),
    Object<&ClientReport::conditions>("conditions", kRankConditions)
        .Optional()
        .LeftOut()
        .Says("Once in a while.")};
constexpr Message<ClientReport> kClientReport = {
    "ClientReport", kClientFields,
    "Counts since the client began; the last word of each rank counts."};
constexpr Field kReportsFields[] = {
    Object<&Reports::reports>("reports", kIterationReport).Optional(),
    Object<&Reports::clients>("clients", kClientReport).Optional()};
constexpr Field kTroubleFields[] = {Value<&Trouble::client>("client").Says("As it called itself."),
                                    Value<&Trouble::sentence>("sentence")};
constexpr Message<Trouble> kTrouble = {"Trouble", kTroubleFields};
constexpr Field kReportsTakenFields[] = {Value<&ReportsTaken::reports>("reports"),
                                         Object<&ReportsTaken::troubles>("troubles", kTrouble)
                                             .Sometimes()
                                             .UnlessEmpty()
                                             .Says("What is wrong with these clients.")};

}  // namespace

constexpr Message<Gpu> kGpu = {"Gpu", kGpuFields};
constexpr Message<Rank> kRank = {"Rank", kRankFields};
constexpr Message<Measurements> kMeasurements =
    Message<Measurements>("Measurements", kMeasurementsFields).Checked<CheckMeasurements>();
constexpr Message<Reports> kReports = {"Reports", kReportsFields};
constexpr Message<ReportsTaken> kReportsTaken = {"ReportsTaken", kReportsTakenFields};

}  // namespace perseus::wire
