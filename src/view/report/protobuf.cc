// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/protobuf.h"

#include <bit>

namespace perseus::report {
namespace {

constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kLengthDelimited = 2;

}  // namespace

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

}  // namespace perseus::report
