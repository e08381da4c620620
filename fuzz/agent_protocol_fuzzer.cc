// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/journal.h"
#include "agent/protocol.h"

// Requests of clients, answers of agents, and journals:
// whatever is read is written and read back to the same text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus::agent;  // NOLINT(google-build-using-namespace): few lines.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto request = ParseRequest(text)) {
    const std::string written = FormatRequest(*request);
    const auto again = ParseRequest(written);
    if (!again || FormatRequest(*again) != written) std::abort();
  } else if (request.error().message.empty()) {
    std::abort();
  }
  if (const auto answer = ParseAnswer(text)) {
    const std::string written = FormatAnswer(*answer);
    const auto again = ParseAnswer(written);
    if (!again || FormatAnswer(*again) != written) std::abort();
  }
  if (const auto journal = ParseJournal(text, "journal")) {
    if (FormatJournal(*journal) != text) std::abort();
  }
  return 0;
}
