# SPDX-License-Identifier: BSD-3-Clause
"""Calls a fabric's manager over TLS without a certificate, and prints the status' name.

    nobody.py ADDRESS AUTHORITY CALL

A process of its own, because gRPC's threads and the tests' forks do not go together.
"""
from __future__ import annotations

import sys
from pathlib import Path

import grpc

EMPTY = b""
JOB_1 = b"\x08\x01"  # field 1: 1
GRANTED = b"\x0a\x0fslurm:prod:4711"  # field 1: a name
CALLS = {"jobs": ("ListJobs", EMPTY), "show": ("GetFabric", EMPTY), "end": ("EndJob", JOB_1), "allocations": ("ListAllocations", EMPTY),
         "claim": ("Claim", EMPTY), "grant": ("GrantAllocation", EMPTY), "token": ("IssueToken", GRANTED)}


def main() -> None:
    address, authority, word = sys.argv[1:]
    name, request = CALLS[word]
    credentials = grpc.ssl_channel_credentials(Path(authority).read_bytes())
    with grpc.secure_channel(address, credentials) as channel:
        call = channel.unary_unary(f"/weir.v1.Fabric/{name}", lambda sent: sent, lambda answer: answer)
        try:
            call(request, timeout=10)
            print("OK")
        except grpc.RpcError as error:
            print(error.code().name, error.details())


if __name__ == "__main__":
    main()
