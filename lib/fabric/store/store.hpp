// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::store {

/// What came of a transaction.
enum class Written : std::uint8_t {
  done,
  fenced, // another manager leads: nothing was written
  lost,   // nobody knows whether it was written; a read tells
};

/// Whether this manager leads.
enum class Standing : std::uint8_t {
  stands_by, // another one leads, or none yet
  leads,
  in_doubt, // it has led, and cannot tell whether another one leads since
  over,     // another one leads, or may at any moment
};

struct Leadership {
  Standing standing = Standing::leads;
  std::uint64_t number = 0; // higher than each before; 0: the store does not count them
  std::string leader;       // as it calls itself; empty: not known
  std::optional<std::uint64_t> standbys; // others that wait for the lead; none: not known
  std::string trouble;                   // what the store said last, if it has refused something
};

struct Item {
  std::string key;
  std::string value;
};

struct Change {
  std::string key;
  std::optional<std::string> value; // none: the key goes
};

/// What a fabric's managers remember together: keys with values. Only the leader writes. One thread
/// uses it.
class Store {
 public:
  virtual ~Store() = default;
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// All of it, as it is now. None: it cannot be read.
  virtual std::optional<std::vector<Item>> read_all() = 0;
  /// The value of one key, as it is now; empty if it is not there. None: it cannot be read.
  virtual std::optional<std::string> read(const std::string& key) = 0;
  /// All of the changes or none, if we lead.
  virtual Written write(std::span<const Change> changes) = 0;

  /// Of a store that has one manager alone it is the leader.
  virtual Leadership leadership() { return {}; }
};

} // namespace weir::store
