// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_PLAN_SET_H_
#define PERSEUS_RELAY_PLAN_SET_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "perseus/result.h"

namespace perseus::relay {

// One version of the plans of several ranks, from one answer of the server (GET .../plans).
// Immutable, so thread-safe.
class PlanSet {
 public:
  // kIo: `text` is not such an answer.
  static Result<std::shared_ptr<const PlanSet>> Parse(std::shared_ptr<const std::string> text);

  std::int64_t version() const { return version_; }
  bool Has(int rank) const { return places_.contains(rank); }
  std::size_t size() const { return places_.size(); }

  // The answer that the server would give to this rank alone (GET .../plan), byte for byte.
  // Has(rank) must be true.
  std::shared_ptr<const std::string> BodyOf(int rank) const;

 private:
  // Where a plan is in the text, and where its member "ranks" is.
  struct Place {
    std::size_t begin = 0, end = 0;
    std::size_t ranks_begin = 0, ranks_end = 0;
  };

  std::shared_ptr<const std::string> text_;
  std::int64_t version_ = 0;
  std::map<int, Place> places_;  // By rank.
};

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_PLAN_SET_H_
