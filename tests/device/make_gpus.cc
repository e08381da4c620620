// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// make_gpus FILE CONFIG: simulated GPUs for tests that are not written in C++.

#include <cstdio>
#include <string>

#include "device/simulated/simulated_gpu.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto made = perseus::device::CreateSimulatedGpus(argv[1], argv[2], "CONFIG");
  if (made) return 0;
  std::fprintf(stderr, "make_gpus: %s\n", made.error().message.c_str());
  return 1;
}
