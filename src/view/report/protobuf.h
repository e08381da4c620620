// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_PROTOBUF_H_
#define PERSEUS_SRC_REPORT_PROTOBUF_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace perseus::report {

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

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_PROTOBUF_H_
