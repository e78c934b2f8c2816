// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/verbs_nic.hpp"

#include "host/base/error.hpp"
#include "host/transport/verbs_connection.hpp"
#include "host/transport/verbs_transport.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace weir::host {
namespace {

class VerbsMemory : public UserMemory {
 public:
  VerbsMemory(std::shared_ptr<VerbsNic> nic, std::span<std::uint8_t> bytes,
              verbs::MemoryRegion region)
      : nic_(std::move(nic)), bytes_(bytes), region_(std::move(region)) {
    nic_->user_ranges().add(bytes_, region_->lkey);
  }

  VerbsMemory(const VerbsMemory&) = delete;
  VerbsMemory& operator=(const VerbsMemory&) = delete;

  ~VerbsMemory() override {
    if (nic_->is_here()) {
      nic_->user_ranges().remove(bytes_, region_->lkey);
    } else {
      static_cast<void>(region_.release());
    }
  }

 private:
  const std::shared_ptr<VerbsNic> nic_;
  const std::span<std::uint8_t> bytes_;
  verbs::MemoryRegion region_;
};

} // namespace

VerbsNic::VerbsNic(std::string device)
    : device_(std::move(device)), context_(open_device()),
      domain_(made(ibv_alloc_pd(context_.get()), "no protection domain")) {}

VerbsNic::~VerbsNic() {
  if (!is_here()) {
    static_cast<void>(domain_.release());
    static_cast<void>(context_.release());
  }
}

void VerbsNic::fail(std::string_view what, int error) const {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              fmt::format("device {}: {}: {}", device_, what, std::strerror(error)));
}

ibv_context* VerbsNic::open_device() const {
  int count = 0;
  const verbs::DeviceList list(ibv_get_device_list(&count));
  const std::span<ibv_device*> devices(list.get(), static_cast<std::size_t>(count));
  std::vector<std::string> names;
  for (ibv_device* device : devices) {
    names.emplace_back(ibv_get_device_name(device));
    if (names.back() == device_) {
      // ibv_fork_init is not called: from Linux 5.12 on, a fork copies pages that a device writes.
      // On older kernels it would take whole pages away from children, and the pages at the ends of
      // our slots also hold other memory.
      return made(ibv_open_device(device), "cannot be opened");
    }
  }
  fail(names.empty() ? std::string("there are no RDMA devices here")
                     : fmt::format("not among the RDMA devices here ({})", fmt::join(names, ", ")),
       ENODEV);
}

verbs::MemoryRegion VerbsNic::make_region(std::span<std::uint8_t> bytes, int access) const {
  return verbs::MemoryRegion(
      made(ibv_reg_mr(domain_.get(), bytes.data(), bytes.size(), access),
           fmt::format("{} bytes cannot be registered (is the memory writable, and does `ulimit "
                       "-l` allow so much?)",
                       bytes.size())));
}

#ifdef WEIR_HAS_DMABUF_REGIONS
/// Requests name its bytes by the addresses at which this process has them.
verbs::MemoryRegion VerbsNic::make_dmabuf_region(const DmabufRange& range,
                                                 std::span<std::uint8_t> mapped) const {
  return verbs::MemoryRegion(
      made(ibv_reg_dmabuf_mr(domain_.get(), range.offset, range.bytes,
                             reinterpret_cast<std::uintptr_t>(mapped.data()), range.descriptor,
                             IBV_ACCESS_LOCAL_WRITE),
           fmt::format("a dma-buf, descriptor {}, cannot be registered (is it one, and does the "
                       "device's driver take any? Soft-RoCE's does not)",
                       range.descriptor)));
}
#else
verbs::MemoryRegion VerbsNic::make_dmabuf_region(const DmabufRange& /*range*/,
                                                 std::span<std::uint8_t> /*mapped*/) const {
  fail("this build's libibverbs has no ibv_reg_dmabuf_mr, which came with rdma-core 34", ENOSYS);
}
#endif

std::unique_ptr<Transport> VerbsNic::open_transport(const TransportPlan& plan,
                                                    std::uint8_t gid_index) {
  return open_verbs(plan, shared_from_this(), gid_index);
}

std::unique_ptr<NicConnection> VerbsNic::open_connection(const NicConnectionPlan& plan,
                                                         std::uint8_t gid_index) {
  return std::make_unique<VerbsConnection>(plan, shared_from_this(), gid_index);
}

std::unique_ptr<UserMemory> VerbsNic::register_memory(std::span<std::uint8_t> bytes) {
  return std::make_unique<VerbsMemory>(shared_from_this(), bytes,
                                       make_region(bytes, IBV_ACCESS_LOCAL_WRITE));
}

std::unique_ptr<UserMemory> VerbsNic::register_dmabuf(const DmabufRange& range,
                                                      std::span<std::uint8_t> mapped) {
  return std::make_unique<VerbsMemory>(shared_from_this(), mapped,
                                       make_dmabuf_region(range, mapped));
}

std::shared_ptr<Nic> open_nic(const std::string& device) {
  return std::make_shared<VerbsNic>(device);
}

} // namespace weir::host
