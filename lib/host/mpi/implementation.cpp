// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/implementation.hpp"

#include "host/mpi/mpi_api.hpp"
#include "host/mpi/report.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <string>
#include <string_view>
#include <vector>

namespace weir::mpi {
namespace {

// What only one of them exports.
#ifdef OPEN_MPI
constexpr const char* kOurs = "ompi_mpi_comm_world";
constexpr const char* kTheirs = "MPIR_Err_create_code";
constexpr const char* kOther = "MPICH";
#else
constexpr const char* kOurs = "MPIR_Err_create_code";
constexpr const char* kTheirs = "ompi_mpi_comm_world";
constexpr const char* kOther = "Open MPI";
#endif

int note_name(dl_phdr_info* object, std::size_t, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(object->dlpi_name);
  return 0;
}

/// The libraries of this process that may be an MPI.
std::vector<std::string> libraries() {
  std::vector<std::string> names;
  dl_iterate_phdr(note_name, &names);
  std::erase_if(names, [](const std::string& name) {
    return std::string_view(name).substr(name.rfind('/') + 1).find("mpi") == std::string_view::npos;
  });
  return names;
}

/// A handle on it, or NULL.
void* loaded_with(const std::string& library, const char* symbol) {
  void* const object = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return object != nullptr && dlsym(object, symbol) != nullptr ? object : nullptr;
}

} // namespace

void find_implementation() {
  bool is_there = false;
  for (const std::string& library : libraries()) {
    if (loaded_with(library, kTheirs) != nullptr) {
      say_last_words(fmt::format("the program uses {} ({}), and LD_PRELOAD has the library for {}; "
                                 "docs/mpi.md says which to take",
                                 kOther, library, kImplementation));
      std::exit(1); // NOLINT(concurrency-mt-unsafe)
    }
    if (loaded_with(library, kOurs) != nullptr) {
      is_there = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) != nullptr;
    }
  }
  if (!is_there) {
    say_last_words(
        fmt::format("found no library of {} in this process, for which LD_PRELOAD has the library",
                    kImplementation));
    std::exit(1); // NOLINT(concurrency-mt-unsafe)
  }
}

} // namespace weir::mpi
