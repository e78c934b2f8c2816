// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/weir.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weir::mpi {

/// What a communicator's calls do when it gets no ring. The variable has these words in this order.
enum class Fallback {
  mpi,  // go to MPI
  ring, // are reduced by libweir on the hosts
  none  // fail
};

/// When a communicator gets its ring. The same.
enum class Forming {
  lazy, // at the first blocking call that would use it
  eager // when it is made; MPI_COMM_WORLD in MPI_Init
};

/// What a user chooses. docs/mpi.md has the table, host/variables/variables.hpp what holds without.
struct Settings {
  // Each rank's own.
  weir_transport transport{};
  std::string device;
  std::string ip;
  std::string mac;
  std::string rendezvous;
  std::optional<std::uint8_t> gid_index;
  // Rank 0's, for the whole job.
  std::string switch_address;
  std::string switch_certificate;
  std::string switch_key;
  std::string switch_authority;
  std::string switch_name;
  // For communicators of all ranks, without a switch's address. None: as many as a switch offers.
  std::vector<std::uint32_t> rings;
  std::optional<std::uint32_t> window;
  std::optional<std::uint32_t> message_bytes;
  std::optional<std::uint32_t> path_mtu;
  std::optional<std::uint32_t> ack_timeout_ms;
  std::optional<std::uint32_t> form_timeout_ms;
  std::optional<std::uint32_t> timeout_ms;
  std::uint32_t lateness_ms = 0; // 0: any time
  Fallback fallback{};
  Forming forming{};
  std::uint64_t threshold = 0; // bytes of the result; smaller calls go to MPI
  bool has_operators = false;  // MPI_MAXLOC and the like go by Weir
  bool is_verbose = false;
};

/// The variables that are set, by name.
using Variables = std::map<std::string, std::string>;

/// Those of the environment, and for others what the file of WEIR_MPI_CONFIG says, or
/// /etc/weir/mpi.conf if it is there. Throws std::invalid_argument.
Variables given_variables();

/// Of those, what rank 0 says for all.
Variables job_variables(const Variables& all);

/// `job` has rank 0's; `own` this rank's, in which "%r" stands for its rank, "%l" for its rank
/// among those of its host. Throws std::invalid_argument.
Settings settings_of(const Variables& own, const Variables& job, int rank, int local_rank);

/// As "NAME=VALUE", each with a NUL at its end.
std::string text_of(const Variables& variables);
Variables variables_in(const std::string& text);

} // namespace weir::mpi
