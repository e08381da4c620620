// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_ENERGY_FIGURES_H_
#define PERSEUS_SERVER_API_ENERGY_FIGURES_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "server/domain/schema.h"
#include "server/store/facts.h"

namespace perseus::server {

// Sums of rows of the history, also of several jobs.
class EnergyFigures {
 public:
  void Add(const store::HistoryRow& row);
  // Of iterations that were added: for how long these ranks might have run some.
  void AddTime(double seconds, int ranks);
  // What was not measured is null, rather than 0.
  nlohmann::ordered_json ToJson() const;

 private:
  double iterations_ = 0;
  double gpu_seconds_ = 0;
  double covered_gpu_seconds_ = 0;  // The part of which it is known when that was.
  double possible_gpu_seconds_ = 0;
  std::int64_t reports_ = 0;
  std::int64_t energy_reports_ = 0;
  double joules_ = 0;
  double promised_joules_ = 0;
  double compared_joules_ = 0;
  double realised_joules_ = 0;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_ENERGY_FIGURES_H_
