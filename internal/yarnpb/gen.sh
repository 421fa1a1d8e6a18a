#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Go code of this package from its .proto files: *.pb.go with the stock runtime, *_vtproto.pb.go with
# reflection-free size, marshal, unmarshal and clone for every message; slabgen.go then has the decoders allocate by the
# dozen and into arenas.
# Needs protoc 3.21 or later on PATH; the two plugins are built from the versions pinned in go.mod.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v protoc >/dev/null || { echo "gen.sh: protoc is not on PATH (install protobuf-compiler 3.21 or later)" >&2; exit 1; }

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
for plugin in protoc-gen-go protoc-gen-go-vtproto; do
  printf '#!/bin/sh\nexec go tool %s "$@"\n' "$plugin" >"$bin/$plugin"
  chmod +x "$bin/$plugin"
done

PATH="$bin:$PATH" protoc -I . \
  --go_out=. --go_opt=module=github.com/creelrm/creel \
  --go-vtproto_out=. --go-vtproto_opt=module=github.com/creelrm/creel,features=marshal+unmarshal+size+clone \
  internal/yarnpb/*.proto

for f in internal/yarnpb/*.pb.go; do
  case "$(head -n 1 "$f")" in
  *SPDX-License-Identifier*) ;;
  *) printf '// SPDX-License-Identifier: Apache-2.0\n\n%s\n' "$(cat "$f")" >"$f.tmp" && mv "$f.tmp" "$f" ;;
  esac
done
gofmt -w internal/yarnpb/*.pb.go
go run internal/yarnpb/slabgen.go internal/yarnpb
