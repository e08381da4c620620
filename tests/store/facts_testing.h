// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_STORE_FACTS_TESTING_H_
#define PERSEUS_TESTS_STORE_FACTS_TESTING_H_

#include <memory>
#include <string>
#include <vector>

#include "server/store/facts.h"
#include "server/store/store.h"

namespace perseus::store {

// Opens or fails the test with the store's sentence (throws).
std::unique_ptr<Store> OpenOrThrow(const std::string& file_or_spec);

// The job with this id, or throws: there must be one.
StoredJob JobOrThrow(Store& store, const std::string& id);

JobRecord SampleJob(const std::string& id);
RankRecord SampleRank(const std::string& job, int rank);
HistoryRow SampleHistory(const std::string& job);
// One of each kind, all about `job`, in an order that can be written.
std::vector<Fact> SampleFacts(const std::string& job);

// Everything that is known of a job as text, to compare two of them.
std::string Described(const StoredJob& stored);
// The same of all jobs of a store.
std::string Described(Store& store);

}  // namespace perseus::store

#endif  // PERSEUS_TESTS_STORE_FACTS_TESTING_H_
