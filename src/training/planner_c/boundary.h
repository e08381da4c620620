// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLANNER_C_BOUNDARY_H_
#define PERSEUS_PLANNER_C_BOUNDARY_H_

#include <memory>

#include "common/c_boundary.h"
#include "perseus/planner_c.h"

namespace perseus::planner_c {

// The border between C and C++.
using c_boundary::Fail;
using c_boundary::FailInvalid;
using c_boundary::Guarded;
using c_boundary::NewText;

// Fills in a struct of the caller's.
template <typename Struct>
perseus_status Give(const char* name, const Struct& from, Struct* to, char** message) {
  const Result<void> given = c_boundary::CopyOut(name, from, to);
  return given ? PERSEUS_OK : Fail(given.error(), message);
}

// A new object that the caller frees.
template <typename Object>
perseus_status Give(Result<std::unique_ptr<Object>> made, Object** to, char** message) {
  if (!made) return Fail(made.error(), message);
  *to = made->release();
  return PERSEUS_OK;
}

// A caller's callback.
struct Progress {
  perseus_planner_progress function = nullptr;
  void* user = nullptr;

  // Whether to go on.
  bool operator()(double share) const { return function == nullptr || function(user, share) == 0; }
};
// The same for C++; `progress` must outlive it.
inline ProgressFunction ToldAs(const Progress& progress) {
  if (progress.function == nullptr) return {};
  return [&progress](const perseus::Progress& now) { return progress(now.share); };
}

}  // namespace perseus::planner_c

#endif  // PERSEUS_PLANNER_C_BOUNDARY_H_
