#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A client of the control service that has no code of Weir's: it learns the messages from server reflection.

    control_client.py ADDRESS describe               the services' methods and their health, as JSON
    control_client.py ADDRESS call METHOD JSON       a call's answer as JSON, or {"code": …, "message": …}
    control_client.py ADDRESS try                    each method with nothing asked: its status' name, as JSON
    control_client.py ADDRESS watch JSON COUNT       so many answers of WatchStatistics
    control_client.py ADDRESS hold JSON              holds a ring, and says so, until the switch or somebody ends it
    control_client.py ADDRESS hold-region JSON       the same for a region
    control_client.py ADDRESS count COUNT            how many of so many questions are answered
    control_client.py ADDRESS load COUNT TEXT        loads so many operators, the text under other names, and counts
    control_client.py ADDRESS flood CALLS            watches with so many calls, prints the first refusal's code,
                                                     and asks with as many at once until it is killed

With --tls CERTIFICATE KEY AUTHORITY before ADDRESS: over TLS, with these files.

A process of its own, because gRPC's threads and the tests' forks do not go together.
"""
from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

SERVICE = "weir.v1.Switch"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
# Fields of grpc/reflection/v1alpha/reflection.proto.
FILE_CONTAINING_SYMBOL, LIST_SERVICES = 4, 7  # of the request
FILE_ANSWER, LIST_ANSWER = 4, 6  # of the response
HEALTH = "/grpc.health.v1.Health/Check"
HEALTH_NAMES = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"]
DEADLINE_S = 20


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of a message of numbers, texts and messages."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            at += value
            yield key >> 3, data[at - value:at]
        else:
            yield key >> 3, value


def text_field(number: int, text: str) -> bytes:
    data = text.encode()
    assert len(data) < 0x4000
    length = [len(data)] if len(data) < 0x80 else [len(data) & 0x7F | 0x80, len(data) >> 7]
    return bytes([number << 3 | 2, *length]) + data


def of(number: int, data: bytes) -> list[Any]:
    return [value for found, value in fields(data) if found == number]


class Client:
    def __init__(self, address: str, tls: list[str]) -> None:
        options = [("grpc.max_receive_message_length", -1)]
        if tls:
            certificate, key, authority = (Path(file).read_bytes() for file in tls)
            self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(authority, key, certificate), options)
        else:
            self._channel = grpc.insecure_channel(address, options)

    def unary(self, path: str, request: bytes) -> bytes:
        return bytes(self._channel.unary_unary(path)(request, timeout=DEADLINE_S))

    def _reflect(self, request: bytes) -> bytes:
        call = self._channel.stream_stream(REFLECTION)
        return bytes(next(call(iter([request]), timeout=DEADLINE_S)))

    def services(self) -> list[str]:
        [listed] = of(LIST_ANSWER, self._reflect(text_field(LIST_SERVICES, "")))
        return sorted(of(1, service)[0].decode() for service in of(1, listed))

    def pool(self) -> descriptor_pool.DescriptorPool:
        pool = descriptor_pool.DescriptorPool()
        [answer] = of(FILE_ANSWER, self._reflect(text_field(FILE_CONTAINING_SYMBOL, SERVICE)))
        for file in of(1, answer):
            pool.Add(descriptor_pb2.FileDescriptorProto.FromString(file))
        return pool

    def health(self, service: str) -> str:
        try:
            [*_, status] = [0, *of(1, self.unary(HEALTH, text_field(1, service)))]
            return HEALTH_NAMES[status]
        except grpc.RpcError as error:
            return str(error.code().name)

    def describe(self) -> dict[str, Any]:
        methods = self.pool().FindServiceByName(SERVICE).methods
        return {"services": self.services(), "methods": [method.name for method in methods],
                "health": {name: self.health(name) for name in ("", SERVICE, "weir.v1.Nothing")}}

    def answers(self, method: str, request: str) -> Iterator[dict[str, Any]]:
        found = self.pool().FindServiceByName(SERVICE).methods_by_name[method]
        factory = message_factory.MessageFactory()
        ask, answer = factory.GetPrototype(found.input_type), factory.GetPrototype(found.output_type)
        message = json_format.Parse(request, ask())
        path = f"/{SERVICE}/{method}"
        if method in ("WatchStatistics", "HoldRing", "HoldRegion"):
            replies = self._channel.unary_stream(path)(message.SerializeToString())
        else:
            replies = iter([self.unary(path, message.SerializeToString())])
        for reply in replies:
            yield json_format.MessageToDict(answer.FromString(bytes(reply)), preserving_proto_field_name=True)

    def status_of(self, method: str) -> str:
        try:
            next(self._channel.unary_stream(f"/{SERVICE}/{method}")(b"", timeout=DEADLINE_S))
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def is_answered(self) -> bool:
        try:
            self.unary(f"/{SERVICE}/ListRings", b"")
        except grpc.RpcError:
            return False
        return True

    def load(self, calls: int, text: str) -> dict[str, int]:
        """With many calls under way."""
        load = self._channel.unary_unary(f"/{SERVICE}/LoadOperator")
        counts = {"calls": calls, "loaded": 0, "refused": 0}
        for begin in range(0, calls, 50):
            texts = [re.sub("(?m)^name .*", f"name n{number}", text) for number in range(begin, min(begin + 50, calls))]
            for code in [call.code() for call in [load.future(text_field(1, one)) for one in texts]]:
                counts["loaded"] += code == grpc.StatusCode.OK
                counts["refused"] += code == grpc.StatusCode.RESOURCE_EXHAUSTED
        return counts

    def flood(self, calls: int) -> None:
        watched = text_field(1, "show") + text_field(1, "memory") + bytes([2 << 3, 100])
        watchers = [self._channel.unary_stream(f"/{SERVICE}/WatchStatistics")(watched) for _ in range(calls)]
        for watcher in watchers:
            try:
                next(watcher)
            except grpc.RpcError as error:
                print(error.code().name, flush=True)
                break
        ask = self._channel.unary_unary(f"/{SERVICE}/ListRings")
        while True:
            for call in [ask.future(b"") for _ in range(calls)]:
                call.code()


def main() -> None:
    tls, words = (sys.argv[2:5], sys.argv[5:]) if sys.argv[1] == "--tls" else ([], sys.argv[1:])
    address, what, *rest = words
    client = Client(address, tls)
    try:
        if what == "describe":
            print(json.dumps(client.describe()))
        elif what in ("hold", "hold-region"):
            for held in client.answers("HoldRing" if what == "hold" else "HoldRegion", *rest):
                print(json.dumps(held), flush=True)
        elif what == "try":
            print(json.dumps({method: client.status_of(method) for method in client.describe()["methods"]}))
        elif what == "count":
            print(sum(client.is_answered() for _ in range(int(rest[0]))))
        elif what == "load":
            print(json.dumps(client.load(int(rest[0]), rest[1])))
        elif what == "flood":
            client.flood(int(rest[0]))
        elif what == "call":
            print(json.dumps(next(client.answers(*rest))))
        else:
            print(json.dumps(list(islice(client.answers("WatchStatistics", rest[0]), int(rest[1])))))
    except grpc.RpcError as error:
        print(json.dumps({"code": error.code().name, "message": error.details()}))


if __name__ == "__main__":
    main()
