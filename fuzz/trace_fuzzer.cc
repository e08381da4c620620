// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a recorded trace, packed or not: one sentence, or a recording that keeps
// what its header promises and can be replayed.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "trace/gunzip.h"
#include "trace/links.h"
#include "trace/recording.h"
#include "trace/what_if.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string unpacked;
  if (perseus::trace::IsGzip(text)) {
    auto packed = perseus::trace::Gunzip(text, "t.gz", kMostBytes);
    if (!packed) return 0;
    unpacked = *std::move(packed);
    text = unpacked;
  }
  const auto recording = perseus::trace::ParseRecording(text, "t.csv");
  if (!recording) {
    if (!recording.error().message.starts_with("t.csv:")) std::abort();
    return 0;
  }
  if (recording->first_of.size() != recording->steps.size() * recording->places() + 1) std::abort();
  const auto links = perseus::trace::LinkOperations(*recording);
  if (!links) {
    if (!links.error().message.starts_with("t.csv:")) std::abort();
    return 0;
  }
  if (links->members.size() != recording->operations.size()) std::abort();
  const auto answer = perseus::trace::AskWhatIf(*recording, *links);
  if (answer.steps.size() != recording->steps.size()) std::abort();
  for (const auto& step : answer.steps) {
    if (!std::isfinite(step.replayed_seconds) || step.replayed_seconds < 0) std::abort();
  }
  return 0;
}
