// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_LIBRARY_SYMBOLS_H_
#define PERSEUS_DEVICE_LIBRARY_SYMBOLS_H_

#include <dlfcn.h>

#include <initializer_list>

namespace perseus::device {

// Finds the functions of a loaded library.
struct LibrarySymbols {
  // A symbol, as a function of whatever type; null: the library lacks it.
  struct Symbol {
    template <typename Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor)
      return reinterpret_cast<Function*>(address);
    }
    void* address = nullptr;
  };

  // The first of these names that the library has.
  Symbol Find(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (void* const found = dlsym(library, name)) return {found};
    }
    return {};
  }

  void* library = nullptr;
};

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_LIBRARY_SYMBOLS_H_
