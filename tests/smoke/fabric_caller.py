# SPDX-License-Identifier: BSD-3-Clause
"""Calls a fabric's manager over TLS, and prints the status' name and words.

    fabric_caller.py ADDRESS AUTHORITY CALL [--as CERTIFICATE KEY] [--times COUNT]

Without --as it has no certificate. With --times it makes so many calls at once, and prints how many had which status, as JSON.
A process of its own, because gRPC's threads and the tests' forks do not go together.
"""
from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import grpc

EMPTY = b""
JOB_1 = b"\x08\x01"  # field 1: 1
GRANTED = b"\x0a\x0fslurm:prod:4711"  # field 1: a name
CALLS = {"jobs": ("ListJobs", EMPTY), "show": ("GetFabric", EMPTY), "end": ("EndJob", JOB_1), "allocations": ("ListAllocations", EMPTY),
         "claim": ("Claim", EMPTY), "grant": ("GrantAllocation", EMPTY), "token": ("IssueToken", GRANTED)}
PATIENCE_S = 30


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("authority", type=Path)
    parser.add_argument("call", choices=CALLS)
    parser.add_argument("--as", dest="who", nargs=2, type=Path)
    parser.add_argument("--times", type=int)
    return parser.parse_args()


def code_of(future: grpc.Future) -> str:
    error = future.exception()
    return "OK" if error is None else error.code().name


def main() -> None:
    given = read_arguments()
    name, request = CALLS[given.call]
    certificate, key = (file.read_bytes() for file in given.who) if given.who else (None, None)
    credentials = grpc.ssl_channel_credentials(given.authority.read_bytes(), key, certificate)
    with grpc.secure_channel(given.address, credentials) as channel:
        call = channel.unary_unary(f"/weir.v1.Fabric/{name}", lambda sent: sent, lambda answer: answer)
        if given.times is not None:
            futures = [call.future(request, timeout=PATIENCE_S) for _ in range(given.times)]
            print(json.dumps(Counter(map(code_of, futures))))
            return
        try:
            call(request, timeout=PATIENCE_S)
            print("OK")
        except grpc.RpcError as error:
            print(error.code().name, error.details())


if __name__ == "__main__":
    main()
