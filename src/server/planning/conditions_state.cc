// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/conditions_state.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "common/input_limits.h"
#include "common/json_text.h"
#include "common/tree.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

// Perseus' client makes no more than one call in this time.
constexpr double kClientIntervalSeconds = 0.010;
constexpr NumberRange kCount = {.least = 0, .most = 1e15};

Json FigureJson(const MeasuredCondition& figure) {
  return {figure.value, figure.error, figure.ranks};
}

// Nothing where there are none.
void AddLatencies(const std::vector<MeasuredClockLatency>& latencies, Json* json) {
  for (const MeasuredClockLatency& each : latencies) {
    (*json)["latency_at"].push_back({each.clock_mhz, FigureJson(each.seconds)});
  }
}

Json PlannedJson(const PlannedConditions& planned) {
  Json json = {{"values", planned.values}, {"measured", planned.measured}};
  AddLatencies(planned.latency_at, &json);
  for (const MeasuredTime& time : planned.times) {
    json["times"].push_back({time.stage, ComputationTypeName(time.type), time.clock_mhz,
                             time.seconds, time.error_seconds, time.computations});
  }
  for (const MeasuredTransfer& transfer : planned.transfers) {
    json["transfers"].push_back(
        {transfer.boundary, transfer.seconds, transfer.error_seconds, transfer.iterations});
  }
  return json;
}

MeasuredTransfer ReadTransfer(const TreeCursor& json) {
  constexpr NumberRange kSmall = {.least = 0, .most = 1e9};
  return {.boundary = static_cast<int>(json.At(0).Number(kSmall)),
          .seconds = json.At(1).Number(kNotNegative),
          .error_seconds = json.At(2).Number(kNotNegative),
          .iterations = static_cast<std::int64_t>(json.At(3).Number(kCount))};
}

MeasuredTime ReadTime(const TreeCursor& json) {
  constexpr NumberRange kSmall = {.least = 0, .most = 1e9};
  const TreeCursor type = json.At(1);
  const auto parsed = ParseComputationType(type.String());
  if (!parsed) type.FailExpected("a type of computation");
  return {.stage = static_cast<int>(json.At(0).Number(kSmall)),
          .type = parsed.value_or(ComputationType::kForward),
          .clock_mhz = static_cast<int>(json.At(2).Number(kSmall)),
          .seconds = json.At(3).Number(kPositive),
          .error_seconds = json.At(4).Number(kNotNegative),
          .computations = static_cast<std::int64_t>(json.At(5).Number(kCount))};
}

std::int64_t ReadCount(const TreeCursor& json) {
  return static_cast<std::int64_t>(json.Number(kCount));
}

constexpr std::string_view kOneOfEach = "one of each condition";

MeasuredCondition ReadFigure(const TreeCursor& json) {
  return {.value = json.At(0).Number(),
          .error = json.At(1).Number(kNotNegative),
          .ranks = ReadCount(json.At(2))};
}

std::vector<MeasuredClockLatency> ReadLatencies(const TreeCursor& json) {
  constexpr int kMostMhz = 1'000'000'000;
  std::vector<MeasuredClockLatency> latencies;
  const auto list = json.Find("latency_at");
  for (std::size_t i = 0; list && i < list->Size(); ++i) {
    const TreeCursor each = list->At(i);
    latencies.push_back({each.At(0).Integer(1, kMostMhz), ReadFigure(each.At(1))});
  }
  return latencies;
}

PlannedConditions ReadPlanned(const TreeCursor& json) {
  PlannedConditions planned;
  planned.latency_at = ReadLatencies(json);
  const TreeCursor values = json.Get("values");
  const TreeCursor measured = json.Get("measured");
  if (values.Size() != kConditions) values.FailExpected(kOneOfEach);
  if (measured.Size() != kConditions) measured.FailExpected(kOneOfEach);
  for (std::size_t i = 0; i < kConditions; ++i) {
    planned.values[i] = values.At(i).Number(kNotNegative);
    planned.measured[i] = measured.At(i).Bool();
  }
  if (const auto times = json.Find("times")) {
    for (std::size_t i = 0; i < times->Size(); ++i) planned.times.push_back(ReadTime(times->At(i)));
  }
  if (const auto transfers = json.Find("transfers")) {
    for (std::size_t i = 0; i < transfers->Size(); ++i) {
      planned.transfers.push_back(ReadTransfer(transfers->At(i)));
    }
  }
  return planned;
}

// The members of a measurement. The times are not among them.
void AddMeasured(const MeasuredConditions& measured, Json* json) {
  Json figures = Json::array();
  for (const MeasuredCondition& figure : measured.figures) {
    figures.push_back(FigureJson(figure));
  }
  (*json)["measured"] = std::move(figures);
  (*json)["iterations"] = measured.iterations;
  (*json)["calls"] = measured.calls;
  AddLatencies(measured.latency_at, json);
}

MeasuredConditions ReadMeasured(const TreeCursor& json) {
  MeasuredConditions measured;
  const TreeCursor figures = json.Get("measured");
  if (figures.Size() != kConditions) figures.FailExpected(kOneOfEach);
  for (std::size_t i = 0; i < kConditions; ++i) {
    measured.figures[i] = ReadFigure(figures.At(i));
  }
  measured.iterations = ReadCount(json.Get("iterations"));
  measured.calls = ReadCount(json.Get("calls"));
  measured.latency_at = ReadLatencies(json);
  return measured;
}

Json KeptJson(const KeptConditions& kept) {
  Json json = {{"job", kept.job}, {"at", kept.at_seconds}};
  AddMeasured(kept.measured, &json);
  return json;
}

KeptConditions ReadKept(const TreeCursor& json) {
  return {.job = json.Get("job").String(),
          .at_seconds = json.Get("at").Number(kNotNegative),
          .measured = ReadMeasured(json)};
}

bool CanBePlannedFor(const MeasuredConditions& measured) {
  return ValueOf(measured, Condition::kNoise) <= kMostNoise &&
         ValueOf(measured, Condition::kRankNoise) <= kMostNoise &&
         ValueOf(measured, Condition::kNoiseCorrelation) < 1 &&
         ValueOf(measured, Condition::kRareNoise) <= kMostNoise &&
         ValueOf(measured, Condition::kRareNoiseShare) <= kMostNoise &&
         std::all_of(measured.figures.begin(), measured.figures.end(),
                     [](const MeasuredCondition& figure) { return figure.value >= 0; }) &&
         std::all_of(measured.latency_at.begin(), measured.latency_at.end(),
                     [](const MeasuredClockLatency& each) { return each.seconds.value >= 0; });
}

}  // namespace

std::int64_t MeasuredConditions::ranks() const {
  std::int64_t most = 0;
  for (const MeasuredCondition& figure : figures) most = std::max(most, figure.ranks);
  return most;
}

bool PlannedConditions::any_measured() const {
  return std::any_of(measured.begin(), measured.end(), [](bool is) { return is; });
}

std::string FormatConditionsState(const ConditionsState& state) {
  Json json = {{"plan", PlannedJson(state.plan)}, {"planned_at", state.planned_at_seconds}};
  if (state.next) json["next"] = PlannedJson(*state.next);
  AddMeasured(state.measured, &json);
  if (!state.profile.empty()) json["profile"] = state.profile;
  if (state.start) {
    json["start"] = KeptJson(*state.start);
    json["start_profile"] = state.start_profile;
  }
  return FormatCompact(json);
}

std::optional<ConditionsState> ParseConditionsState(const std::string& json) {
  const std::string name = "conditions";
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return std::nullopt;
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  ConditionsState state;
  state.plan = ReadPlanned(root.Get("plan"));
  state.planned_at_seconds = root.Get("planned_at").Number(kNotNegative);
  if (const auto next = root.Find("next")) state.next = ReadPlanned(*next);
  state.measured = ReadMeasured(root);
  if (const auto profile = root.Find("profile")) state.profile = profile->String();
  if (const auto start = root.Find("start")) {
    state.start = ReadKept(*start);
    state.start_profile = root.Get("start_profile").String();
  }
  if (reader.failed()) return std::nullopt;
  return state;
}

std::string FormatKeptConditions(const KeptConditions& kept) {
  return FormatCompact(KeptJson(kept));
}

std::optional<KeptConditions> ParseKeptConditions(const std::string& json) {
  const std::string name = "conditions";
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return std::nullopt;
  TreeReader reader(*tree, name);
  KeptConditions kept = ReadKept(reader.Root());
  if (reader.failed() || !CanBePlannedFor(kept.measured)) return std::nullopt;
  return kept;
}

bool IsSureLatency(const MeasuredCondition& latency) {
  return latency.ranks > 0 &&
         latency.error <= std::max(kSureLatencySeconds, kSureShare * latency.value);
}

std::vector<MeasuredClockLatency> OwnLatencies(const std::vector<MeasuredClockLatency>& latencies,
                                               double of_all) {
  std::vector<MeasuredClockLatency> own;
  for (const MeasuredClockLatency& each : latencies) {
    const double apart = std::abs(each.seconds.value - of_all);
    if (IsSureLatency(each.seconds) && apart > kErrorsApart * each.seconds.error &&
        apart > kFeltLatencySeconds) {
      own.push_back(each);
    }
  }
  return own;
}

std::vector<MeasuredClockLatency> WithKnown(std::vector<MeasuredClockLatency> measured,
                                            const std::vector<MeasuredClockLatency>& known) {
  std::erase_if(measured, [](const auto& each) { return !IsSureLatency(each.seconds); });
  for (const MeasuredClockLatency& each : known) {
    if (std::none_of(measured.begin(), measured.end(),
                     [&](const auto& other) { return other.clock_mhz == each.clock_mhz; })) {
      measured.push_back(each);
    }
  }
  std::sort(measured.begin(), measured.end(),
            [](const auto& one, const auto& other) { return one.clock_mhz < other.clock_mhz; });
  return measured;
}

double ValueOf(const MeasuredConditions& measured, Condition which) {
  constexpr double kErrorsAboveNone = 2;
  // A rank that stalls waits at no clock of its own, so a stall too short to feel is none.
  constexpr double kFeltStallSeconds = 20e-6;
  const MeasuredCondition& figure = measured.Of(which);
  if (which == Condition::kStall && figure.value < kFeltStallSeconds) return 0;
  const bool may_be_none = which == Condition::kRankNoise ||
                           which == Condition::kNoiseCorrelation || which == Condition::kStall ||
                           which == Condition::kRareNoiseShare;
  return may_be_none && figure.value <= kErrorsAboveNone * figure.error ? 0 : figure.value;
}

void SetMeasured(const MeasuredConditions& measured, JobFile* settings) {
  PlannedConditions planned;
  JobFile known;
  for (std::size_t i = 0; i < kConditions; ++i) {
    planned.values[i] = ValueOf(measured, static_cast<Condition>(i));
  }
  planned.latency_at = OwnLatencies(measured.latency_at, measured.Of(Condition::kLatency).value);
  SetConditions(planned, &known);
  const bool takes_latency =
      measured.Of(Condition::kLatency).ranks > 0 && !settings->switch_latency_seconds;
  if (takes_latency && settings->switch_latency_at.empty()) {
    settings->switch_latency_at = known.switch_latency_at;
  }
  const auto set = [&](auto JobFile::*member, Condition which) {
    if (measured.Of(which).ranks > 0 && !(settings->*member)) settings->*member = known.*member;
  };
  set(&JobFile::noise, Condition::kNoise);
  set(&JobFile::rank_noise, Condition::kRankNoise);
  set(&JobFile::switch_latency_seconds, Condition::kLatency);
  set(&JobFile::switch_stall_seconds, Condition::kStall);
  if (settings->noise.value_or(0).most > 0) {
    set(&JobFile::noise_correlation, Condition::kNoiseCorrelation);
  }
  // Each means nothing without the other.
  if (measured.Of(Condition::kRareNoise).ranks > 0 && !settings->rare_noise &&
      !settings->rare_noise_share) {
    settings->rare_noise = known.rare_noise;
    settings->rare_noise_share = known.rare_noise_share;
  }
  const double latency = settings->switch_latency_seconds.value_or(0).least;
  if (*known.switch_latency_spread_seconds <= latency) {
    set(&JobFile::switch_latency_spread_seconds, Condition::kLatencySpread);
  }
  if (!settings->call_ahead) settings->call_ahead = known.call_ahead;
  if (!settings->min_call_interval_seconds) {
    settings->min_call_interval_seconds = known.min_call_interval_seconds;
  }
}

void SetConditions(const PlannedConditions& planned, JobFile* settings) {
  settings->noise = planned.Of(Condition::kNoise);
  settings->rank_noise = planned.Of(Condition::kRankNoise);
  // Means nothing, and may not be given, without noise; and a spread, without a latency.
  settings->noise_correlation =
      settings->noise->most > 0 ? planned.Of(Condition::kNoiseCorrelation) : 0;
  const double rare = planned.Of(Condition::kRareNoise);
  const double share = planned.Of(Condition::kRareNoiseShare);
  settings->rare_noise = share > 0 ? rare : 0;
  settings->rare_noise_share = rare > 0 ? share : 0;
  settings->switch_latency_seconds = planned.Of(Condition::kLatency);
  settings->switch_latency_at.clear();
  for (const MeasuredClockLatency& each : planned.latency_at) {
    settings->switch_latency_at.push_back(
        {static_cast<double>(each.clock_mhz), each.seconds.value});
  }
  settings->switch_latency_spread_seconds =
      std::min(planned.Of(Condition::kLatencySpread), planned.Of(Condition::kLatency));
  settings->switch_stall_seconds = planned.Of(Condition::kStall);
  if (!settings->call_ahead) settings->call_ahead = CallAhead::kPredicted;
  if (!settings->min_call_interval_seconds) {
    settings->min_call_interval_seconds = kClientIntervalSeconds;
  }
}

void SetTransfers(const std::vector<MeasuredTransfer>& transfers, int num_stages,
                  JobFile* settings) {
  if (settings->comm_delay_seconds.empty()) {
    settings->comm_delay_seconds = DelaysOf(transfers, num_stages);
  }
}

}  // namespace perseus::server
