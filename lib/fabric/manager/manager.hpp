// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "jobs/loop.hpp"
#include "manager/config.hpp"
#include "manager/standby.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

/// A manager that leads its fabric, or stands by until it does.
class Manager {
 public:
  /// Told a word that programs look for, and a sentence.
  using Note = std::function<void(const std::string& kind, const std::string& sentence)>;

  /// Opens the store, whose content comes from `origin`, and listens. `config` outlives it. Throws
  /// std::runtime_error.
  Manager(const Config& config, jobs::Origin origin, Note note);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  struct End {
    std::string fenced; // why it leads no more; empty: it was stopped
    // Its store, too, says that it leads no more: started anew it stands by.
    bool is_followed = false;
    std::string claimed; // who has claimed the fabric: started anew it leads; empty: nobody
  };

  /// Stands by while another one leads; then takes the next term, and leads until stop(), or until
  /// another manager has the fabric. Throws std::runtime_error for a store that makes no sense.
  End run();

  /// Any thread, or a signal's handler by way of one.
  void stop();

  /// The fabric, its jobs and counts, for a page. Any thread; run() answers. Absent: it does not
  /// run, or no answer came in time.
  struct Answer {
    std::optional<Standby> standby; // else it leads
    v1::FabricPicture picture;      // if it leads
    std::string metrics;            // in Prometheus' text format
    std::chrono::system_clock::time_point drawn;
  };

  std::shared_ptr<const Answer> view();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace weir::manager
