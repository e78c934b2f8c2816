// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/channel.hpp"

#include "host/mpi/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace weir::mpi {
namespace {

constexpr int kMostRanks = 256;
constexpr std::size_t kMostRingsTold = 4;

std::string name_of(MPI_Comm communicator, int size) {
  std::array<char, MPI_MAX_OBJECT_NAME> name{};
  int length = 0;
  PMPI_Comm_get_name(communicator, name.data(), &length);
  return length > 0 ? std::string(name.data(), static_cast<std::size_t>(length))
                    : fmt::format("a communicator of {} ranks", size);
}

bool is_of_all_ranks(MPI_Comm communicator) {
  int comparison = MPI_UNEQUAL;
  PMPI_Comm_compare(communicator, MPI_COMM_WORLD, &comparison);
  return comparison == MPI_IDENT || comparison == MPI_CONGRUENT;
}

int all_gather(void* user, const void* in, std::size_t bytes, void* out) {
  const int count = static_cast<int>(bytes);
  return PMPI_Allgather(in, count, MPI_BYTE, out, count, MPI_BYTE, *static_cast<MPI_Comm*>(user));
}

const char* pointer_to(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

void set_switch(const Settings& settings, weir_group_options& options) {
  options.switch_address =
      settings.switch_address.c_str(); // "": none, whatever this rank's environment says
  options.switch_certificate = pointer_to(settings.switch_certificate);
  options.switch_key = pointer_to(settings.switch_key);
  options.switch_authority = pointer_to(settings.switch_authority);
  options.switch_name = pointer_to(settings.switch_name);
}

weir_group_options options_of(const Settings& settings) {
  weir_group_options options;
  weir_group_options_init(&options);
  options.window = settings.window.value_or(options.window);
  options.message_bytes = settings.message_bytes.value_or(options.message_bytes);
  options.path_mtu = settings.path_mtu.value_or(options.path_mtu);
  options.ack_timeout_ms = settings.ack_timeout_ms.value_or(options.ack_timeout_ms);
  options.form_timeout_ms = settings.form_timeout_ms.value_or(options.form_timeout_ms);
  options.timeout_ms = settings.timeout_ms.value_or(options.timeout_ms);
  options.lateness_ms = settings.lateness_ms;
  options.fallback = settings.fallback == Fallback::ring ? WEIR_FALLBACK_RING : WEIR_FALLBACK_NONE;
  options.rendezvous = pointer_to(settings.rendezvous);
  set_switch(settings, options);
  if (settings.rings.empty()) {
    options.ring_count = WEIR_RINGS_OFFERED;
  } else if (settings.switch_address.empty()) {
    options.rings = settings.rings.data();
    options.ring_count = settings.rings.size();
  }
  return options;
}

} // namespace

Channel::Channel(MPI_Comm communicator) : communicator_(communicator) {
  int is_between_groups = 0;
  PMPI_Comm_test_inter(communicator, &is_between_groups);
  PMPI_Comm_rank(communicator, &rank_);
  PMPI_Comm_size(communicator, &size_);
  name_ = name_of(communicator, size_);
  if (is_between_groups != 0) {
    way_ = Way::intercommunicator;
  } else if (size_ == 1) {
    way_ = Way::alone;
  } else if (size_ > kMostRanks) {
    way_ = Way::too_many_ranks;
  }
}

Channel::~Channel() {
  if (group_ != nullptr) {
    job().close_in_background(std::exchange(group_, nullptr));
  }
}

std::string Channel::form_group() {
  const Settings& settings = job().settings();
  weir_group_options options = options_of(settings);
  if (settings.switch_address.empty() && settings.fallback != Fallback::ring &&
      !is_of_all_ranks(communicator_)) {
    return "WEIR_SWITCH is not set, and WEIR_RINGS are for a communicator of all ranks in their "
           "order";
  }
  options.rank = static_cast<std::uint16_t>(rank_);
  options.world = static_cast<std::uint16_t>(size_);
  options.all_gather = all_gather;
  options.all_gather_user = &communicator_;
  if (const Operators* const operators = job().operators()) {
    options.operators = operators->loaded().data();
    options.operator_count = operators->loaded().size();
  }
  const weir_status status = weir_group_form(job().context(), &options, &group_);
  return status == WEIR_OK ? ""
                           : fmt::format("{}: {}", weir_status_name(status), weir_last_error());
}

/// The error of the lowest rank that has one, on all ranks.
std::string Channel::common_error(const std::string& own) const {
  int failed = own.empty() ? size_ : rank_;
  PMPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MIN, communicator_);
  if (failed == size_) {
    return "";
  }
  std::array<char, 1024> text{};
  own.copy(text.data(), text.size() - 1);
  PMPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, failed, communicator_);
  return text.data();
}

void Channel::tell_group() const {
  if (job().rank() != 0) {
    return;
  }
  std::array<std::uint32_t, kMostRingsTold> ids{};
  const std::size_t rings = weir_group_rings(group_, ids.data(), ids.size());
  std::string told;
  for (std::size_t at = 0; at < std::min(rings, ids.size()); ++at) {
    told += fmt::format("{} {}", at == 0 ? ", ring" : ",", ids.at(at));
  }
  std::string why = weir_group_fallback_reason(group_);
  why += weir_group_missing_operators(group_); // one of them is empty
  report().note(fmt::format("{}: {} ranks by {}{}{}", name_, size_, weir_group_algorithm(group_),
                            told, why.empty() ? "" : ": " + why));
}

void Channel::agree_on_id() {
  static std::atomic<int> made = 0;
  std::array<int, 2> id{job().rank(), ++made};
  PMPI_Bcast(id.data(), 2, MPI_INT, 0, communicator_);
  id_ = {.rank = id[0], .number = id[1]};
}

int Channel::world_rank_of(int rank) const {
  if (!is_owned_) {
    return -1;
  }
  MPI_Group own = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(communicator_, &own);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int found = -1;
  PMPI_Group_translate_ranks(own, 1, &rank, world, &found);
  PMPI_Group_free(&own);
  PMPI_Group_free(&world);
  return found;
}

void Channel::form() {
  const std::string error = common_error(form_group());
  if (!error.empty()) {
    go_without(error);
  } else if (weir_group_algorithm(group_) ==
             std::string_view("local")) { // MPI knows more of their memory
    close();
    way_ = Way::one_nic;
  } else {
    way_ = Way::weir;
    agree_on_id();
    tell_group();
  }
}

void Channel::go_without(const std::string& error) {
  close();
  way_ = Way::no_ring;
  if (job().settings().fallback == Fallback::none) {
    error_ = fmt::format("{}: {}", name_, error);
  } else if (rank_ == 0) {
    job().say_once(fmt::format("{} goes by MPI: {}", name_, error));
  }
  if (job().rank() == 0) {
    report().note(fmt::format("{}: {} ranks by MPI: {}", name_, size_, error));
  }
}

void Channel::close() {
  weir_group_close(std::exchange(group_, nullptr));
  way_ = Way::no_ring_yet; // if MPI does not free the communicator, it may form another
}

} // namespace weir::mpi
