-- SPDX-License-Identifier: BSD-3-Clause
--
-- Shows Weir's messages in Wireshark: the INA header, which packet of which message a frame is, and the tensor's first
-- elements (docs/protocol.md §2, §3). For RoCEv2 and RoCE v1.
--
--   wireshark -X lua_script:tools/wireshark/weir.lua capture.pcap
--   tshark -X lua_script:tools/wireshark/weir.lua -r capture.pcap -Y 'weir.ring == 7 && weir.flags.result'
--
-- To have it always, copy it into the folder that Help > About > Folders calls "Personal Lua Plugins".

local MAGIC = 0x57454952
local VERSION = 2
local HEADER_BYTES = 40
local MESSAGES_REMEMBERED = 64 -- of a connection
local ELEMENTS_SHOWN = 4
local HELLO = 1

local OPERATIONS = { [0] = "sum", "min", "max", "product", "and", "or", "xor" }
local COLLECTIVES = { [0] = "all-reduce", "hello", "broadcast", "barrier" }
local TYPES = {
  [0] = "f32", "i32", "f16", "bf16", "f64", "i8", "u8", "i16", "u16", "u32", "i64", "u64", "f8 E4M3", "f8 E5M2",
}

-- RC opcodes that carry messages (IBTA §9.2.1). The header is in those that begin one.
local BEGINS = { [0x00] = "SEND", [0x04] = "SEND", [0x05] = "SEND", [0x06] = "WRITE", [0x0a] = "WRITE", [0x0b] = "WRITE" }
local GOES_ON = {
  [0x01] = "SEND", [0x02] = "SEND", [0x03] = "SEND", [0x07] = "WRITE", [0x08] = "WRITE", [0x09] = "WRITE",
}
local FIRST = { [0x00] = true, [0x06] = true }

local weir = Proto("weir", "Weir in-network aggregation")

local field = {
  magic = ProtoField.uint32("weir.magic", "Magic", base.HEX),
  version = ProtoField.uint8("weir.version", "Version"),
  operation = ProtoField.uint8("weir.op", "Operation", base.DEC, OPERATIONS),
  type = ProtoField.uint8("weir.dtype", "Data type", base.DEC, TYPES),
  flags = ProtoField.uint8("weir.flags", "Flags", base.HEX),
  result = ProtoField.bool("weir.flags.result", "RESULT", 8, nil, 0x01),
  partial = ProtoField.bool("weir.flags.partial", "PARTIAL", 8, nil, 0x02),
  ring = ProtoField.uint32("weir.ring", "Ring"),
  rank = ProtoField.uint16("weir.rank", "Rank"),
  world = ProtoField.uint16("weir.world", "Ranks in the ring"),
  message = ProtoField.uint32("weir.msg", "Message"),
  length = ProtoField.uint32("weir.len", "Data of the message, bytes"),
  epoch = ProtoField.uint32("weir.epoch", "Epoch"),
  session = ProtoField.uint32("weir.session", "Session", base.HEX),
  nonce = ProtoField.uint32("weir.nonce", "Nonce", base.HEX),
  collective = ProtoField.uint8("weir.collective", "Collective", base.DEC, COLLECTIVES),
  ack_timeout = ProtoField.uint8("weir.ack_timeout", "Local ACK timeout, exponent"),
  root = ProtoField.uint16("weir.root", "Root"),
  qp = ProtoField.uint32("weir.qp", "Queue pair of the sender", base.HEX),
  data = ProtoField.bytes("weir.data", "Data"),
  value = ProtoField.string("weir.value", "Element"),
  packet = ProtoField.uint32("weir.packet", "Packet of the message, from 0"),
  packets = ProtoField.uint32("weir.packets", "Packets of the message"),
  begins_in = ProtoField.framenum("weir.begins_in", "Message begins in", base.NONE),
  repeats = ProtoField.framenum("weir.repeats", "Repeats", base.NONE, frametype.RETRANS_PREV),
}
weir.fields = field

local expert = {
  version = ProtoExpert.new("weir.version.unknown", "Not the version of this dissector", expert.group.UNDECODED,
    expert.severity.WARN),
  repeated = ProtoExpert.new("weir.repeated", "Repeated packet", expert.group.SEQUENCE, expert.severity.NOTE),
  reserved = ProtoExpert.new("weir.reserved", "Value without a meaning", expert.group.PROTOCOL, expert.severity.WARN),
}
weir.experts = expert

local opcode_of = Field.new("infiniband.bth.opcode")
local queue_pair_of = Field.new("infiniband.bth.destqp")
local psn_of = Field.new("infiniband.bth.psn")

-- ------------------------------------------------------------------------------------------------ elements

local function float_of(sign, exponent, fraction, bias)
  local value = exponent == 0 and fraction * 2.0 ^ (1 - bias) or (1 + fraction) * 2.0 ^ (exponent - bias)
  return sign == 0 and value or -value
end

-- An IEEE-like float of few bits. `has_infinity`: its largest exponent means infinity or NaN.
local function small_float(bits, exponent_bits, fraction_bits, has_infinity)
  local fraction = bits % 2 ^ fraction_bits
  local exponent = math.floor(bits / 2 ^ fraction_bits) % 2 ^ exponent_bits
  local sign = math.floor(bits / 2 ^ (fraction_bits + exponent_bits))
  local most = 2 ^ exponent_bits - 1
  if exponent == most and has_infinity then
    return fraction ~= 0 and "NaN" or (sign == 0 and "inf" or "-inf")
  end
  if exponent == most and fraction == 2 ^ fraction_bits - 1 then
    return "NaN" -- E4M3 has this one alone
  end
  return float_of(sign, exponent, fraction / 2 ^ fraction_bits, 2 ^ (exponent_bits - 1) - 1)
end

local function text_of(value)
  return type(value) == "number" and string.format("%.9g", value) or tostring(value)
end

-- Bytes of an element, and its text.
local ELEMENTS = {
  [0] = { 4, function(bytes) return text_of(bytes:le_float()) end },
  [1] = { 4, function(bytes) return tostring(bytes:le_int()) end },
  [2] = { 2, function(bytes) return text_of(small_float(bytes:le_uint(), 5, 10, true)) end },
  [3] = { 2, function(bytes) return text_of(small_float(bytes:le_uint(), 8, 7, true)) end },
  [4] = { 8, function(bytes) return string.format("%.17g", bytes:le_float()) end },
  [5] = { 1, function(bytes) return tostring(bytes:le_int()) end },
  [6] = { 1, function(bytes) return tostring(bytes:le_uint()) end },
  [7] = { 2, function(bytes) return tostring(bytes:le_int()) end },
  [8] = { 2, function(bytes) return tostring(bytes:le_uint()) end },
  [9] = { 4, function(bytes) return tostring(bytes:le_uint()) end },
  [10] = { 8, function(bytes) return tostring(bytes:le_int64()) end },
  [11] = { 8, function(bytes) return tostring(bytes:le_uint64()) end },
  [12] = { 1, function(bytes) return text_of(small_float(bytes:uint(), 4, 3, false)) end },
  [13] = { 1, function(bytes) return text_of(small_float(bytes:uint(), 5, 2, true)) end },
}

-- -------------------------------------------------------------------------------- messages of a connection

local connections = {} -- by their name: messages, oldest first
local places = {}      -- by the frame's number and the payload's place in it: what was found when it was seen first

function weir.init()
  connections = {}
  places = {}
end

local function psn_distance(from, to)
  return (to - from) % 0x1000000
end

-- A connection is named by source, destination and destination queue pair (docs/protocol.md §3). Where the capture tells
-- in which direction a packet passed, what came in and what left are told apart.
local function messages_of(pinfo, queue_pair)
  local name = string.format("%s %s %d %d", tostring(pinfo.net_src), tostring(pinfo.net_dst), queue_pair, pinfo.p2p_dir)
  connections[name] = connections[name] or {}
  return connections[name]
end

-- The message that this packet goes on with. A capture at a switch holds a message twice, as it came and as a result:
-- so the first that lacks the packet, else the newest.
local function message_with(messages, psn)
  local newest = nil
  for _, message in ipairs(messages) do
    local packet = psn_distance(message.psn, psn)
    if packet < message.packets then
      if message.seen[packet] == nil then
        return message
      end
      newest = message
    end
  end
  return newest
end

-- The message that this packet begins; one that is known already if it is a repeat.
local function begun_message(messages, header, payload_bytes, opcode, psn, frame)
  for _, known in ipairs(messages) do
    if known.psn == psn and known.header.message == header.message and known.header.is_result == header.is_result then
      return known
    end
  end
  local packets = FIRST[opcode] and math.ceil((HEADER_BYTES + header.length) / payload_bytes) or 1
  local message = { header = header, psn = psn, packets = packets, frame = frame, seen = {} }
  messages[#messages + 1] = message
  if #messages > MESSAGES_REMEMBERED then
    table.remove(messages, 1)
  end
  return message
end

local function note_packet(message, psn, frame)
  local packet = psn_distance(message.psn, psn)
  local place = { message = message, packet = packet, repeats = message.seen[packet] }
  message.seen[packet] = message.seen[packet] or frame
  return place
end

-- ------------------------------------------------------------------------------------------------- header

local function header_in(payload)
  if payload:len() < HEADER_BYTES or payload(0, 4):uint() ~= MAGIC then
    return nil
  end
  return {
    version = payload(4, 1):uint(),
    operation = payload(5, 1):uint(),
    type = payload(6, 1):uint(),
    is_result = payload(7, 1):bitfield(7) == 1,
    ring = payload(8, 4):uint(),
    rank = payload(12, 2):uint(),
    world = payload(14, 2):uint(),
    message = payload(16, 4):uint(),
    length = payload(20, 4):uint(),
    collective = payload(32, 1):uint(),
    root = payload(34, 2):uint(),
  }
end

local function add_named(tree, proto_field, range, names)
  local item = tree:add(proto_field, range)
  if names[range:uint()] == nil then
    item:add_proto_expert_info(expert.reserved, string.format("%d: docs/protocol.md §2 does not name it", range:uint()))
  end
end

-- A hello names its run by a nonce: a host's in place of the session, a switch's in place of the message's number.
local function add_header(tree, payload, header)
  local is_hello = header.collective == HELLO
  tree:add(field.magic, payload(0, 4))
  local version = tree:add(field.version, payload(4, 1))
  if header.version ~= VERSION then
    version:add_proto_expert_info(expert.version, string.format("version %d: this dissector knows %d", header.version, VERSION))
    return
  end
  add_named(tree, field.operation, payload(5, 1), OPERATIONS)
  add_named(tree, field.type, payload(6, 1), TYPES)
  local flags = tree:add(field.flags, payload(7, 1))
  flags:add(field.result, payload(7, 1))
  flags:add(field.partial, payload(7, 1))
  tree:add(field.ring, payload(8, 4))
  tree:add(field.rank, payload(12, 2))
  tree:add(field.world, payload(14, 2))
  tree:add(is_hello and header.is_result and field.nonce or field.message, payload(16, 4))
  tree:add(field.length, payload(20, 4))
  tree:add(field.epoch, payload(24, 4))
  tree:add(is_hello and not header.is_result and field.nonce or field.session, payload(28, 4))
  add_named(tree, field.collective, payload(32, 1), COLLECTIVES)
  tree:add(field.ack_timeout, payload(33, 1))
  tree:add(field.root, payload(34, 2))
  tree:add(field.qp, payload(36, 4))
end

local function add_data(tree, data, header)
  local element = ELEMENTS[header.type]
  local item = tree:add(field.data, data)
  if element == nil then
    return
  end
  local bytes, show = element[1], element[2]
  local count = math.floor(data:len() / bytes)
  item:append_text(string.format(" (%d x %s)", count, TYPES[header.type]))
  for i = 0, math.min(count, ELEMENTS_SHOWN) - 1 do
    local range = data(i * bytes, bytes)
    item:add(field.value, range, show(range))
  end
end

local function add_place(tree, place, frame)
  tree:add(field.packet, place.packet):set_generated()
  tree:add(field.packets, place.message.packets):set_generated()
  if place.message.frame ~= frame then
    tree:add(field.begins_in, place.message.frame):set_generated()
  end
  if place.repeats ~= nil then
    local item = tree:add(field.repeats, place.repeats):set_generated()
    item:add_proto_expert_info(expert.repeated)
  end
end

local function summary_of(place)
  local header = place.message.header
  local what = COLLECTIVES[header.collective] or string.format("collective %d", header.collective)
  if what == "all-reduce" then
    what = string.format("%s of %s", OPERATIONS[header.operation] or string.format("operation %d", header.operation),
      TYPES[header.type] or string.format("type %d", header.type))
  elseif what == "broadcast" then
    what = string.format("broadcast by rank %d", header.root)
  end
  local number = header.collective == HELLO and "" or string.format(" message %d", header.message)
  local packet = place.message.packets == 1 and ""
    or string.format(", packet %d of %d", place.packet + 1, place.message.packets)
  return string.format("ring %d rank %d/%d%s: %s%s%s%s", header.ring, header.rank, header.world, number, what, packet,
    header.is_result and " [RESULT]" or "", place.repeats ~= nil and " [repeat]" or "")
end

-- ---------------------------------------------------------------------------------------------- dissection

-- What is known of the packet. nil: it is none of Weir's.
local function place_of(payload, pinfo)
  local opcode, queue_pair, psn = opcode_of(), queue_pair_of(), psn_of()
  if opcode == nil or queue_pair == nil or psn == nil then
    return nil
  end
  local begins = BEGINS[opcode.value] ~= nil
  local header = begins and header_in(payload) or nil
  if header == nil and GOES_ON[opcode.value] == nil then
    return nil
  end
  local messages = messages_of(pinfo, queue_pair.value)
  local message = begins and begun_message(messages, header, payload:len(), opcode.value, psn.value, pinfo.number)
    or message_with(messages, psn.value)
  return message ~= nil and note_packet(message, psn.value, pinfo.number) or nil
end

-- Frames are dissected again when a user selects them, in any order: then what was found first counts.
local function known_place_of(payload, pinfo)
  local key = string.format("%d %d", pinfo.number, payload:offset())
  if not pinfo.visited then
    places[key] = place_of(payload, pinfo)
  end
  return places[key]
end

function weir.dissector(payload, pinfo, tree)
  local place = known_place_of(payload, pinfo)
  if place == nil then
    return 0
  end
  pinfo.cols.protocol = "WEIR"
  pinfo.cols.info = summary_of(place)
  local item = tree:add(weir, payload())
  item:append_text(", " .. summary_of(place))
  local header = place.message.header
  local begins = place.packet == 0
  if begins then
    add_header(item, payload, header)
  end
  add_place(item, place, pinfo.number)
  local data_at = begins and HEADER_BYTES or 0
  if header.version == VERSION and payload:len() > data_at then
    add_data(item, payload(data_at), header)
  end
  return payload:len()
end

weir:register_heuristic("infiniband.payload", function(payload, pinfo, tree)
  return weir.dissector(payload, pinfo, tree) > 0
end)
