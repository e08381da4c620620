// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/proto_trace.h"

#include <fmt/format.h>

#include <vector>

#include "report/timeline.h"

namespace perseus::report {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

void ProtoTraceWriter::Process(int pid, std::string_view name, const PipelineDag& dag) {
  ProtoMessage descriptor, what;
  what.Signed(process::kPid, pid);
  what.Text(process::kName, name);
  descriptor.Whole(track::kUuid, static_cast<std::uint64_t>(pid));
  descriptor.Message(track::kProcess, what);
  AddTrack(descriptor);
  const std::vector<std::string> names = TraceRankNames(dag);
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    const int tid = TraceThreadId(pid, rank, dag.num_ranks);
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

void ProtoTraceWriter::Slice(int pid, const PipelineDag& dag, int computation,
                             std::int64_t start_ns, std::int64_t end_ns, const Json& args) {
  const Computation& what = dag.computations[computation];
  const std::uint64_t lane =
      kThreads + static_cast<std::uint64_t>(TraceThreadId(pid, what.rank, dag.num_ranks));
  ProtoMessage begin = EventOn(lane, event::kBegin);
  begin.Whole(event::kNameId,
              NumberOf(ComputationLabel(what), interned::kEventNames, &event_names_));
  begin.Whole(event::kCategoryIds,
              NumberOf(TraceCategory(what), interned::kCategories, &categories_));
  AddArgs(args, &begin);
  AddEvent(start_ns, begin);
  AddEvent(end_ns, EventOn(lane, event::kEnd));
}

void ProtoTraceWriter::Counter(int pid, const std::string& name, std::int64_t ns,
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

void ProtoTraceWriter::Instant(int pid, std::string_view name, std::int64_t ns, const Json& args) {
  ProtoMessage mark = EventOn(static_cast<std::uint64_t>(pid), event::kInstant);
  mark.Whole(event::kNameId, NumberOf(name, interned::kEventNames, &event_names_));
  AddArgs(args, &mark);
  AddEvent(ns, mark);
}

std::string ProtoTraceWriter::Finish() { return trace_.bytes(); }

std::uint64_t ProtoTraceWriter::NumberOf(std::string_view name, int interned_field, Names* names) {
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

void ProtoTraceWriter::AddArgs(const Json& args, ProtoMessage* event) {
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

void ProtoTraceWriter::AddTrack(const ProtoMessage& track) {
  ProtoMessage made;
  made.Message(packet::kTrackDescriptor, track);
  AddPacket(std::move(made));
}

void ProtoTraceWriter::AddEvent(std::int64_t ns, const ProtoMessage& event) {
  ProtoMessage made;
  made.Whole(packet::kTimestamp, static_cast<std::uint64_t>(ns));
  made.Message(packet::kTrackEvent, event);
  if (!new_names_.bytes().empty()) {
    made.Message(packet::kInternedData, new_names_);
    new_names_ = {};
  }
  AddPacket(std::move(made));
}

void ProtoTraceWriter::AddPacket(ProtoMessage packet) {
  constexpr std::uint64_t kOnlySequence = 1;
  packet.Whole(packet::kSequence, kOnlySequence);
  packet.Whole(packet::kSequenceFlags,
               trace_.bytes().empty() ? packet::kStateCleared : packet::kNeedsState);
  trace_.Message(trace::kPacket, packet);
}

}  // namespace perseus::report
