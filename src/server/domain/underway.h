// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_UNDERWAY_H_
#define PERSEUS_SERVER_DOMAIN_UNDERWAY_H_

#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "server/store/facts.h"

namespace perseus::server {

// What facts about ranks and measurements claim while they are on their way to the store. Each
// request is counted, so that the first one that ends takes nothing from the others.
class Underway {
 public:
  // `facts` are on their way, and are there or refused. End() follows each Begin().
  void Begin(const std::vector<store::Fact>& facts);
  void End(const std::vector<store::Fact>& facts);

  // The record of this rank that began last. Null: none is on its way.
  const store::RankRecord* RankOf(int rank) const;
  // The rank that asked for this position. -1: none.
  int RankAt(const std::array<int, 3>& position) const;
  std::size_t RowsOf(int rank) const;

 private:
  struct Rank {
    store::RankRecord record;
    int requests = 0;
  };
  struct Measured {
    std::size_t rows = 0;
    int requests = 0;
  };
  std::map<int, Rank> ranks_;
  std::map<std::array<int, 3>, int> positions_;  // (dp, pp, tp) -> rank, of `ranks_`.
  std::map<int, Measured> measured_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_UNDERWAY_H_
