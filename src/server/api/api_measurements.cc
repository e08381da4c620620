// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What ranks measured: taken, and told again to one that restarts in the middle of a sweep.
// Members that are not known are ignored, so that newer clients may say more.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/report_limits.h"
#include "perseus/computation.h"
#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/api/api_text.h"
#include "server/domain/profiling_summary.h"

namespace perseus::server {
namespace {

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
constexpr std::size_t kMostSources = 64;
constexpr std::size_t kMostWaiting = 1000;
constexpr NumberRange kWatts = {.least = 0, .most = 1e6};

constexpr Field kMeasuredRowMembers[] = {Integer("frequency").Says("MHz")};
constexpr Field kMeasuredCostMembers[] = {
    Integer("stage"),
    Choice("instruction", kComputationTypeNames),
    Number("time").In(kPositive),
    Number("energy").In({.least = 0}).Says("Of one GPU"),
    Integer("samples").In({.least = 1}).Sometimes().Says("Computations that the row is of."),
    Number("time_std").In(kSomeSeconds).Optional().Says("Standard error of `time`, seconds."),
    Number("energy_std").In(kSomeJoules).Optional().Says("Standard error of `energy`, joules."),
    Number("time_errors")
        .In(kRelative)
        .List(kMostSources)
        .Optional()
        .Says("What each source of errors that the rank's rows share adds to the logarithm of "
              "`time`."),
    Number("power_errors")
        .In(kRelative)
        .List(kMostSources)
        .Optional()
        .Says("The same of energy over time, of other sources."),
    Number("temperature_c").In(kCelsius).Optional().Says("Mean temperature of the GPU meanwhile."),
    Boolean("throttled")
        .Optional()
        .Says("The GPU slowed itself down while this was measured. Such rows count only where no "
              "other rank measured the same without."),
    Number("work").In(kWork).Optional().Says(
        "Mean work of the computations (tokens, or any unit)."),
    Number("time_per_work")
        .In(kSignedSeconds)
        .Optional()
        .Says("Seconds that one more unit of work takes, where work varied."),
    Number("energy_per_work").In(kSignedJoules).Optional().Says("Joules of one more unit of work."),
    Number("time_residual_std")
        .In(kSomeSeconds)
        .Optional()
        .Says("Standard deviation that is left unexplained, seconds."),
    Number("energy_residual_std").In(kSomeJoules).Optional().Says("The same, joules.")};
constexpr Field kSweepCostMembers[] = {Integer("iterations").In({.least = 0}).Optional(),
                                       Number("seconds").In(kSomeSeconds).Optional(),
                                       Number("joules").In(kSomeJoules).Optional(),
                                       Number("extra_seconds").In(kSignedSeconds).Optional(),
                                       Number("extra_joules").In(kSignedJoules).Optional()};
constexpr Field kMeasuredWaitingMembers[] = {
    Integer("frequency").Says("MHz"), Number("power_w").In(kWatts).Says("Of one GPU."),
    Number("power_std_w").In(kWatts).Optional().Says("Standard error of `power_w`.")};
constexpr Field kMeasurementsMembers[] = {
    Integer("rank"),
    Object("rows", "MeasuredRow").List().Sometimes(),
    Object("unlocked", "MeasuredCost")
        .List()
        .Optional()
        .Says("What was measured with no clock set, as the job runs without Perseus."),
    Number("blocking_power_w").Optional(),
    Boolean("done").Optional().Says("The rank's sweep has ended."),
    Number("blocking_power_std_w")
        .In(kWatts)
        .Optional()
        .Says("Standard error of `blocking_power_w`."),
    Object("waiting", "MeasuredWaiting")
        .List(kMostWaiting)
        .Optional()
        .Says("What a GPU that waits draws, by clock, where the sweep shows that it depends on it; "
              "`blocking_power_w` is then that at the highest clock."),
    Number("counter_period_s")
        .In(kSomeSeconds)
        .Optional()
        .Says("How often the GPU's energy counter is updated."),
    Object("sweep", "SweepCost")
        .Optional()
        .Says("What the sweep cost this rank so far; `extra_` against the highest clock, negative "
              "where it saved."),
    Text("notes")
        .Most(kMostReportedNoteBytes)
        .List(kMostReportedNotes)
        .Optional()
        .Says("Sentences on what was odd; each becomes an event of the job.")};
constexpr Field kMeasuredMembers[] = {Integer("rows")};
constexpr Field kUnlockedCellMembers[] = {Integer("stage"),
                                          Choice("instruction", kComputationTypeNames)};
constexpr Field kReportedMembers[] = {
    Object("rows", "ProfileCell").List(),
    Object("unlocked", "UnlockedCell").List().Sometimes().Says("Rows with no clock set."),
    Boolean("done")};
constexpr AnyMessage kMeasurementSchemas[] = {
    {"MeasuredCost", kMeasuredCostMembers},
    {.name = "MeasuredRow", .fields = kMeasuredRowMembers, .base = "MeasuredCost"},
    {"MeasuredWaiting", kMeasuredWaitingMembers},
    {"SweepCost", kSweepCostMembers},
    {"Measurements", kMeasurementsMembers},
    {"Measured", kMeasuredMembers},
    {"UnlockedCell", kUnlockedCellMembers},
    {"Reported", kReportedMembers}};

std::vector<double> ReadSources(const TreeCursor& row, std::string_view key) {
  std::vector<double> sources;
  const auto list = FindSet(row, key);
  if (!list) return sources;
  const std::size_t count = list->Size();
  if (count > kMostSources) list->FailExpected("at most 64 numbers");
  for (std::size_t i = 0; i < count && i < kMostSources; ++i) {
    const double source = list->At(i).Number();
    if (!(std::abs(source) <= kRelative.most)) list->At(i).FailExpected("a relative error");
    sources.push_back(source);
  }
  return sources;
}

// All but its clock.
store::MeasuredRow ReadCost(const TreeCursor& row) {
  store::MeasuredRow measured;
  measured.stage = RankNumber(row, "stage");
  const TreeCursor instruction = row.Get("instruction");
  if (const auto type = ParseComputationType(instruction.String())) {
    measured.type = *type;
  } else {
    instruction.FailExpected(kComputationTypeList);
  }
  measured.time_seconds = row.Get("time").Number();
  measured.energy_joules = row.Get("energy").Number();
  if (const auto samples = FindSet(row, "samples")) {
    measured.samples = samples->Integer(1, kMostNumber);
  }
  measured.time_std_seconds = FindNumber(row, "time_std", kSomeSeconds).value_or(0);
  measured.energy_std_joules = FindNumber(row, "energy_std", kSomeJoules).value_or(0);
  measured.time_sources = ReadSources(row, "time_errors");
  measured.power_sources = ReadSources(row, "power_errors");
  measured.temperature_celsius = FindNumber(row, "temperature_c", kCelsius);
  if (const auto throttled = FindSet(row, "throttled")) measured.throttled = throttled->Bool();
  measured.work = FindNumber(row, "work", kWork).value_or(0);
  measured.seconds_per_work = FindNumber(row, "time_per_work", kSignedSeconds);
  measured.joules_per_work = FindNumber(row, "energy_per_work", kSignedJoules);
  measured.time_residual_std_seconds =
      FindNumber(row, "time_residual_std", kSomeSeconds).value_or(0);
  measured.energy_residual_std_joules =
      FindNumber(row, "energy_residual_std", kSomeJoules).value_or(0);
  return measured;
}

store::MeasuredRow ReadRow(const TreeCursor& row) {
  store::MeasuredRow measured = ReadCost(row);
  measured.clock_mhz = RankNumber(row, "frequency");
  if (measured.clock_mhz == store::kUnlockedMhz) row.Get("frequency").FailExpected("MHz above 0");
  return measured;
}

std::vector<store::MeasuredWaiting> ReadWaiting(const TreeCursor& list) {
  std::vector<store::MeasuredWaiting> waiting;
  const std::size_t count = list.Size();
  if (count > kMostWaiting) list.FailExpected("at most 1000 clocks");
  for (std::size_t i = 0; i < count && i < kMostWaiting; ++i) {
    const TreeCursor row = list.At(i);
    store::MeasuredWaiting& at = waiting.emplace_back();
    at.clock_mhz = RankNumber(row, "frequency");
    if (at.clock_mhz == 0) row.Get("frequency").FailExpected("MHz above 0");
    const auto watts = FindNumber(row, "power_w", kWatts);
    if (watts) {
      at.watts = *watts;
    } else {
      row.FailExpected("the member 'power_w'");
    }
    at.std_watts = FindNumber(row, "power_std_w", kWatts).value_or(0);
  }
  return waiting;
}

store::SweepCost ReadSweep(const TreeCursor& sweep) {
  store::SweepCost cost;
  if (const auto iterations = FindSet(sweep, "iterations")) {
    cost.iterations = iterations->Integer(0, kMostNumber);
  }
  cost.seconds = FindNumber(sweep, "seconds", kSomeSeconds).value_or(0);
  cost.joules = FindNumber(sweep, "joules", kSomeJoules).value_or(0);
  cost.extra_seconds = FindNumber(sweep, "extra_seconds", kSignedSeconds).value_or(0);
  cost.extra_joules = FindNumber(sweep, "extra_joules", kSignedJoules).value_or(0);
  return cost;
}

// Sentences of one line; the empty ones say nothing.
std::vector<std::string> ReadNotes(const TreeCursor& list) {
  std::vector<std::string> notes;
  const std::size_t count = list.Size();
  if (count > kMostReportedNotes) {
    list.FailExpected(fmt::format("at most {} notes", kMostReportedNotes));
  }
  for (std::size_t i = 0; i < count && i < kMostReportedNotes; ++i) {
    std::string note = list.At(i).String();
    if (note.size() > kMostReportedNoteBytes) {
      list.At(i).FailExpected(fmt::format("at most {} bytes", kMostReportedNoteBytes));
    }
    std::replace_if(
        note.begin(), note.end(), [](unsigned char letter) { return letter < ' '; }, ' ');
    if (!note.empty()) notes.push_back(std::move(note));
  }
  return notes;
}

Outcome<store::Measurements> ReadMeasurements(const std::string& body) {
  store::Measurements measured;
  const Outcome<void> read = ReadBody(body, [&](const TreeCursor& root) {
    measured.rank = RankNumber(root, "rank");
    if (const auto rows = FindSet(root, "rows")) {
      const std::size_t count = rows->Size();
      for (std::size_t i = 0; i < count; ++i) measured.rows.push_back(ReadRow(rows->At(i)));
    }
    if (const auto unlocked = FindSet(root, "unlocked")) {
      const std::size_t count = unlocked->Size();
      for (std::size_t i = 0; i < count; ++i) {
        measured.rows.push_back(ReadCost(unlocked->At(i)));
        measured.rows.back().clock_mhz = store::kUnlockedMhz;
        measured.rows.back().throttled = false;  // A power cap is a part of how it runs then.
      }
    }
    measured.blocking_power_watts = FindNumber(root, "blocking_power_w");
    measured.blocking_power_std_watts =
        FindNumber(root, "blocking_power_std_w", kWatts).value_or(0);
    if (const auto waiting = FindSet(root, "waiting")) measured.waiting = ReadWaiting(*waiting);
    measured.counter_period_seconds =
        FindNumber(root, "counter_period_s", kSomeSeconds).value_or(0);
    if (const auto sweep = FindSet(root, "sweep")) measured.sweep = ReadSweep(*sweep);
    if (const auto notes = FindSet(root, "notes")) measured.notes = ReadNotes(*notes);
    if (const auto done = FindSet(root, "done")) measured.done = done->Bool();
  });
  if (!read) return tl::unexpected(read.error());
  return measured;
}

void TakeRows(const JobPointer& job, const CallPointer& call) {
  Outcome<store::Measurements> measured = ReadMeasurements(call->request.body);
  if (!measured) return Send(*call, FailureResponse(measured.error()));
  const std::size_t rows = measured->rows.size();
  Change(job, call, TakeMeasurements{*std::move(measured)}, [rows](const Answer&) {
    return JsonAnswer(200, {{"rows", rows}});
  });
}

// For a rank that goes on with a sweep: what it need not measure again. Another server may have
// taken the last rows; while the store is away, those known here are left out of the sweep.
void ShowMeasurements(const JobPointer& job, const CallPointer& call) {
  const std::int64_t number = *QueryInteger(call->request, "rank");
  job->Refresh([job, call, number](const Result<void>&) {
    WithRank(job, call, number, [job, call](const RankPlace& rank) {
      const ManagedJob::ReportedRows reported = job->RowsOf(rank.rank);
      nlohmann::ordered_json rows = nlohmann::ordered_json::array();
      nlohmann::ordered_json unlocked = nlohmann::ordered_json::array();
      for (const ProfileKey& key : reported.rows) {
        (key.clock_mhz == store::kUnlockedMhz ? unlocked : rows).push_back(ProfileKeyJson(key));
      }
      // A list of its own, as older clients expect clocks.
      nlohmann::ordered_json answer = {{"rows", std::move(rows)}, {"done", reported.done}};
      if (!unlocked.empty()) answer["unlocked"] = std::move(unlocked);
      call->responder.Send(JsonAnswer(200, answer));
    });
  });
}

}  // namespace

Schemas MeasurementSchemas() { return kMeasurementSchemas; }

void AddMeasurementRoutes(RouteMaker* routes) {
  routes->OnJob(RowOf("measure"), TakeRows);
  // Of trainers, too: who may report may ask what was.
  routes->OnJob(RowOf("showMeasurements"), ShowMeasurements);
}

}  // namespace perseus::server
