// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_BASE_SHAPE_H_
#define PERSEUS_SERVER_BASE_SHAPE_H_

#include <cstdint>

namespace perseus::server {

// How a job's ranks are arranged. The number of a rank's pipeline is its dp_rank.
struct Shape {
  int pipeline_parallel = 1;
  int data_parallel = 1;
  int tensor_parallel = 1;

  std::int64_t world_size() const {
    return std::int64_t{pipeline_parallel} * data_parallel * tensor_parallel;
  }
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_BASE_SHAPE_H_
