-- SPDX-License-Identifier: BSD-3-Clause
--
-- Shows Weir's messages in Wireshark: the INA header, which packet of which message a frame is, and the tensor's first
-- elements (docs/protocol.md §2, §3). For RoCEv2 and RoCE v1. A capture may have cut the frames short (tcpdump -s): what
-- it has of their headers is shown. Frames that an ICMP error quotes are shown and marked, and count as no packets.
--
--   wireshark -X lua_script:tools/wireshark/weir.lua capture.pcap
--   tshark -X lua_script:tools/wireshark/weir.lua -r capture.pcap -Y 'weir.ring == 7 && weir.flags.result'
--
-- To have it always, copy it into the folder that Help > About > Folders calls "Personal Lua Plugins".

local MAGIC = 0x57454952
local VERSIONS = { [2] = true, [3] = true } -- 3: of a run with a table of operators (docs/protocol.md §12)
local AS_OPERATOR = 255
local FIRST_OPERATOR = 128
local ENTRY_BYTES = 40 -- of the table
local HEADER_BYTES = 40
local ROCE_PORT = 4791
local ROCE_V1_TYPE = 0x8915
local GRH_BYTES = 40
local UDP_BYTES = 8
local BTH_BYTES = 12
local ICRC_BYTES = 4
local MESSAGES_REMEMBERED = 64 -- of a connection
local ELEMENTS_SHOWN = 4
local HELLO = 1

local OPERATIONS = { [0] = "sum", "min", "max", "product", "and", "or", "xor" }
local COLLECTIVES = { [0] = "all-reduce", "hello", "broadcast", "barrier" }
local TYPES = {
  [0] = "f32", "i32", "f16", "bf16", "f64", "i8", "u8", "i16", "u16", "u32", "i64", "u64", "f8 E4M3", "f8 E5M2",
}

for number = FIRST_OPERATOR, 255 do
  OPERATIONS[number] = string.format("operator %d", number - FIRST_OPERATOR)
end
TYPES[AS_OPERATOR] = "as the operator says"

-- RC opcodes that carry messages (IBTA §9.2.1), and the bytes of RETH and immediate behind the BTH. The header is in those
-- that begin one.
local BEGINS = { [0x00] = 0, [0x04] = 0, [0x05] = 4, [0x06] = 16, [0x0a] = 16, [0x0b] = 20 }
local GOES_ON = { [0x01] = 0, [0x02] = 0, [0x03] = 4, [0x07] = 0, [0x08] = 0, [0x09] = 4 }
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
  digest = ProtoField.uint32("weir.digest", "Digest of the ring", base.HEX),
  collective = ProtoField.uint8("weir.collective", "Collective", base.DEC, COLLECTIVES),
  ack_timeout = ProtoField.uint8("weir.ack_timeout", "Local ACK timeout, exponent"),
  root = ProtoField.uint16("weir.root", "Root"),
  first_rank = ProtoField.uint16("weir.lo", "First rank below the switch that sends it"),
  kind = ProtoField.string("weir.kind", "Kind"),
  qp = ProtoField.uint32("weir.qp", "Queue pair of the sender", base.HEX),
  operator = ProtoField.uint8("weir.operator", "Operator", base.DEC, OPERATIONS),
  operator_digest = ProtoField.bytes("weir.operator.digest", "Digest of the operator"),
  data = ProtoField.bytes("weir.data", "Data"),
  value = ProtoField.string("weir.value", "Element"),
  packet = ProtoField.uint32("weir.packet", "Packet of the message, from 0"),
  packets = ProtoField.uint32("weir.packets", "Packets of the message"),
  begins_in = ProtoField.framenum("weir.begins_in", "Message begins in", base.NONE),
  repeats = ProtoField.framenum("weir.repeats", "Repeats", base.NONE, frametype.RETRANS_PREV),
  cut = ProtoField.string("weir.cut", "Cut"),
  quoted = ProtoField.bool("weir.quoted", "Quoted by an ICMP error, no packet of its own"),
}
weir.fields = field

local expert = {
  version = ProtoExpert.new("weir.version.unknown", "Not the version of this dissector", expert.group.UNDECODED,
    expert.severity.WARN),
  repeated = ProtoExpert.new("weir.repeated", "Repeated packet", expert.group.SEQUENCE, expert.severity.NOTE),
  reserved = ProtoExpert.new("weir.reserved", "Value without a meaning", expert.group.PROTOCOL, expert.severity.WARN),
}
weir.experts = expert

local udp_length_of = Field.new("udp.length")
local icmp_type_of = Field.new("icmp.type")
local icmpv6_type_of = Field.new("icmpv6.type")

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

-- The message that this packet goes on with. A capture at a switch holds a message twice, as it came and as it left, folded
-- or with another session: so the first that lacks the packet, else the newest.
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

-- The message that this packet begins, as far as the packet tells.
local function message_of(packet, frame)
  local packets = FIRST[packet.opcode] and math.ceil((HEADER_BYTES + packet.header.length) / packet.payload_bytes) or 1
  return { header = packet.header, psn = packet.psn, packets = packets, frame = frame, seen = {} }
end

-- The same; one that is known already if it is a repeat.
local function begun_message(messages, packet, frame)
  local header = packet.header
  for _, known in ipairs(messages) do
    if known.psn == packet.psn and known.header.message == header.message and known.header.flags == header.flags
      and known.header.session == header.session then
      return known
    end
  end
  local message = message_of(packet, frame)
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

-- nil when there is none, or when not all of it is there.
local function header_in(payload)
  if payload == nil or payload:len() < HEADER_BYTES or payload(0, 4):uint() ~= MAGIC then
    return nil
  end
  return {
    version = payload(4, 1):uint(),
    operation = payload(5, 1):uint(),
    type = payload(6, 1):uint(),
    flags = payload(7, 1):uint(),
    is_result = payload(7, 1):bitfield(7) == 1,
    is_partial = payload(7, 1):bitfield(6) == 1,
    ring = payload(8, 4):uint(),
    rank = payload(12, 2):uint(),
    world = payload(14, 2):uint(),
    message = payload(16, 4):uint(),
    length = payload(20, 4):uint(),
    session = payload(28, 4):uint(),
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

local function is_hello(header)
  return header.collective == HELLO
end

-- A hello that a switch has made of all that are below it, for its parent.
local function is_climbing(header)
  return is_hello(header) and header.is_partial and not header.is_result
end

-- What travels in a tree of switches. On a single switch the total is each rank's result.
local function kind_of(header)
  if header.is_result then
    return is_hello(header) and "hello's result" or "total"
  elseif header.is_partial then
    return is_hello(header) and "climbing hello" or "partial sum"
  end
  return is_hello(header) and "hello" or "contribution"
end

local function add_flags(tree, range, header)
  local flags = tree:add(field.flags, range)
  flags:add(field.result, range)
  flags:add(field.partial, range)
  if header.is_result and header.is_partial then
    flags:add_proto_expert_info(expert.reserved, "RESULT and PARTIAL: a total is no partial sum")
  end
end

-- A hello names its run by a nonce: in place of the session, or in its result in place of the message's number. One that
-- climbs has the ring's digest for a number, and for a root the first rank of its switch's range. The session of a partial
-- sum is that of the parent.
local function message_field(header)
  return is_climbing(header) and field.digest or is_hello(header) and header.is_result and field.nonce or field.message
end

local function add_session(tree, range, header)
  local item = tree:add(is_hello(header) and not header.is_result and field.nonce or field.session, range)
  if kind_of(header) == "partial sum" then
    item:append_text(" (the parent's)")
  end
end

local function add_header(tree, payload, header)
  tree:add(field.magic, payload(0, 4))
  local version = tree:add(field.version, payload(4, 1))
  if not VERSIONS[header.version] then
    version:add_proto_expert_info(expert.version, string.format("version %d: this dissector knows 2 and 3", header.version))
    return
  end
  add_named(tree, field.operation, payload(5, 1), OPERATIONS)
  add_named(tree, field.type, payload(6, 1), TYPES)
  add_flags(tree, payload(7, 1), header)
  tree:add(field.kind, kind_of(header)):set_generated()
  tree:add(field.ring, payload(8, 4))
  tree:add(field.rank, payload(12, 2))
  tree:add(field.world, payload(14, 2))
  tree:add(message_field(header), payload(16, 4))
  tree:add(field.length, payload(20, 4))
  tree:add(field.epoch, payload(24, 4))
  add_session(tree, payload(28, 4), header)
  add_named(tree, field.collective, payload(32, 1), COLLECTIVES)
  tree:add(field.ack_timeout, payload(33, 1))
  tree:add(is_climbing(header) and field.first_rank or field.root, payload(34, 2))
  tree:add(field.qp, payload(36, 4))
end

-- `who`: who has cut the data.
local function add_cut_data(tree, data_bytes, there, who)
  tree:add(field.cut, string.format("data cut by the %s: %d of %d bytes are there", who, there, data_bytes)):set_generated()
end

-- A hello's table. A switch leaves an entry empty whose operator it does not have.
local function add_operators(tree, data)
  for at = 0, data:len() - ENTRY_BYTES, ENTRY_BYTES do
    local number = data(at, 1):uint()
    if number == 0 then
      tree:add(field.operator, data(at, 1)):append_text(", which a switch on the way lacks")
    else
      tree:add(field.operator, data(at, 1))
      tree:add(field.operator_digest, data(at + 8, ENTRY_BYTES - 8))
    end
  end
end

local function add_data(tree, data, header)
  if is_hello(header) then
    return add_operators(tree, data)
  end
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
  if place.is_quoted then
    tree:add(field.quoted, true):set_generated()
  end
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
    local is_users = header.type == AS_OPERATOR
    what = is_users and OPERATIONS[header.operation] or string.format("%s of %s", OPERATIONS[header.operation] or string.format("operation %d", header.operation),
      TYPES[header.type] or string.format("type %d", header.type))
  elseif what == "broadcast" then
    what = string.format("broadcast by rank %d", header.root)
  elseif is_climbing(header) then
    what = string.format("hello of ranks %d to %d", header.root, header.rank)
  end
  local number = is_hello(header) and "" or string.format(" message %d", header.message)
  local packet = place.message.packets == 1 and ""
    or string.format(", packet %d of %d", place.packet + 1, place.message.packets)
  local mark = place.is_quoted and " [quoted]" or place.repeats ~= nil and " [repeat]" or ""
  return string.format("ring %d rank %d/%d%s: %s%s%s%s", header.ring, header.rank, header.world, number, what, packet,
    header.is_result and " [RESULT]" or header.is_partial and " [PARTIAL]" or "", mark)
end

-- ---------------------------------------------------------------------------------------------- dissection

-- What a transport packet says of itself, from its BTH to its ICRC. Lengths are those that it had on the wire. `payload` is
-- what is there of it: nil if nothing is. nil: it carries no message, or too little of it is there.
local function packet_in(transport, wire_bytes)
  if transport:len() < BTH_BYTES then
    return nil
  end
  local opcode = transport(0, 1):uint()
  local extension = BEGINS[opcode] or GOES_ON[opcode]
  if extension == nil then
    return nil
  end
  local pad = transport(1, 1):bitfield(2, 2)
  local payload_at = BTH_BYTES + extension
  local payload_bytes = wire_bytes - payload_at - pad - ICRC_BYTES
  local there = math.min(transport:len() - payload_at, payload_bytes)
  local payload = there > 0 and transport(payload_at, there):tvb() or nil
  local header = BEGINS[opcode] ~= nil and header_in(payload) or nil
  if payload_bytes < 0 or (BEGINS[opcode] ~= nil and header == nil) then
    return nil
  end
  return {
    opcode = opcode,
    queue_pair = transport(5, 3):uint(),
    psn = transport(9, 3):uint(),
    payload_bytes = payload_bytes,
    there = math.max(there, 0),
    payload = payload,
    header = header,
  }
end

-- An ICMP error quotes a frame that was on its way before. It shows neither that the packet came nor that it was repeated.
local function is_quoted()
  return icmp_type_of() ~= nil or icmpv6_type_of() ~= nil
end

local function place_of_quoted(packet, pinfo)
  local messages = messages_of(pinfo, packet.queue_pair)
  local message = packet.header ~= nil and message_of(packet, pinfo.number) or message_with(messages, packet.psn)
  return message ~= nil and { message = message, packet = psn_distance(message.psn, packet.psn), is_quoted = true } or nil
end

-- What is known of the packet. nil: it is none of Weir's.
local function place_of(packet, pinfo)
  if is_quoted() then
    return place_of_quoted(packet, pinfo)
  end
  local messages = messages_of(pinfo, packet.queue_pair)
  local message = packet.header ~= nil and begun_message(messages, packet, pinfo.number)
    or message_with(messages, packet.psn)
  return message ~= nil and note_packet(message, packet.psn, pinfo.number) or nil
end

-- Frames are dissected again when a user selects them, in any order: then what was found first counts.
local function known_place_of(packet, at, pinfo)
  local key = string.format("%d %d", pinfo.number, at)
  if not pinfo.visited then
    places[key] = place_of(packet, pinfo)
  end
  return places[key]
end

local function add_packet(tree, packet, place, pinfo)
  local item = packet.payload ~= nil and tree:add(weir, packet.payload()) or tree:add(weir)
  item:append_text(", " .. summary_of(place))
  local header = place.message.header
  local data_at = 0
  if packet.header ~= nil then
    add_header(item, packet.payload, header)
    data_at = HEADER_BYTES
  end
  add_place(item, place, pinfo.number)
  if packet.there < packet.payload_bytes then
    add_cut_data(item, packet.payload_bytes - data_at, packet.there - data_at, place.is_quoted and "ICMP error" or "capture")
  elseif VERSIONS[header.version] and packet.payload_bytes > data_at then
    add_data(item, packet.payload(data_at), header)
  end
end

-- `transport` begins with the BTH.
local function dissect(transport, wire_bytes, pinfo, tree)
  local packet = packet_in(transport, wire_bytes)
  local place = packet ~= nil and known_place_of(packet, transport:offset(), pinfo) or nil
  if place ~= nil then
    pinfo.cols.protocol = "WEIR"
    pinfo.cols.info:clear_fence() -- behind which the usual dissector has put its error
    pinfo.cols.info = summary_of(place)
    add_packet(tree, packet, place, pinfo)
  end
end

-- Wireshark's InfiniBand dissector hands on no payload of a frame that is cut, so what is above UDP or Ethernet is taken
-- before it. It still shows its headers. Of a frame that is cut it finds the length wrong, and ends with an error.
local function take_before(table_name, key, name, description, find_transport)
  local proto = Proto(name, description)
  local table = DissectorTable.get(table_name)
  local usual = table:get_dissector(key) or Dissector.get("data")
  function proto.dissector(bytes, pinfo, tree)
    pcall(usual.call, usual, bytes, pinfo, tree)
    local transport, wire_bytes = find_transport(bytes)
    if transport ~= nil then
      dissect(transport, wire_bytes, pinfo, tree)
    end
    return bytes:len()
  end
  table:add(key, proto)
end

-- An ICMP error may quote less than the UDP header says.
take_before("udp.port", ROCE_PORT, "weir_roce_v2", "Weir over RoCEv2", function(bytes)
  local lengths = { udp_length_of() }
  return bytes, lengths[#lengths].value - UDP_BYTES
end)

take_before("ethertype", ROCE_V1_TYPE, "weir_roce_v1", "Weir over RoCE v1", function(bytes)
  if bytes:len() <= GRH_BYTES then
    return nil
  end
  return bytes(GRH_BYTES):tvb(), bytes(4, 2):uint() -- IBTA §8.3: PayLen
end)
