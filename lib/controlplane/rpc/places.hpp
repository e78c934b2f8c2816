// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace weir::rpc {

/// Things of which there may be only so many at once. A name has at most an equal part of them, and
/// never more than a quarter unless it is the only one. Any thread may use it.
class Places {
 public:
  /// Is given back when it goes. Moves, does not copy.
  class Place {
   public:
    Place(Places& places, std::string name, std::size_t amount)
        : places_(&places), name_(std::move(name)), amount_(amount) {}

    Place(Place&& other) noexcept
        : places_(std::exchange(other.places_, nullptr)), name_(std::move(other.name_)),
          amount_(other.amount_) {}

    Place& operator=(Place&&) = delete;

    ~Place() {
      if (places_ != nullptr) {
        places_->leave(name_, amount_);
      }
    }

   private:
    Places* places_;
    std::string name_;
    std::size_t amount_;
  };

  /// It outlives its places.
  explicit Places(std::size_t most) : most_(most) {}

  /// `names`: how many there may be; none: nobody knows. No place: the name has its part, or all
  /// are taken.
  std::optional<Place> take(const std::string& name, std::optional<std::size_t> names);

  /// Whether the name has less than its part while others' parts are not all taken, or has none.
  /// What another one has beyond its part keeps nobody out.
  bool has_room(const std::string& name, std::optional<std::size_t> names);

  /// So many, even if there are not as many: for a thing whose size shows when it is there.
  Place take_some(const std::string& name, std::size_t amount);

 private:
  std::size_t most_of_one(std::optional<std::size_t> names) const;
  Place give(const std::string& name, std::size_t amount);
  void leave(const std::string& name, std::size_t amount);

  const std::size_t most_;
  std::mutex mutex_; // guards all below
  std::map<std::string, std::size_t> taken_;
  std::size_t all_taken_ = 0;
};

} // namespace weir::rpc
