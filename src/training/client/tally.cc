// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/tally.h"

#include <utility>

namespace perseus::client {

void Tally::Handle(const Event& event, std::uint64_t lost) {
  switch (event.kind) {
    case EventKind::kStepBegin:
      // A trainer that was told that nobody listens may say nothing.
      is_counting_ = event.stage != kUnheard;
      lost_ = lost;
      now_.clear();
      break;
    case EventKind::kBegin:
      if (is_counting_) ++now_[{event.type, event.stage}];
      break;
    case EventKind::kStepEnd:
      if (!is_counting_ || lost != lost_) break;
      is_counting_ = false;
      if (last_ == now_) counts_ = now_;
      last_ = std::move(now_);
      break;
    case EventKind::kStepAbandon:
      is_counting_ = false;
      break;
    case EventKind::kEnd:
    case EventKind::kBusy:
    case EventKind::kWork:
      break;
  }
}

}  // namespace perseus::client
