// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EXPORT_H_
#define PERSEUS_EXPORT_H_

// For every C++ library of Perseus.

#if __cplusplus < 202002L
#error "The headers of Perseus need C++20: compile with -std=c++20 or newer."
#endif

// A shared library of Perseus exports what the public headers declare between these two, and
// nothing else. Static libraries define PERSEUS_STATIC (CMake and pkg-config do it): if you link
// them into a library of your own, that exports no name of Perseus.
//
// All names are in perseus::v0, an inline namespace: write `perseus::Plan`. A version that breaks
// the ABI has another one, so two versions in one process do not mix. docs/reference/library.md
// says what is promised. Paths in these headers that begin with docs/ are in the repository; an
// installation has them below share/doc/perseus.
#if defined(PERSEUS_STATIC)
#define PERSEUS_EXPORT_BEGIN
#define PERSEUS_EXPORT_END
#else
#define PERSEUS_EXPORT_BEGIN _Pragma("GCC visibility push(default)")
#define PERSEUS_EXPORT_END _Pragma("GCC visibility pop")
#endif

#endif  // PERSEUS_EXPORT_H_
