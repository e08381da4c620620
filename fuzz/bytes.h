// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FUZZ_BYTES_H_
#define PERSEUS_FUZZ_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Takes numbers off the front of bytes; 0 where there are none.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }

  template <typename Number>
  Number Take() {
    Number number = {};
    const std::size_t length = std::min(sizeof(number), size_);
    std::memcpy(&number, data_, length);
    data_ += length;
    size_ -= length;
    return number;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

#endif  // PERSEUS_FUZZ_BYTES_H_
