// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/report.h"
#include "report/check_input.h"
#include "report/text.h"
#include "report/timeline.h"

namespace perseus {
namespace report {
namespace {

using Json = nlohmann::ordered_json;

// One protocol buffer message in the wire format
// (protobuf.dev/programming-guides/encoding), field by field. Enough for
// traces: whole numbers, doubles, strings and messages.
class ProtoMessage {
 public:
  void Whole(int field, std::uint64_t value);  // uint64, uint32, bool, enum; int64 >= 0.
  void Signed(int field, std::int64_t value);  // int64, int32
  void Double(int field, double value);
  void Text(int field, std::string_view value);
  void Message(int field, const ProtoMessage& value) { Text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(std::uint64_t value);
  void Tag(int field, int wire_type);

  std::string bytes_;
};

constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kLengthDelimited = 2;

void ProtoMessage::Varint(std::uint64_t value) {
  constexpr std::uint64_t kMore = 0x80;
  for (; value >= kMore; value >>= 7) bytes_ += static_cast<char>(value | kMore);
  bytes_ += static_cast<char>(value);
}

void ProtoMessage::Tag(int field, int wire_type) {
  Varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire_type));
}

void ProtoMessage::Whole(int field, std::uint64_t value) {
  Tag(field, kVarint);
  Varint(value);
}

void ProtoMessage::Signed(int field, std::int64_t value) {
  Whole(field, static_cast<std::uint64_t>(value));  // Two's complement, ten bytes below 0.
}

void ProtoMessage::Double(int field, double value) {
  Tag(field, kFixed64);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift);
}

void ProtoMessage::Text(int field, std::string_view value) {
  Tag(field, kLengthDelimited);
  Varint(value.size());
  bytes_ += value;
}

// A trace for Perfetto in its own format: a Trace of TrackEvent packets
// (perfetto.dev/docs/reference/synthetic-track-event), which is read without a limit. A pipeline
// is a process, from process 1 on, and its ranks are threads.
class TraceWriter {
 public:
  void Process(int pid, std::string_view name, const PipelineDag& dag);
  // Those of a rank come in the order in which they ran.
  void Slice(int pid, const PipelineDag& dag, int computation, std::int64_t start_ns,
             std::int64_t end_ns, const Json& args);
  void Counter(int pid, const std::string& name, std::int64_t ns, std::string_view series,
               double value);
  // A marker through the whole process.
  void Instant(int pid, std::string_view name, std::int64_t ns, const Json& args);
  const std::string& bytes() const { return trace_.bytes(); }

 private:
  // Texts that are written once and then named by numbers, from 1 on.
  using Names = std::map<std::string, std::uint64_t, std::less<>>;

  std::uint64_t NumberOf(std::string_view name, int interned_field, Names* names);
  void AddArgs(const Json& args, ProtoMessage* event);
  void AddTrack(const ProtoMessage& track);
  void AddEvent(std::int64_t ns, const ProtoMessage& event);
  void AddPacket(ProtoMessage packet);

  ProtoMessage trace_;
  ProtoMessage new_names_;  // InternedData of the packet that is being made.
  Names event_names_, categories_, arg_names_;
  std::map<std::pair<int, std::string>, std::uint64_t> counters_;  // (pid, name) -> track
};

// Perfetto takes thread ids as unique in a trace, shows a thread whose id is
// its process's first, and treats id 0 as the idle task: keep clear of all.
constexpr int kFirstThreadId = 16;

// A sum of which one term changes at a time: log n additions each, and no
// rounding that gathers over the changes.
class ChangingSum {
 public:
  explicit ChangingSum(const std::vector<double>& terms)
      : first_(terms.size()), sums_(2 * terms.size()) {
    std::copy(terms.begin(), terms.end(), sums_.begin() + static_cast<std::ptrdiff_t>(first_));
    for (std::size_t i = first_; i-- > 1;) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
  }

  void Set(int term, double value) {
    std::size_t i = first_ + static_cast<std::size_t>(term);
    sums_[i] = value;
    for (i /= 2; i > 0; i /= 2) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
  }
  double total() const { return sums_.size() > 1 ? sums_[1] : 0; }

 private:
  std::size_t first_;  // Of the terms; sums_[i] is that of 2 i and 2 i + 1.
  std::vector<double> sums_;
};

// Field numbers of protos/perfetto/trace in github.com/google/perfetto; a test
// reads traces with Perfetto's own schema.
namespace trace {
constexpr int kPacket = 1;
}
namespace packet {
constexpr int kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInternedData = 12,
              kSequenceFlags = 13, kTrackDescriptor = 60;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;
}  // namespace packet
namespace track {
constexpr int kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
}
namespace process {
constexpr int kPid = 1, kName = 6;
}
namespace thread {
constexpr int kPid = 1, kTid = 2, kName = 5;
}
namespace counter {
constexpr int kUnitName = 6;
}
namespace event {
constexpr int kCategoryIds = 3, kDebugAnnotations = 4, kType = 9, kNameId = 10, kTrack = 11,
              kDoubleCounterValue = 44;
constexpr std::uint64_t kBegin = 1, kEnd = 2, kInstant = 3, kCount = 4;
}  // namespace event
namespace annotation {
constexpr int kNameId = 1, kBool = 2, kInt = 4, kDouble = 5, kString = 6;
}
namespace interned {
constexpr int kCategories = 1, kEventNames = 2, kAnnotationNames = 3;
constexpr int kId = 1, kText = 2;
}  // namespace interned

// Tracks of processes, threads and counters have ids apart.
constexpr std::uint64_t kThreads = std::uint64_t{1} << 32;
constexpr std::uint64_t kCounters = std::uint64_t{2} << 32;

ProtoMessage EventOn(std::uint64_t track_id, std::uint64_t type) {
  ProtoMessage made;
  made.Whole(event::kType, type);
  made.Whole(event::kTrack, track_id);
  return made;
}

int ThreadId(int pid, int rank, int num_ranks) {
  return kFirstThreadId + (pid - 1) * num_ranks + rank;
}

std::vector<std::string> RankNames(const PipelineDag& dag) {
  std::vector<std::string> names;
  for (const std::vector<int>& stages : StagesOfRanks(dag)) {
    names.push_back(fmt::format("rank {} (stage {})", names.size(), fmt::join(stages, ", ")));
  }
  return names;
}

std::string_view Category(const Computation& computation) {
  return computation.fused ? "fused" : ComputationTypeName(computation.id.type);
}

void TraceWriter::Process(int pid, std::string_view name, const PipelineDag& dag) {
  ProtoMessage descriptor, what;
  what.Signed(process::kPid, pid);
  what.Text(process::kName, name);
  descriptor.Whole(track::kUuid, static_cast<std::uint64_t>(pid));
  descriptor.Message(track::kProcess, what);
  AddTrack(descriptor);
  const std::vector<std::string> names = RankNames(dag);
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    const int tid = ThreadId(pid, rank, dag.num_ranks);
    ProtoMessage lane, rank_lane;
    rank_lane.Signed(thread::kPid, pid);
    rank_lane.Signed(thread::kTid, tid);
    rank_lane.Text(thread::kName, names[rank]);
    lane.Whole(track::kUuid, kThreads + static_cast<std::uint64_t>(tid));
    lane.Whole(track::kParent, static_cast<std::uint64_t>(pid));
    lane.Message(track::kThread, rank_lane);
    AddTrack(lane);
  }
}

void TraceWriter::Slice(int pid, const PipelineDag& dag, int computation, std::int64_t start_ns,
                        std::int64_t end_ns, const Json& args) {
  const Computation& what = dag.computations[computation];
  const std::uint64_t lane =
      kThreads + static_cast<std::uint64_t>(ThreadId(pid, what.rank, dag.num_ranks));
  ProtoMessage begin = EventOn(lane, event::kBegin);
  begin.Whole(event::kNameId,
              NumberOf(ComputationLabel(what), interned::kEventNames, &event_names_));
  begin.Whole(event::kCategoryIds, NumberOf(Category(what), interned::kCategories, &categories_));
  AddArgs(args, &begin);
  AddEvent(start_ns, begin);
  AddEvent(end_ns, EventOn(lane, event::kEnd));
}

void TraceWriter::Counter(int pid, const std::string& name, std::int64_t ns,
                          std::string_view series, double value) {
  const auto [found, is_new] = counters_.try_emplace({pid, name}, kCounters + counters_.size());
  if (is_new) {
    ProtoMessage descriptor, what;
    what.Text(counter::kUnitName, series);
    descriptor.Whole(track::kUuid, found->second);
    descriptor.Text(track::kName, name);
    descriptor.Whole(track::kParent, static_cast<std::uint64_t>(pid));
    descriptor.Message(track::kCounter, what);
    AddTrack(descriptor);
  }
  ProtoMessage count = EventOn(found->second, event::kCount);
  count.Double(event::kDoubleCounterValue, value);
  AddEvent(ns, count);
}

void TraceWriter::Instant(int pid, std::string_view name, std::int64_t ns, const Json& args) {
  ProtoMessage mark = EventOn(static_cast<std::uint64_t>(pid), event::kInstant);
  mark.Whole(event::kNameId, NumberOf(name, interned::kEventNames, &event_names_));
  AddArgs(args, &mark);
  AddEvent(ns, mark);
}

std::uint64_t TraceWriter::NumberOf(std::string_view name, int interned_field, Names* names) {
  const auto found = names->find(name);
  if (found != names->end()) return found->second;
  const std::uint64_t number = names->size() + 1;
  names->emplace(name, number);
  ProtoMessage entry;
  entry.Whole(interned::kId, number);
  entry.Text(interned::kText, name);
  new_names_.Message(interned_field, entry);
  return number;
}

void TraceWriter::AddArgs(const Json& args, ProtoMessage* event) {
  for (const auto& [name, value] : args.items()) {
    ProtoMessage arg;
    arg.Whole(annotation::kNameId, NumberOf(name, interned::kAnnotationNames, &arg_names_));
    if (value.is_boolean()) {
      arg.Whole(annotation::kBool, value.get<bool>() ? 1 : 0);
    } else if (value.is_number_integer()) {
      arg.Signed(annotation::kInt, value.get<std::int64_t>());
    } else if (value.is_number()) {
      arg.Double(annotation::kDouble, value.get<double>());
    } else {
      arg.Text(annotation::kString, value.is_string() ? value.get<std::string>() : value.dump());
    }
    event->Message(event::kDebugAnnotations, arg);
  }
}

void TraceWriter::AddTrack(const ProtoMessage& track) {
  ProtoMessage made;
  made.Message(packet::kTrackDescriptor, track);
  AddPacket(std::move(made));
}

void TraceWriter::AddEvent(std::int64_t ns, const ProtoMessage& event) {
  ProtoMessage made;
  made.Whole(packet::kTimestamp, static_cast<std::uint64_t>(ns));
  made.Message(packet::kTrackEvent, event);
  if (!new_names_.bytes().empty()) {
    made.Message(packet::kInternedData, new_names_);
    new_names_ = {};
  }
  AddPacket(std::move(made));
}

void TraceWriter::AddPacket(ProtoMessage packet) {
  constexpr std::uint64_t kOnlySequence = 1;
  packet.Whole(packet::kSequence, kOnlySequence);
  packet.Whole(packet::kSequenceFlags,
               trace_.bytes().empty() ? packet::kStateCleared : packet::kNeedsState);
  trace_.Message(trace::kPacket, packet);
}

Json ComputationArgs(const CostedPipeline& pipeline, int computation, int knob) {
  const Computation& what = pipeline.dag.computations[computation];
  Json args = {{"stage", what.id.stage},
               {"type", ComputationTypeName(what.id.type)},
               {"microbatch", what.id.microbatch}};
  if (what.fused) {
    args["fused_stage"] = what.fused->stage;
    args["fused_type"] = ComputationTypeName(what.fused->type);
    args["fused_microbatch"] = what.fused->microbatch;
  }
  if (pipeline.knobs_are_numbers) {
    args["clock"] = pipeline.knobs[knob].number;
  } else {
    args["clock"] = pipeline.knobs[knob].label;
  }
  return args;
}

// Writes one run as a process.
class RunWriter {
 public:
  RunWriter(const CostedPipeline& pipeline, const TimelineRun& run, int pid, TraceWriter* out)
      : pipeline_(pipeline), dag_(pipeline.dag), run_(run), pid_(pid), out_(out) {}

  // Of a plan: its clocks and critical computations, too.
  void WritePlan(const std::string& knob_unit) {
    out_->Process(pid_, run_.name, dag_);
    Power();
    for (int rank = 0; rank < dag_.num_ranks; ++rank) {
      if (pipeline_.knobs_are_numbers) ClockCounter(rank, knob_unit);
      Slices(rank);
    }
  }

  // Of an emulation: where the pipeline and the iteration end, too.
  void WriteEmulated(std::int64_t iteration) {
    out_->Process(pid_, run_.name, dag_);
    Power();
    out_->Instant(pid_, "pipeline ends", *run_.own_end_ns, Json::object());
    out_->Instant(pid_, "iteration ends", run_.iteration_ns, {{"iteration", iteration}});
    for (int rank = 0; rank < dag_.num_ranks; ++rank) Slices(rank);
  }

 private:
  // Steps of a pipeline's power: running computations at their mean power, waiting ranks at
  // blocking power.
  void Power() {
    const auto waiting_after = [&](int rank, int i) {
      const double least = pipeline_.rank_blocking_power_watts[rank];
      return run_.knob_while_waiting.empty()
                 ? least
                 : least + pipeline_.DearerWatts(rank, run_.knob_while_waiting[i]);
    };
    std::map<std::int64_t, std::vector<int>> changes;
    for (int i = 0; i < dag_.size(); ++i) {
      changes[run_.start_ns[i]].push_back(i);
      changes[run_.end_ns[i]].push_back(i);
    }
    changes[0];
    changes[run_.iteration_ns];
    std::vector<double> waiting = pipeline_.rank_blocking_power_watts;  // At the begin and the end.
    if (!run_.knob_while_waiting.empty()) {
      for (int rank = 0; rank < dag_.num_ranks; ++rank) {
        waiting[rank] = waiting_after(rank, dag_.rank_order[rank].back());
      }
    }
    ChangingSum power(waiting);
    std::vector<int> running(dag_.num_ranks, -1);
    for (const auto& [ns, computations] : changes) {
      if (ns == run_.iteration_ns) break;
      for (const int i : computations) {
        const int rank = dag_.computations[i].rank;
        if (run_.start_ns[i] == ns && run_.end_ns[i] > ns) {
          running[rank] = i;
          power.Set(rank, run_.watts[i]);
        } else if (running[rank] == i) {
          running[rank] = -1;
          power.Set(rank, waiting_after(rank, i));
        }
      }
      out_->Counter(pid_, "pipeline power (W)", ns, "W", power.total());
    }
    out_->Counter(pid_, "pipeline power (W)", run_.iteration_ns, "W", 0);
  }

  void ClockCounter(int rank, const std::string& knob_unit) {
    const std::string name =
        fmt::format("rank {} clock{}", rank,
                    knob_unit.empty() ? std::string() : fmt::format(" ({})", knob_unit));
    const bool waits = pipeline_.waiting_depends_on_clock() && run_.knob_while_waiting.empty();
    const int waiting = waits ? pipeline_.WaitingKnob(rank).value_or(-1) : -1;
    int knob = -1;
    std::int64_t end_ns = 0;
    const auto set = [&](int to, std::int64_t ns) {
      if (to == knob) return;
      knob = to;
      out_->Counter(pid_, name, ns, knob_unit.empty() ? "value" : knob_unit,
                    pipeline_.knobs[knob].number);
    };
    for (const int i : dag_.rank_order[rank]) {
      if (waits && run_.start_ns[i] > end_ns) set(waiting, end_ns);
      set(run_.knob[i], run_.start_ns[i]);
      end_ns = run_.end_ns[i];
    }
    if (waits && run_.iteration_ns > end_ns) set(waiting, end_ns);
  }

  void Slices(int rank) {
    for (const int i : dag_.rank_order[rank]) {
      Json args = ComputationArgs(pipeline_, i, run_.knob[i]);
      args["energy_j"] = RoundSignificant(run_.joules[i], 9);
      args["power_w"] = RoundSignificant(run_.watts[i], 6);
      if (!run_.critical.empty()) args["critical"] = static_cast<bool>(run_.critical[i]);
      out_->Slice(pid_, dag_, i, run_.start_ns[i], run_.end_ns[i], args);
    }
  }

  const CostedPipeline& pipeline_;
  const PipelineDag& dag_;
  const TimelineRun& run_;
  const int pid_;
  TraceWriter* const out_;
};

}  // namespace
}  // namespace report

inline namespace v0 {

Result<std::string> FormatTimelineTrace(const ReportInput& input) {
  if (auto good = report::CheckInput(input, true); !good) return tl::unexpected(good.error());
  const CostedPipeline& pipeline = *input.pipeline;
  report::TraceWriter out;
  int pid = 0;
  const auto write = [&](const Plan& plan, std::string name) {
    report::RunWriter(pipeline, report::RunOf(pipeline, plan, std::move(name)), ++pid, &out)
        .WritePlan(pipeline.knobs_are_numbers ? input.knob_unit : "");
  };
  write(*input.baseline,
        pipeline.knobs_are_numbers ? "before: all-maximum clocks" : "before: baseline knobs");
  write(*input.chosen, "after: plan");
  return out.bytes();
}

Result<std::string> FormatEmulationTimelineTrace(const EmulationReportInput& input) {
  if (auto good = report::CheckInput(input); !good) return tl::unexpected(good.error());
  const EmulatedTimeline& timeline = input.emulation->timeline;
  report::TraceWriter out;
  int pid = 0;
  for (const EmulatedPipeline& ran : timeline.pipelines) {
    const report::TimelineRun run = report::RunOf(
        *input.pipeline, ran, timeline.time_seconds,
        fmt::format("pipeline {}{}", ran.pipeline, ran.straggles ? " (straggles)" : ""));
    report::RunWriter(*input.pipeline, run, ++pid, &out).WriteEmulated(timeline.iteration);
  }
  return out.bytes();
}

}  // namespace v0
}  // namespace perseus
