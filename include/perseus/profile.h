// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_H_
#define PERSEUS_PROFILE_H_

// Link perseus::model (pkg-config: perseus-model).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/computation.h"
#include "perseus/export.h"
#include "perseus/note.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// A speed setting that a GPU can be given: usually an SM clock in MHz, but a
// power cap or any label will do ("300W", "1200MHz/12SM").
struct Knob {
  std::string label = {};  // As the profile spells it. A clock is in MHz, without the unit.
  double number = 0;       // If knobs are numbers: in MHz, or in Profile::knob_unit.
};

// One measured way to run a computation.
struct Option {
  int knob = 0;                 // Index into Profile::knobs.
  double time_seconds = 0;      // > 0. Maximum over the aggregated ranks.
  double energy_joules = 0;     // >= 0. See Profile::tensor_parallel_ranks.
  double time_std_seconds = 0;  // 0 where the profile states no spread.
  double energy_std_joules = 0;
};

// How well a sweep of Perseus measured an option, relative to it. Errors of several options of a
// rank have common sources: source k, a standard normal variable, adds time_sources[k] of it to
// the time; others add power_sources[k] to the power. The rest of each error is the option's own.
struct OptionErrors {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  int knob = 0;             // Index into Profile::knobs.
  double time_std = 0;      // Standard errors.
  double power_std = 0;     // Energy over time.
  double blocking_std = 0;  // Of the rank's blocking power.
  std::vector<double> time_sources = {};
  std::vector<double> power_sources = {};
};

// Power that a GPU draws while it waits at a clock (a row `blocking`). It spins in a communication
// kernel then, so a lower clock draws less.
struct WaitingPower {
  std::optional<int> stage = {};  // Without: of all stages that have no row of their own.
  Knob knob = {};                 // Need not be one of Profile::knobs.
  double watts = 0;               // Of one GPU; the mean where several ranks have a row.
};

// The cost of a computation while no clock is set (a row `default`): as a job runs before Perseus.
// The GPU boosts, or its power cap holds it back. Savings are measured against this, too, and no
// plan chooses it.
struct DefaultClockCost {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  double time_seconds = 0;  // These four as of Option.
  double energy_joules = 0;
  double time_std_seconds = 0;
  double energy_std_joules = 0;
};

// Every option of one stage and type, in the order of the file, also those that are worse than
// others. `options` is never empty.
struct OptionTable {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  std::vector<Option> options = {};
  // Index of the option that savings are measured against: the highest number. If knobs are labels,
  // ProfileOptions::baseline, else the fastest.
  int baseline = 0;
};

// The cost of each computation of a pipeline at each knob. A plain value. It does not change once
// it is made, so threads may share it.
struct Profile {
  std::string source = {};       // File name as given, for messages.
  std::string sha256 = {};       // Of the file's bytes, lower-case hex.
  std::vector<Knob> knobs = {};  // Distinct knobs: numbers descending, or labels in file order.
  // Whether knobs are clocks: plain numbers, or with "MHz" or "GHz".
  bool knobs_are_numbers = true;
  std::string knob_unit = {};  // "MHz", "W", "kW"; "" where none is given, and for labels.
  int num_stages = 0;          // Stages 0 .. num_stages-1 are all present.
  std::vector<OptionTable> tables = {};  // Sorted by (stage, type).
  // Number of distinct tp_rank values that were summed into each energy;
  // 0 where the file has no tp_rank column (energies are then one GPU's).
  int tensor_parallel_ranks = 0;
  int rows = 0;  // Data rows read.
  // The profile's statement that it is no measurement ("MODELLED, not measured: ..."), else empty.
  // Printable ASCII.
  std::string modelled = {};
  std::vector<Note> notes = {};  // What its checks have found.
  // By stage, type and knob; empty where the profile does not say (column `error_sources`).
  std::vector<OptionErrors> errors = {};
  // Of all stages first, then by stage; knobs in the order of `knobs`. Empty where the profile has
  // no rows `blocking`: what a GPU draws while it waits is then taken as constant.
  std::vector<WaitingPower> waiting = {};
  // Sorted by (stage, type). Lacks what was not measured; empty where knobs are labels.
  std::vector<DefaultClockCost> default_clocks = {};

  // Whether the rows `blocking` say what GPUs of a stage draw while they wait.
  bool SaysWaitingOf(int stage) const;
  bool SaysWaiting() const;  // Of all stages.
  // Power of one GPU of a stage that waits at a knob of `knobs`: linear in the number of the knob
  // between two rows, and that of the nearest row outside. Precondition: SaysWaitingOf(stage).
  double WaitingWattsOf(int stage, int knob) const;
  // Whether knobs have an order: numbers, whatever their unit.
  bool KnobsAreRanked() const { return knobs_are_numbers || !knob_unit.empty(); }
  // The table of (stage, type), or nullptr. Lives as long as the profile.
  const OptionTable* Find(int stage, ComputationType type) const;
  // The same of what was measured at default clocks.
  const DefaultClockCost* FindDefaultClockCost(int stage, ComputationType type) const;

  // Whether a profile that was filled in by hand is consistent: indices in range, times above 0,
  // energies not negative, numbers finite, no empty list, and the orders stated above. Every
  // function that takes a profile checks this. The error names the table and the option.
  Result<void> Validate() const;
  // Findings of the checks in these numbers, without places in a file. Job::Make() asks this,
  // because `notes` know nothing of a profile that was filled in or changed by hand.
  std::vector<Note> FindNotes() const;
};

// Makes a profile from numbers in memory, which may come in any order.
//
//   ProfileBuilder builder("measured");
//   builder.Add(0, ComputationType::kForward, 1410, 0.0123, 4.56);
//   builder.Add(0, ComputationType::kBackward, 1410, 0.0246, 9.12);
//   const auto profile = builder.Build();
//   if (!profile) return Fail(profile.error().message);
class ProfileBuilder {
 public:
  // `name` stands for a file's name in messages and plans.
  explicit ProfileBuilder(std::string name = "profile") : name_(std::move(name)) {}

  // One measured way to run a computation. `joules` are those of one GPU.
  ProfileBuilder& Add(int stage, ComputationType type, double mhz, double seconds, double joules);
  // The same at a knob with a label or a unit ("300W"), or at default clocks ("default").
  ProfileBuilder& Add(int stage, ComputationType type, std::string_view knob, double seconds,
                      double joules);

  // Adds the power of one GPU that waits at a clock; without a stage, of all stages.
  ProfileBuilder& AddWaiting(std::optional<int> stage, double mhz, double watts);

  // The profile of all that was added. Errors: those of ParseProfile(), where line n + 1 is the
  // n-th Add().
  Result<Profile> Build(const struct ProfileOptions& options) const;
  Result<Profile> Build() const;

 private:
  std::string name_;
  std::string rows_;  // As in a file, without the header.
  // The error of the first row that no file can hold.
  std::string wrong_;
};

struct ProfileOptions {
  // The label that savings are measured against, where knobs are labels. Every
  // stage and instruction must have it. Empty: the fastest of each.
  std::string baseline = {};
  // Whether a note is an error.
  bool strict = false;
};

// Reads a profile in the CSV format of Zeus and lowtime:
// `stage,instruction,frequency,time,energy` in any column order (`knob` may
// stand for `frequency`); optional columns `time_std`, `energy_std`, `rank`,
// `dp_rank`, `pp_rank`, `tp_rank`, `error_sources`. Seconds and joules. The instruction `blocking`
// makes a WaitingPower; its stage may be empty. The frequency `default` among numbers makes an
// DefaultClockCost. Errors name
// file:line:column. Reading is bounded: a file over 256 MiB is refused.
Result<Profile> ReadProfile(const std::string& path, const ProfileOptions& options = {});

// The same on text in memory; `name` stands for the path in messages.
Result<Profile> ParseProfile(std::string_view text, const std::string& name,
                             const ProfileOptions& options = {});

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_PROFILE_H_
