// SPDX-License-Identifier: BSD-3-Clause
#include "host/switch_rings/switch_module.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace weir::host {
namespace {

constexpr const char* kFile = "weir/libweir_switch.so";
// From the library or a program in a build tree.
constexpr std::array kFilesOfBuild{"../switch_rings/libweir_switch.so",
                                   "../lib/host/switch_rings/libweir_switch.so"};

/// The library that has this code. In a program it is the program, of whose name the loader knows
/// only what somebody has typed: that must not be looked for in the current folder.
std::filesystem::path own_file() {
  Dl_info own{};
  const bool is_found = dladdr(reinterpret_cast<const void*>(&switch_module), &own) != 0;
  const std::filesystem::path file = is_found ? own.dli_fname : "";
  return file.is_absolute() ? file : "/proc/self/exe";
}

/// Empty if nobody knows.
std::filesystem::path own_folder() {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(own_file(), error);
  return error ? std::filesystem::path() : file.parent_path();
}

std::vector<std::string> candidates() {
  if (const char* given = secure_getenv("WEIR_SWITCH_MODULE"); given != nullptr) {
    return {given};
  }
  std::vector<std::string> files;
  if (const std::filesystem::path folder = own_folder(); !folder.empty()) {
    files.push_back((folder / kFile).string());
    for (const char* const file : kFilesOfBuild) {
      files.push_back((folder / file).lexically_normal().string());
    }
  }
  files.push_back(std::string(WEIR_LIBRARY_FOLDER "/") + kFile);
  return files;
}

[[noreturn]] void refuse_absent(const std::string& why) {
  throw std::runtime_error(fmt::format("the module that makes rings at a switch is not there: {}; "
                                       "it comes with the package libweir1-switch, or with a "
                                       "build that has gRPC (-Dswitch_client=enabled)",
                                       why));
}

/// The loader's words name what it lacks: mostly gRPC of another version.
[[noreturn]] void refuse_foreign(const std::string& why) {
  throw std::runtime_error(
      fmt::format("the module that makes rings at a switch was built for another system: {}; "
                  "allowed: the package libweir1-switch of this system's release, or a module "
                  "built here, from the same version of Weir's sources: meson setup build-host "
                  "-Dswitch=disabled && ninja -C build-host, and WEIR_SWITCH_MODULE="
                  "build-host/lib/host/switch_rings/libweir_switch.so",
                  why));
}

/// Its own libraries are for it alone: the program may have another protobuf.
void* open_first(const std::vector<std::string>& files) {
  std::string absent;
  std::string foreign;
  for (const std::string& file : files) {
    if (void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); opened != nullptr) {
      return opened;
    }
    std::error_code error;
    const bool is_there = std::filesystem::exists(file, error);
    std::string& why = is_there ? foreign : absent;
    if (why.empty()) {
      why = dlerror();
    }
  }
  if (!foreign.empty()) {
    refuse_foreign(foreign);
  }
  refuse_absent(absent);
}

const weir_switch_module& load() {
  const std::vector<std::string> files = candidates();
  void* const opened = open_first(files);
  const auto module_of =
      reinterpret_cast<decltype(&weir_switch_module_of)>(dlsym(opened, "weir_switch_module_of"));
  if (module_of == nullptr || module_of()->version != WEIR_SWITCH_MODULE_VERSION) {
    throw std::runtime_error(fmt::format("the module {} is of another version of Weir; allowed: "
                                         "the package libweir1-switch of this library's version",
                                         files.front()));
  }
  return *module_of();
}

} // namespace

const weir_switch_module& switch_module() {
  static const weir_switch_module& module = load(); // an exception leaves it to the next call
  return module;
}

} // namespace weir::host
