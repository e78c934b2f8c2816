#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Switches and jobs of a fabric, as its manager knows them: no packets, only what is said.

    fabric_switches.py FOLDER SWITCH...

Each switch listens at unix:FOLDER/SWITCH.control, has what the manager orders, and says so. FOLDER/said.json, which may change, has what
else they say: {"down": {SWITCH: [PORT, …]}, "silent": [SWITCH, …], "waits": [JOB'S NAME, …], "heard_ms": since when whom they obey is
silent}. As soon as there is FOLDER/jobs.json, its jobs are held by the manager, each when the one before has its rings:
[{"name": …, "tenant": …, "token": FILE, "addresses": [ADDRESS, …]}, …]. More of them may come. There is one manager at unix:FOLDER/manager.sock, or several
at the sockets that FOLDER/managers.json names: [SOCKET, …].

A process of its own, because gRPC's threads and the tests' forks do not go together.
"""
from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

ROOT = Path(__file__).resolve().parent.parent.parent
SERVICE = "weir.v1.Switch"
BEAT_S = 0.2
AGAIN_S = 0.2
CALLS_AT_ONCE = 16
SIGNS_OF_LIFE = [("grpc.max_reconnect_backoff_ms", 200), ("grpc.keepalive_time_ms", 3000), ("grpc.keepalive_timeout_ms", 3000),
                 ("grpc.http2.max_pings_without_data", 0)]  # as libweir's


def messages(folder: Path) -> tuple[Any, Any]:
    """The modules of proto/, compiled anew."""
    subprocess.run(["protoc", f"--proto_path={ROOT}/proto", f"--python_out={folder}", "weir/v1/fabric.proto", "weir/v1/switch.proto"],
                   check=True)
    (folder / "weir" / "__init__.py").touch()  # a package goes before this folder's weir.py
    sys.path.insert(0, str(folder))
    from weir.v1 import fabric_pb2, switch_pb2  # type: ignore[import]
    return fabric_pb2, switch_pb2


class Switch:
    """Its rings, by id; each with its label."""

    def __init__(self, name: str, folder: Path, switch_pb2: Any) -> None:
        self._name, self._folder, self._pb = name, folder, switch_pb2
        self._rings: dict[int, Any] = {}
        self._last_order = 0
        self._term = (0, 0)  # the highest that has claimed it
        self._holder = ""  # by this manager

    def serve(self) -> grpc.Server:
        server = grpc.server(futures.ThreadPoolExecutor(CALLS_AT_ONCE))
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        handlers = {name: make(call, getattr(self._pb, f"{name}Request").FromString, lambda answer: answer.SerializeToString())
                    for name, make, call in (("ClaimFabric", unary, self._claim), ("ApplyRings", unary, self._apply),
                                             ("RemoveRings", unary, self._remove), ("WatchSwitch", stream, self._watch))}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        server.add_insecure_port(f"unix:{self._folder}/{self._name}.control")
        server.start()
        return server

    def _refuse_old(self, term: Any, context: Any) -> None:
        if (term.epoch, term.number) < self._term:
            print(f"{self._name} refuses the term {term.epoch}.{term.number}", flush=True)
            context.abort(grpc.StatusCode.ABORTED, f"term {term.epoch}.{term.number} is over: {self._term} has claimed this switch")

    def _said(self) -> Any:
        return json.loads((self._folder / "said.json").read_text())

    def _claim(self, request: Any, context: Any) -> Any:
        told = self._pb.ClaimFabricResponse(holder=self._holder, holder_heard_ms=self._said().get("heard_ms", 0))
        told.highest.epoch, told.highest.number = self._term
        context.set_trailing_metadata((("grpc-status-details-bin", told.SerializeToString()),))  # for a refusal
        self._refuse_old(request.term, context)
        self._term, self._holder = (request.term.epoch, request.term.number), request.manager
        return self._pb.ClaimFabricResponse(boot="boot", highest=request.term)

    def _apply(self, request: Any, context: Any) -> Any:
        self._refuse_old(request.order.term, context)
        self._rings |= {labelled.ring.id: labelled for labelled in request.rings}
        self._last_order = request.order.number
        return self._pb.FabricOrderResponse()

    def _remove(self, request: Any, context: Any) -> Any:
        self._refuse_old(request.order.term, context)
        print(f"{self._name} removes {list(request.ids)}", flush=True)
        for number in request.ids:
            self._rings.pop(number, None)
        self._last_order = request.order.number
        return self._pb.FabricOrderResponse()

    def _watch(self, request: Any, context: Any) -> Iterator[Any]:
        while context.is_active():
            self._refuse_old(request.term, context)
            said = self._said()
            if self._name not in said.get("silent", []):
                yield self._seen(said, request.with_rings)
            time.sleep(BEAT_S)

    def _seen(self, said: dict[str, Any], with_rings: bool) -> Any:
        seen = self._pb.SwitchSeen(boot="boot", last_order=self._last_order)
        seen.room.rings, seen.room.members, seen.room.frames = 16, 128, 1 << 16
        for port in said.get("down", {}).get(self._name, []):
            seen.ports.add(name=port, is_down=True)
        for number, labelled in list(self._rings.items()):
            late = [max(labelled.label.positions)] if labelled.label.name in said.get("waits", []) else []
            seen.rings.add(id=number, label=labelled.label, is_managed=True, waits_for=late, ring=labelled.ring if with_rings else None)
        return seen


def hold(job: dict[str, Any], folder: Path, pb: Any, is_held: threading.Event) -> None:
    """Again and again, of one manager after the other: it may not be there yet, or not any more, or not lead."""
    request = pb.HoldJobRequest(request_id=os.urandom(16), name=job["name"], tenant=job.get("tenant", ""), rings_wanted=1,
                                rings_least=1, window=8, message_bytes=16384, mtu=1024)
    if "token" in job:
        number, secret = Path(job["token"]).read_text().split()
        request.allocation, request.token = int(number), bytes.fromhex(secret)
    for address in job["addresses"]:
        request.members.add(addresses=[address])
    several = folder / "managers.json"
    sockets = json.loads(several.read_text()) if several.exists() else ["manager.sock"]
    channels = [grpc.insecure_channel(f"unix:{folder}/{socket}", SIGNS_OF_LIFE) for socket in sockets]
    for channel in itertools.cycle(channels):
        call = channel.unary_stream("/weir.v1.Fabric/HoldJob", lambda sent: sent.SerializeToString(), pb.JobEvent.FromString)
        try:
            for event in call(request):
                print(f"{job['name']!r}: {event}", flush=True)
                is_held.set()
        except grpc.RpcError as error:
            print(f"{job['name']!r}: {error.code()}: {error.details()}", flush=True)
        time.sleep(AGAIN_S)


def main() -> None:
    folder = Path(sys.argv[1])
    fabric_pb2, switch_pb2 = messages(folder)
    _servers = [Switch(name, folder, switch_pb2).serve() for name in sys.argv[2:]]
    held = 0
    while True:
        jobs = json.loads((folder / "jobs.json").read_text()) if (folder / "jobs.json").exists() else []
        for job in jobs[held:]:
            is_held = threading.Event()
            threading.Thread(target=hold, args=(job, folder, fabric_pb2, is_held)).start()
            is_held.wait()
            held += 1
        time.sleep(AGAIN_S)


if __name__ == "__main__":
    main()
