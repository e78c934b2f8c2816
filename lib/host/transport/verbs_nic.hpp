// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/fork_watch.hpp"
#include "host/transport/nic.hpp"
#include "host/transport/registered_ranges.hpp"
#include "host/transport/verbs_objects.hpp"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weir::host {

/// A device of libibverbs and its protection domain. All its queue pairs and registered memory are
/// in that one domain.
class VerbsNic : public Nic, public std::enable_shared_from_this<VerbsNic> {
 public:
  explicit VerbsNic(std::string device);
  ~VerbsNic() override;
  VerbsNic(const VerbsNic&) = delete;
  VerbsNic& operator=(const VerbsNic&) = delete;

  std::unique_ptr<Transport> open_transport(const TransportPlan& plan,
                                            std::uint8_t gid_index) override;
  std::unique_ptr<NicConnection> open_connection(const NicConnectionPlan& plan,
                                                 std::uint8_t gid_index) override;
  std::unique_ptr<UserMemory> register_memory(std::span<std::uint8_t> bytes) override;
  std::unique_ptr<UserMemory> register_dmabuf(const DmabufRange& range,
                                              std::span<std::uint8_t> mapped) override;

  ibv_context& context() const { return *context_; }

  ibv_pd& domain() const { return *domain_; }

  /// Callers' memory.
  RegisteredRanges& user_ranges() { return user_ranges_; }

  /// Memory for `access`, an OR of IBV_ACCESS_*. Throws Error.
  verbs::MemoryRegion make_region(std::span<std::uint8_t> bytes, int access) const;

  [[noreturn]] void fail(std::string_view what, int error) const;

  /// What libibverbs has made. Throws Error with errno's text if it is none.
  template <typename Object>
  Object* made(Object* object, std::string_view what) const {
    if (object == nullptr) {
      fail(what, errno);
    }
    return object;
  }

  /// False in a child made by fork. There nothing may be destroyed: the parent's kernel objects
  /// would go.
  bool is_here() const { return birthplace_.is_here(); }

 private:
  ibv_context* open_device() const;
  verbs::MemoryRegion make_dmabuf_region(const DmabufRange& range,
                                         std::span<std::uint8_t> mapped) const;

  const std::string device_;
  const Birthplace birthplace_;
  verbs::Context context_;
  verbs::ProtectionDomain domain_;
  RegisteredRanges user_ranges_;
};

} // namespace weir::host
