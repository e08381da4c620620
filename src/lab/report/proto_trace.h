// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_PROTO_TRACE_H_
#define PERSEUS_SRC_REPORT_PROTO_TRACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "report/protobuf.h"
#include "report/trace_writer.h"

namespace perseus::report {

// Perfetto's own format: a Trace of TrackEvent packets
// (perfetto.dev/docs/reference/synthetic-track-event). Half the JSON form's
// size, and read without a limit.
class ProtoTraceWriter : public TraceWriter {
 public:
  void Process(int pid, std::string_view name, const PipelineDag& dag) override;
  void Slice(int pid, const PipelineDag& dag, int computation, std::int64_t start_ns,
             std::int64_t end_ns, const nlohmann::ordered_json& args) override;
  void Counter(int pid, const std::string& name, std::int64_t ns, std::string_view series,
               double value) override;
  void Instant(int pid, std::string_view name, std::int64_t ns,
               const nlohmann::ordered_json& args) override;
  std::string Finish() override;

 private:
  // Texts that are written once and then named by numbers, from 1 on.
  using Names = std::map<std::string, std::uint64_t, std::less<>>;

  std::uint64_t NumberOf(std::string_view name, int interned_field, Names* names);
  void AddArgs(const nlohmann::ordered_json& args, ProtoMessage* event);
  void AddTrack(const ProtoMessage& track);
  void AddEvent(std::int64_t ns, const ProtoMessage& event);
  void AddPacket(ProtoMessage packet);

  ProtoMessage trace_;
  ProtoMessage new_names_;  // InternedData of the packet that is being made.
  Names event_names_, categories_, arg_names_;
  std::map<std::pair<int, std::string>, std::uint64_t> counters_;  // (pid, name) -> track
};

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_PROTO_TRACE_H_
