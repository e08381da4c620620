// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace_reader.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace perseus::report {
namespace {

using Json = nlohmann::json;

// The fields of a message: whole numbers (doubles as their bits) and texts.
struct Message {
  std::multimap<int, std::uint64_t> numbers;
  std::multimap<int, std::string_view> texts;

  std::uint64_t Number(int field) const {
    return numbers.contains(field) ? numbers.find(field)->second : 0;
  }
  std::string_view Text(int field) const {
    return texts.contains(field) ? texts.find(field)->second : std::string_view();
  }
};

std::uint64_t TakeVarint(std::string_view* bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

Message Read(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const std::uint64_t tag = TakeVarint(&bytes);
    const int field = static_cast<int>(tag >> 3);
    if ((tag & 7) == 0) {
      message.numbers.emplace(field, TakeVarint(&bytes));
      continue;
    }
    const std::size_t size = (tag & 7) == 1 ? 8 : TakeVarint(&bytes);
    const std::string_view text = bytes.substr(0, size);
    bytes.remove_prefix(size);
    if ((tag & 7) == 2) {
      message.texts.emplace(field, text);
      continue;
    }
    std::uint64_t bits = 0;
    for (std::size_t i = 8; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(text[i]);
    message.numbers.emplace(field, bits);
  }
  return message;
}

class Reader {
 public:
  void Packet(const Message& packet) {
    const Message names = Read(packet.Text(12));
    for (const auto& [kind, text] : names.texts) {
      const Message entry = Read(text);
      names_[{kind, entry.Number(1)}] = entry.Text(2);
    }
    if (packet.texts.contains(60)) {
      Track(Read(packet.Text(60)));
    } else {
      Event(static_cast<double>(packet.Number(8)) / 1e3, Read(packet.Text(11)));
    }
  }

  std::vector<Json> events;

 private:
  void Track(const Message& track) {
    Json& known = tracks_[track.Number(1)];
    if (track.texts.contains(3)) {
      const Message process = Read(track.Text(3));
      known = {{"pid", process.Number(1)}};
      Named("process_name", known, process.Text(6));
    } else if (track.texts.contains(4)) {
      const Message thread = Read(track.Text(4));
      known = {{"pid", thread.Number(1)}, {"tid", thread.Number(2)}};
      Named("thread_name", known, thread.Text(5));
    } else {
      known = {
          {"pid", track.Number(5)}, {"name", track.Text(2)}, {"unit", Read(track.Text(8)).Text(6)}};
    }
  }

  void Named(const char* what, Json of, std::string_view name) {
    of.update({{"ph", "M"}, {"name", what}, {"args", {{"name", name}}}});
    events.push_back(std::move(of));
  }

  void Event(double us, const Message& event) {
    const std::uint64_t id = event.Number(11);
    const Json& track = tracks_.at(id);
    if (event.Number(9) == 2) {
      Json& slice = events[open_.at(id)];
      slice["dur"] = us - slice["ts"].get<double>();
      return;
    }
    Json made = track;
    made["ts"] = us;
    if (event.Number(9) == 4) {
      made["ph"] = "C";
      made.erase("unit");
      made["args"] = {
          {track.at("unit").get<std::string>(), std::bit_cast<double>(event.Number(44))}};
    } else {
      made["ph"] = event.Number(9) == 1 ? "X" : "i";
      made["name"] = names_.at({2, event.Number(10)});
      made["args"] = Args(event);
      if (event.Number(9) == 1) made["cat"] = names_.at({1, event.Number(3)});
      if (event.Number(9) == 1) open_[id] = events.size();
    }
    events.push_back(std::move(made));
  }

  Json Args(const Message& event) const {
    Json args = Json::object();
    for (auto [at, end] = event.texts.equal_range(4); at != end; ++at) {
      const Message arg = Read(at->second);
      Json& value = args[names_.at({3, arg.Number(1)})];
      if (arg.numbers.contains(2)) value = arg.Number(2) != 0;
      if (arg.numbers.contains(4)) value = static_cast<std::int64_t>(arg.Number(4));
      if (arg.numbers.contains(5)) value = std::bit_cast<double>(arg.Number(5));
      if (arg.texts.contains(6)) value = arg.Text(6);
    }
    return args;
  }

  std::map<std::pair<int, std::uint64_t>, std::string> names_;  // (kind, number)
  std::map<std::uint64_t, Json> tracks_;
  std::map<std::uint64_t, std::size_t> open_;  // The slice of a track that has no end yet.
};

}  // namespace

Json ReadTrace(std::string_view bytes) {
  Reader reader;
  for (const auto& [field, packet] : Read(bytes).texts) reader.Packet(Read(packet));
  return reader.events;
}

}  // namespace perseus::report
