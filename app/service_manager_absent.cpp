// SPDX-License-Identifier: BSD-3-Clause
#include "service_manager.hpp"

namespace weir::app {

ServiceManager::ServiceManager() = default;

void ServiceManager::tell_ready() {}

void ServiceManager::tell_reloading() {}

void ServiceManager::tell_stopping() {}

void ServiceManager::ask_for_time_to_stop(std::chrono::seconds) {}

void ServiceManager::tell_status(const std::string&) {}

void ServiceManager::give_sign_of_life() {}

} // namespace weir::app
