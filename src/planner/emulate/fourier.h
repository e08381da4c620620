// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_FOURIER_H_
#define PERSEUS_EMULATE_FOURIER_H_

#include <complex>
#include <vector>

namespace perseus::emulate {

// The discrete Fourier transform in place: values[k] becomes the sum of
// values[n] exp(-2 pi i k n / size). Precondition: the size is a power of two.
void Transform(std::vector<std::complex<double>>* values);

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_FOURIER_H_
