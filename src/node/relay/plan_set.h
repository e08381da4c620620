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

// One version of the plans of a node's ranks, as the server sent it for several at
// once (GET .../plans). Immutable, so thread-safe.
class PlanSet {
 public:
  // kIo: it is no such answer.
  static Result<std::shared_ptr<const PlanSet>> Parse(std::shared_ptr<const std::string> text);

  std::int64_t version() const { return version_; }
  bool Has(int rank) const { return places_.contains(rank); }
  std::size_t size() const { return places_.size(); }

  // What the server would have answered that rank alone (GET .../plan), byte for byte.
  // The rank is one that it Has().
  std::shared_ptr<const std::string> BodyOf(int rank) const;

 private:
  // Of one plan in the text, and of its member "ranks" in it.
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
