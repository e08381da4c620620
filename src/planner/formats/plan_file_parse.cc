// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/file.h"
#include "common/input_limits.h"
#include "common/tree.h"
#include "common/tree_reader.h"
#include "formats/conditions_json.h"
#include "formats/constraints_json.h"
#include "formats/figures_json.h"
#include "formats/knob_counts.h"
#include "model/plan_figures.h"
#include "perseus/computation.h"
#include "perseus/note.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/work.h"
#include "pipeline/limits.h"

namespace perseus {
inline namespace v0 {
namespace {

using pipeline::kMaxComputations;

constexpr int kMaxInt = std::numeric_limits<int>::max();
// What can be planned can be read: stages and microbatches number at most the
// computations of the pipeline,
constexpr int kMaxPlanCount = static_cast<int>(kMaxComputations);
static_assert(kMaxPlanCount == kMaxComputations);
// lists of computations are not in the tree, which then holds of each rank (two
// computations at least) its object with three members, and a delay between two,
constexpr std::int64_t kHeadValues = 1000;
static_assert(kMaxTreeNodes >= kMaxComputations / 2 * (4 + 1) + kHeadValues);
// and a line of the file is some 170 bytes long.
static_assert(kMaxPlanFileBytes >= kMaxComputations * 256);

// Of figures, until they are made from the others and from the computations.
constexpr int kNotSaid = -1;

// 0 where a double cannot hold it.
double MeanPower(double joules, double seconds) {
  const double watts = joules / seconds;
  return std::isfinite(watts) ? watts : 0;
}

constexpr NumberRange kWorkFactor = {.least = kLeastWork, .most = kMostWork};

// Optional fields: absent means the default.
double NumberOr(const TreeCursor& table, std::string_view key, double otherwise,
                NumberRange range = kNotNegative) {
  const std::optional<TreeCursor> found = table.Find(key);
  return found ? found->Number(range) : otherwise;
}

int IntegerOr(const TreeCursor& table, std::string_view key, int otherwise, int least,
              int most = kMaxPlanCount) {
  const std::optional<TreeCursor> found = table.Find(key);
  return found ? found->Integer(least, most) : otherwise;
}

std::string StringOr(const TreeCursor& table, std::string_view key) {
  const std::optional<TreeCursor> found = table.Find(key);
  return found ? found->String() : std::string();
}

ComputationType ReadType(const TreeCursor& cursor) {
  const std::optional<ComputationType> type = ParseComputationType(cursor.String());
  if (!type) cursor.FailExpected(kComputationTypeList);
  return type.value_or(ComputationType::kForward);
}

// All numbers or all labels; the first knob decides where knob_kind is absent.
Knob ReadKnob(const TreeCursor& cursor, std::optional<bool>* knobs_are_numbers) {
  if (!cursor.IsNumber() && !cursor.IsString()) {
    cursor.FailExpected("a number or a string");
    return {};
  }
  if (!*knobs_are_numbers) *knobs_are_numbers = cursor.IsNumber();
  if (!**knobs_are_numbers) return {.label = cursor.String()};
  const double number = cursor.Number(kPositive);
  return {.label = fmt::format("{}", number), .number = number};
}

constexpr std::string_view kBaselineList = "baseline.computations";
constexpr std::string_view kRankList = "ranks[].computations";

// The lists that make a file long are left out of the tree.
class LongListsDropped : public ListConsumer {
 public:
  bool Begin(std::string_view path) override { return path == kBaselineList || path == kRankList; }
  Result<void> Take(TreeNode /*element*/) override { return {}; }
  Result<void> End() override { return {}; }
};

// All of the plan but its computations.
class HeadParser {
 public:
  HeadParser(const TreeNode& root, const std::string& name) : reader_(root, name) {}

  Result<PlanDocument> Parse() {
    const TreeCursor root = reader_.Root();
    ReadVersion(root);
    ReadHead(root);
    ReadFigures(root);
    ReadSettings(root);
    ReadRanks(root);
    if (reader_.failed()) return tl::unexpected(*reader_.error());
    return std::move(plan_);
  }

  // Empty where the file does not say it.
  std::optional<bool> knobs_are_numbers() const { return knobs_are_numbers_; }

 private:
  void ReadVersion(const TreeCursor& root) {
    const TreeCursor version = root.Get("schema_version");
    const int number = version.Integer(0, kMaxInt);
    if (number != kPlanSchemaVersion) {
      version.Fail(
          fmt::format("this perseus reads version {}, found {}; plan again, or use the "
                      "perseus that wrote the file",
                      kPlanSchemaVersion, number));
    }
  }

  void ReadHead(const TreeCursor& root) {
    if (const auto generator = root.Find("generator")) {
      plan_.generator_name = StringOr(*generator, "name");
      plan_.generator_version = StringOr(*generator, "version");
    }
    plan_.schedule = root.Get("schedule").String();
    plan_.stages = root.Get("stages").Integer(1, kMaxPlanCount);
    plan_.virtual_stages = root.Get("virtual_stages").Integer(1, kMaxPlanCount);
    plan_.microbatches = root.Get("microbatches").Integer(1, kMaxPlanCount);
    plan_.tensor_parallel = IntegerOr(root, "tensor_parallel", 1, 1);
    plan_.data_parallel = IntegerOr(root, "data_parallel", 1, 1);
    if (const auto profile = root.Find("profile")) {
      plan_.profile_source = StringOr(*profile, "source");
      plan_.profile_sha256 = StringOr(*profile, "sha256");
      plan_.profile_modelled = StringOr(*profile, "modelled");
    }
    if (const auto kind = root.Find("knob_kind")) {
      const std::string text = kind->String();
      if (text != "sm_clock_mhz" && text != "label") kind->FailExpected("sm_clock_mhz or label");
      knobs_are_numbers_ = text == "sm_clock_mhz";
    }
  }

  void ReadFigures(const TreeCursor& root) {
    plan_.average_power_watts = kNotSaid;
    for (const auto& figure : model::Figures<PlanFigures>()) {
      if (const auto count = figure.count()) plan_.*count = kNotSaid;
    }
    formats::ReadFigures<PlanFigures>(root, &plan_);
    if (plan_.average_power_watts == kNotSaid) {
      plan_.average_power_watts = MeanPower(plan_.energy_joules, plan_.iteration_time_seconds);
    }
    if (const auto shared = root.Find(model::kSharedKnobGroup)) {
      formats::ReadFigures(*shared, &plan_.shared_knobs.emplace());
    }
    if (const auto unlocked = root.Find(model::kUnlockedGroup)) {
      formats::ReadFigures(*unlocked, &plan_.unlocked.emplace());
    }
    if (const auto interval = root.Find(model::kSavingIntervalGroup)) {
      formats::ReadFigures(*interval, &plan_.saving_interval.emplace());
    }
    if (const auto certificate = root.Find("certificate")) {
      plan_.slope_quantum_watts = NumberOr(*certificate, "slope_quantum_w", 0);
      plan_.certified_error = NumberOr(*certificate, "certified_error", 0);
      plan_.exponential_fit = StringOr(*certificate, "cost_curve") == "exponential";
    }
    const TreeCursor baseline = root.Get("baseline");
    plan_.baseline.iteration_time_seconds = baseline.Get("iteration_time_s").Number(kNotNegative);
    plan_.baseline.energy_joules = baseline.Get("energy_j").Number(kNotNegative);
    plan_.baseline.average_power_watts =
        NumberOr(baseline, "average_power_w",
                 MeanPower(plan_.baseline.energy_joules, plan_.baseline.iteration_time_seconds));
    if (const auto costs = baseline.Find("computations")) costs->Size();  // An array.
  }

  void ReadSettings(const TreeCursor& root) {
    plan_.constraints = formats::ReadConstraints(root);
    if (const auto fixed = root.Find("fixed_times")) {
      if (const auto delays = fixed->Find("comm_delay_s")) {
        plan_.fixed.comm_delay_seconds = delays->Numbers(kNotNegative);
      }
      plan_.fixed.data_loading_seconds = NumberOr(*fixed, "data_loading_s", 0);
      plan_.fixed.iteration_overhead_seconds = NumberOr(*fixed, "iteration_overhead_s", 0);
    }
    if (const auto ratio = root.Find("split_ratio")) {
      plan_.split_ratio = ratio->Number({.least = 0, .most = 1});
    }
    if (const auto conditions = root.Find("conditions")) {
      plan_.conditions = formats::ReadConditions(*conditions);
    }
    if (const auto expected = root.Find("expected")) {
      plan_.expected = formats::ReadExpected(*expected);
    }
    if (const auto notes = root.Find("notes")) ReadNotes(*notes);
  }

  void ReadNotes(const TreeCursor& notes) {
    const std::size_t count = notes.Size();
    for (std::size_t i = 0; i < count && !reader_.failed(); ++i) {
      const TreeCursor entry = notes.At(i);
      Note& note = plan_.notes.emplace_back();
      const TreeCursor severity = entry.Get("severity");
      const std::optional<Severity> known = ParseSeverity(severity.String());
      if (!known) severity.FailExpected("odd, implausible or impossible");
      note.severity = known.value_or(Severity::kOdd);
      note.text = entry.Get("text").String();
      note.source = StringOr(entry, "source");
      note.line = IntegerOr(entry, "line", 0, 0, kMaxInt);
      note.column = IntegerOr(entry, "column", 0, 0, kMaxInt);
    }
  }

  void ReadRanks(const TreeCursor& root) {
    const TreeCursor ranks = root.Get("ranks");
    const std::size_t count = ranks.Size();
    if (!reader_.failed() && count * static_cast<std::size_t>(plan_.virtual_stages) !=
                                 static_cast<std::size_t>(plan_.stages)) {
      ranks.Fail(fmt::format("{} ranks with {} virtual stages each do not make {} stages", count,
                             plan_.virtual_stages, plan_.stages));
    }
    for (std::size_t r = 0; r < count && !reader_.failed(); ++r) {
      const TreeCursor entry = ranks.At(r);
      PlannedRank& rank = plan_.ranks.emplace_back();
      if (const auto number = entry.Find("rank");
          number && number->Integer(0, kMaxPlanCount) != static_cast<int>(r)) {
        number->Fail(fmt::format("ranks are listed in order; expected {}", r));
      }
      rank.blocking_power_watts = NumberOr(entry, "blocking_power_w", 0);
      if (const auto knob = entry.Find("waiting_knob")) {
        rank.waiting_knob = ReadKnob(*knob, &knobs_are_numbers_);
      }
      if (const auto waiting = entry.Find("waiting")) {
        for (std::size_t k = 0; k < waiting->Size() && !reader_.failed(); ++k) {
          const TreeCursor at = waiting->At(k);
          rank.waiting.push_back({ReadKnob(at.Get("knob"), &knobs_are_numbers_),
                                  at.Get("power_w").Number(kNotNegative)});
        }
      }
      entry.Get("computations").Size();  // An array.
    }
  }

  TreeReader reader_;
  PlanDocument plan_;
  std::optional<bool> knobs_are_numbers_;
};

// Fills the computations of a plan whose head is read, one by one.
class ComputationsParser : public ListConsumer {
 public:
  ComputationsParser(PlanDocument* plan, std::optional<bool> knobs_are_numbers,
                     const std::string& name)
      : plan_(*plan), name_(name), knobs_are_numbers_(knobs_are_numbers) {}

  bool Begin(std::string_view path) override {
    // Every rank has one list, and they come in order.
    if (path == kRankList) ++rank_;
    in_baseline_ = path == kBaselineList;
    index_ = 0;
    return in_baseline_ || path == kRankList;
  }

  Result<void> Take(TreeNode element) override {
    TreeReader reader(element, name_, &place_);
    if (in_baseline_) {
      plan_.baseline.costs.push_back(ReadBaselineCost(reader.Root()));
    } else {
      AddEntry(ReadEntry(reader.Root()), element.position, &reader);
    }
    if (std::max(plan_.baseline.costs.size(), seen_.size()) >
        static_cast<std::size_t>(kMaxComputations)) {
      reader.Root().Fail(fmt::format("is one more than the {} computations that a plan may have",
                                     kMaxComputations));
    }
    if (reader.failed()) return tl::unexpected(*reader.error());
    ++index_;
    return {};
  }

  Result<void> End() override {
    if (half_) return tl::unexpected(HalfMissing());
    return {};
  }

  Result<void> Finish() {
    plan_.knobs_are_numbers = knobs_are_numbers_.value_or(true);
    std::stable_sort(seen_.begin(), seen_.end(),
                     [](const Seen& a, const Seen& b) { return a.id < b.id; });
    const auto twin = std::adjacent_find(seen_.begin(), seen_.end(),
                                         [](const Seen& a, const Seen& b) { return a.id == b.id; });
    if (twin == seen_.end()) return {};
    const Seen& again = *std::next(twin);
    return tl::unexpected(
        TreeError(name_, again.position,
                  fmt::format("{}: {} of stage {}, microbatch {} is already on line {}; each "
                              "computation runs once an iteration",
                              Place(again.rank, again.index), ComputationTypeName(again.id.type),
                              again.id.stage, again.id.microbatch, twin->position.line)));
  }

 private:
  // One entry of "computations" of a rank.
  struct Entry {
    PlannedComputation computation;
    bool fused = false;
  };
  // A computation that was read, and where.
  struct Seen {
    ComputationId id;
    Position position;
    int rank = 0;
    int index = 0;
  };

  static std::string Place(int rank, int index) {
    return fmt::format("ranks[{}].computations[{}]", rank, index);
  }

  BaselineCost ReadBaselineCost(const TreeCursor& entry) {
    BaselineCost cost;
    cost.type = ReadType(entry.Get("type"));
    cost.stage = ReadIndex(entry.Get("stage"), plan_.stages);
    if (const auto fused = entry.Find("fused_type")) {
      cost.fused_type = ReadType(*fused);
      cost.fused_stage = ReadIndex(entry.Get("fused_stage"), plan_.stages);
    }
    cost.knob = ReadKnob(entry.Get("knob"), &knobs_are_numbers_);
    cost.duration_seconds = entry.Get("duration_s").Number(kNotNegative);
    cost.energy_joules = entry.Get("energy_j").Number(kNotNegative);
    cost.work = NumberOr(entry, "work", 1, kWorkFactor);
    cost.fused_work = NumberOr(entry, "fused_work", 1, kWorkFactor);
    return cost;
  }

  Entry ReadEntry(const TreeCursor& cursor) {
    Entry entry;
    PlannedComputation& computation = entry.computation;
    computation.id.type = ReadType(cursor.Get("type"));
    computation.id.stage = ReadIndex(cursor.Get("stage"), plan_.stages);
    computation.id.microbatch = ReadIndex(cursor.Get("microbatch"), plan_.microbatches);
    computation.knob = ReadKnob(cursor.Get("knob"), &knobs_are_numbers_);
    computation.start_seconds = cursor.Get("start_s").Number(kNotNegative);
    computation.duration_seconds = cursor.Get("duration_s").Number(kNotNegative);
    computation.energy_joules = cursor.Get("energy_j").Number(kNotNegative);
    computation.work = NumberOr(cursor, "work", 1, kWorkFactor);
    if (const auto fused = cursor.Find("fused")) entry.fused = fused->Bool();
    return entry;
  }

  // The halves of a fused computation follow each other.
  void AddEntry(Entry entry, Position position, TreeReader* reader) {
    if (reader->failed()) return;
    seen_.push_back({entry.computation.id, position, rank_, index_});
    if (half_) {
      if (!AreFusedPair(*half_, entry)) return reader->FailWith(HalfMissing());
      half_->computation.fused = entry.computation.id;
      half_->computation.fused_work = entry.computation.work;
      entry.computation = std::move(half_->computation);
      half_.reset();
    } else if (entry.fused) {
      half_ = std::move(entry);
      return;
    }
    plan_.ranks[static_cast<std::size_t>(rank_)].computations.push_back(
        std::move(entry.computation));
  }

  // The entry that was read last is the first half.
  Error HalfMissing() const {
    const auto first = std::find_if(seen_.rbegin(), seen_.rend(), [this](const Seen& seen) {
      return seen.id == half_->computation.id;
    });
    return TreeError(
        name_, first->position,
        Place(first->rank, first->index) +
            ": a fused computation must be followed by the backward that runs with it, "
            "with the same knob, start_s, duration_s and energy_j");
  }

  static bool AreFusedPair(const Entry& first, const Entry& second) {
    const PlannedComputation& a = first.computation;
    const PlannedComputation& b = second.computation;
    return second.fused && MayRunAsOne(a.id, b.id) && a.knob.label == b.knob.label &&
           a.start_seconds == b.start_seconds && a.duration_seconds == b.duration_seconds &&
           a.energy_joules == b.energy_joules;
  }

  // Stage or microbatch: 0 .. count - 1.
  static int ReadIndex(const TreeCursor& cursor, int count) { return cursor.Integer(0, count - 1); }

  PlanDocument& plan_;
  const std::string& name_;
  std::optional<bool> knobs_are_numbers_;
  bool in_baseline_ = false;
  int rank_ = -1;
  int index_ = 0;  // In the list that is read.
  const std::function<std::string()> place_ = [this] {
    return in_baseline_ ? fmt::format("{}[{}]", kBaselineList, index_) : Place(rank_, index_);
  };
  std::optional<Entry> half_;  // Whose other half comes next.
  std::vector<Seen> seen_;
};

}  // namespace

Result<PlanDocument> ParsePlanJson(std::string_view text, const std::string& name) {
  if (text.size() > kMaxPlanFileBytes) {
    return InvalidInput(fmt::format("{}: is larger than {} MiB; is it the right file?", name,
                                    kMaxPlanFileBytes >> 20));
  }
  LongListsDropped dropped;
  const Result<TreeNode> tree = ParseJsonTree(text, name, &dropped);
  if (!tree) return tl::unexpected(tree.error());
  HeadParser head(*tree, name);
  Result<PlanDocument> plan = head.Parse();
  if (!plan) return plan;
  // Read again for what does not fit in a tree, now that its limits are known.
  ComputationsParser computations(&*plan, head.knobs_are_numbers(), name);
  if (const Result<TreeNode> again = ParseJsonTree(text, name, &computations); !again) {
    return tl::unexpected(again.error());
  }
  if (const Result<void> finished = computations.Finish(); !finished) {
    return tl::unexpected(finished.error());
  }
  const formats::KnobCounts counts = formats::CountKnobs(*plan);
  for (const auto& figure : model::Figures<PlanFigures>()) {
    const auto count = figure.count();
    if (count && *plan.*count == kNotSaid) *plan.*count = counts.figures.*count;
  }
  return plan;
}

Result<PlanDocument> ReadPlan(const std::string& path) {
  const Result<std::string> text = ReadWholeFileOrPipe(path, kMaxPlanFileBytes);
  if (!text) return tl::unexpected(text.error());
  return ParsePlanJson(*text, path);
}

}  // namespace v0
}  // namespace perseus
