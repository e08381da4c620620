// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EXPORT_H_
#define PERSEUS_EXPORT_H_

#if __cplusplus < 202002L
#error "The headers of Perseus need C++20: compile with -std=c++20 or newer."
#endif

// What a shared library of Perseus shows to the programs that link it: all that
// the public headers declare, between these two, and nothing else. CMake defines
// PERSEUS_STATIC where the libraries are static: who links them into a library
// of his own then exports none of our names.
#if defined(PERSEUS_STATIC)
#define PERSEUS_EXPORT_BEGIN
#define PERSEUS_EXPORT_END
#else
#define PERSEUS_EXPORT_BEGIN _Pragma("GCC visibility push(default)")
#define PERSEUS_EXPORT_END _Pragma("GCC visibility pop")
#endif

#endif  // PERSEUS_EXPORT_H_
