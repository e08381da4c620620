// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/base/library_request.h"

#include <nlohmann/json.hpp>

#include "common/json_text.h"

namespace perseus::server {

std::string FormatLibraryRequest(const LibraryRequest& request) {
  return FormatCompact({{"model", request.model},
                        {"microbatch_size", request.microbatch_size},
                        {"may_reuse", request.may_reuse}});
}

LibraryRequest ParseLibraryRequest(const std::string& json) {
  LibraryRequest request;
  const auto tree = ParseObject(json);
  if (tree.is_null()) return request;
  const auto model = tree.find("model");
  const auto size = tree.find("microbatch_size");
  const auto may_reuse = tree.find("may_reuse");
  if (model != tree.end() && model->is_string()) request.model = *model;
  if (size != tree.end() && size->is_number()) request.microbatch_size = *size;
  if (may_reuse != tree.end() && may_reuse->is_boolean()) request.may_reuse = *may_reuse;
  return request;
}

}  // namespace perseus::server
