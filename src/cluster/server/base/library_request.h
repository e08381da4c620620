// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_BASE_LIBRARY_REQUEST_H_
#define PERSEUS_SERVER_BASE_LIBRARY_REQUEST_H_

#include <string>

namespace perseus::server {

// What a job says of itself to the library; jobs.library of the store.
struct LibraryRequest {
  std::string model;           // Empty: it is not looked for.
  double microbatch_size = 0;  // 0: not said.
  bool may_reuse = true;
};
std::string FormatLibraryRequest(const LibraryRequest& request);
// What cannot be read is as good as none.
LibraryRequest ParseLibraryRequest(const std::string& json);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_BASE_LIBRARY_REQUEST_H_
