// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_CUDA_ABI_H_
#define PERSEUS_DEVICE_CUDA_ABI_H_

#include <array>

// The few types of CUDA's driver interface (libcuda.so.1, cuda.h) that we use, so
// that building Perseus needs no CUDA. Source: NVIDIA, CUDA Driver API reference.
namespace perseus::device::cuda {

using Status = int;
inline constexpr Status kSuccess = 0;
inline constexpr Status kInvalidValue = 1;
inline constexpr Status kNotInitialized = 3;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kUnknown = 999;

using Device = int;
struct Context;
struct Module;
struct Function;
struct Event;
struct Stream;

struct Uuid {
  std::array<unsigned char, 16> bytes;
};

}  // namespace perseus::device::cuda

#endif  // PERSEUS_DEVICE_CUDA_ABI_H_
