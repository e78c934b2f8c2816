// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "server/questions.hpp"
#include "server/read_facts.hpp"
#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::test {

/// A folder that stands for a server's /, with what a test puts there.
class FakeServer {
 public:
  FakeServer& file(const std::string& path, const std::string& text) {
    const std::filesystem::path place = folder_.path() / path.substr(1);
    std::filesystem::create_directories(place.parent_path());
    std::ofstream(place) << text;
    return *this;
  }

  FakeServer& folder(const std::string& path) {
    std::filesystem::create_directories(folder_.path() / path.substr(1));
    return *this;
  }

  FakeServer& link(const std::string& path, const std::string& target) {
    const std::filesystem::path place = folder_.path() / path.substr(1);
    std::filesystem::create_directories(place.parent_path());
    std::filesystem::remove(place);
    std::filesystem::create_symlink(target, place);
    return *this;
  }

  FakeServer& without(const std::string& path) {
    std::filesystem::remove_all(folder_.path() / path.substr(1));
    return *this;
  }

  std::filesystem::path path() const { return folder_.path(); }

  server::Facts facts(const config::Config& config) const {
    return server::read_facts(server::Tree(folder_.path()), config,
                              [this](const std::string&) { return pause; });
  }

  /// What the question of that name finds here.
  std::vector<server::Finding> ask(std::string_view question, const config::Config& config,
                                   std::uint64_t needed_mib = 0) const {
    const server::Facts known = facts(config);
    for (const server::Question& row : server::questions()) {
      if (row.name == question) {
        return row.ask({config, known, needed_mib});
      }
    }
    throw std::invalid_argument("no question " + std::string(question));
  }

  std::optional<server::Pause> pause; // what the driver of each interface says

 private:
  TemporaryFolder folder_{"weir-server"};
};

/// A finding of this rank that says this.
inline auto finding(server::Rank rank, const std::string& found) {
  return testing::AllOf(testing::Field(&server::Finding::rank, rank),
                        testing::Field(&server::Finding::found, testing::HasSubstr(found)));
}

} // namespace weir::test
