// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_BASE_LIBRARY_REQUEST_H_
#define PERSEUS_SERVER_BASE_LIBRARY_REQUEST_H_

#include <string>

namespace perseus::server {

// What a job asks of the library of profiles. Stored in the column jobs.library.
struct LibraryRequest {
  std::string model;           // The owner's label of the model. Empty: do not use the library.
  double microbatch_size = 0;  // 0: not given.
  bool may_reuse = true;
};
std::string FormatLibraryRequest(const LibraryRequest& request);
// Returns an empty request if `json` cannot be read.
LibraryRequest ParseLibraryRequest(const std::string& json);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_BASE_LIBRARY_REQUEST_H_
