// SPDX-License-Identifier: BSD-3-Clause
#include "plan/schedule.hpp"

namespace weir::plan {

std::vector<VertexId> children_of(const Schedule& schedule, const Entry& entry) {
  std::vector<VertexId> children;
  if (entry.operation == Operation::gather) {
    for (const Message& message : schedule.sends_of(entry)) {
      children.push_back(message.to);
    }
  } else {
    for (const MessageId id : schedule.waits_of(entry)) {
      const Message& message = schedule.messages[id];
      if (message.operation == Operation::reduce && message.flow == entry.flow) {
        children.push_back(message.from);
      }
    }
  }
  return children;
}

} // namespace weir::plan
