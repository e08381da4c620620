// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/fourier.h"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

namespace perseus::emulate {
namespace {

using Complex = std::complex<double>;

// Each value goes to the place whose binary digits are its own, mirrored.
void MirrorPlaces(std::vector<Complex>* values) {
  const std::size_t size = values->size();
  for (std::size_t i = 1, j = 0; i < size; ++i) {
    std::size_t bit = size >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap((*values)[i], (*values)[j]);
  }
}

// Without the checks for infinities that operator* makes.
Complex Times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

// Cooley and Tukey 1965, radix 2. Every root is computed for itself: products
// of roots would lose digits.
void Transform(std::vector<Complex>* values) {
  const std::size_t size = values->size();
  std::vector<Complex> roots(size / 2);
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size);
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
  MirrorPlaces(values);
  for (std::size_t half = 1; half < size; half *= 2) {
    const std::size_t stride = size / (2 * half);
    for (std::size_t first = 0; first < size; first += 2 * half) {
      for (std::size_t k = 0; k < half; ++k) {
        Complex& low = (*values)[first + k];
        Complex& high = (*values)[first + k + half];
        const Complex turned = Times(roots[k * stride], high);
        high = low - turned;
        low += turned;
      }
    }
  }
}

}  // namespace perseus::emulate
