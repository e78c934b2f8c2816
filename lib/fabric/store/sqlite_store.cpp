// SPDX-License-Identifier: BSD-3-Clause
#include "store/sqlite_store.hpp"

#include <fmt/format.h>

#include <sqlite3.h>
#include <string_view>

namespace weir::store {
namespace {

constexpr const char* kOpening =
    "PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS items(key TEXT PRIMARY KEY, value BLOB NOT "
    "NULL) WITHOUT ROWID;"
    "BEGIN IMMEDIATE; COMMIT;";

/// A prepared statement.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view text) {
    sqlite3_prepare_v2(database, text.data(), static_cast<int>(text.size()), &statement_, nullptr);
  }

  ~Statement() { sqlite3_finalize(statement_); }

  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind_text(int place, const std::string& text) {
    sqlite3_bind_text(statement_, place, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }

  void bind_bytes(int place, const std::string& bytes) {
    sqlite3_bind_blob(statement_, place, bytes.data(), static_cast<int>(bytes.size()),
                      SQLITE_TRANSIENT);
  }

  /// SQLITE_ROW, SQLITE_DONE or an error.
  int step() { return sqlite3_step(statement_); }

  std::string bytes(int column) {
    const void* const bytes = sqlite3_column_blob(statement_, column);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    return size == 0 ? std::string() : std::string(static_cast<const char*>(bytes), size);
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

} // namespace

struct SqliteStore::Parts {
  explicit Parts(const std::filesystem::path& file) {
    const int opened = sqlite3_open_v2(file.c_str(), &database,
                                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    if (opened != SQLITE_OK || !execute(kOpening)) {
      const std::string why = database != nullptr ? sqlite3_errmsg(database) : "no memory";
      sqlite3_close(database);
      throw StoreError(fmt::format("{}: {}; allowed: a file on a local disk that no other manager "
                                   "has",
                                   file.string(), why));
    }
  }

  ~Parts() { sqlite3_close(database); }

  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  bool execute(const char* text) const {
    return sqlite3_exec(database, text, nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  bool change(const Change& change) const {
    Statement statement(
        database, change.value ? "INSERT INTO items VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE "
                                 "SET value = ?2"
                               : "DELETE FROM items WHERE key = ?1");
    statement.bind_text(1, change.key);
    if (change.value) {
      statement.bind_bytes(2, *change.value);
    }
    return statement.step() == SQLITE_DONE;
  }

  sqlite3* database = nullptr;
};

SqliteStore::SqliteStore(const std::filesystem::path& file)
    : parts_(std::make_unique<Parts>(file)) {}

SqliteStore::~SqliteStore() = default;

std::optional<std::vector<Item>> SqliteStore::read_all() {
  Statement statement(parts_->database, "SELECT key, value FROM items ORDER BY key");
  std::vector<Item> items;
  int step = statement.step();
  for (; step == SQLITE_ROW; step = statement.step()) {
    items.push_back({statement.bytes(0), statement.bytes(1)});
  }
  return step == SQLITE_DONE ? std::optional(std::move(items)) : std::nullopt;
}

std::optional<std::string> SqliteStore::read(const std::string& key) {
  Statement statement(parts_->database, "SELECT value FROM items WHERE key = ?1");
  statement.bind_text(1, key);
  switch (statement.step()) {
  case SQLITE_ROW:
    return statement.bytes(0);
  case SQLITE_DONE:
    return std::string();
  default:
    return std::nullopt;
  }
}

Written SqliteStore::write(std::span<const Change> changes) {
  if (!parts_->execute("BEGIN IMMEDIATE")) {
    return Written::lost;
  }
  bool is_done = true;
  for (const Change& change : changes) {
    is_done = is_done && parts_->change(change);
  }
  if (!is_done || !parts_->execute("COMMIT")) {
    parts_->execute("ROLLBACK");
    return Written::lost;
  }
  return Written::done;
}

} // namespace weir::store
