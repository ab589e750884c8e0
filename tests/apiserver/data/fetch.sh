#!/bin/sh
# Writes schemas.json.gz and paths.json.gz beside itself: what a kube-apiserver says of its built-in kinds in OpenAPI v3.
#
#   cargo run -p informer-control-plane --example serve -- real.kubeconfig     # in another terminal
#   KUBECONFIG=real.kubeconfig tests/apiserver/data/fetch.sh
#
# The server must hold no custom definitions. The documents repeat the schemas they share, so each is kept once; the few
# that differ from document to document differ only in their list of kinds, and the longest list is kept.
# Needs kubectl (or KUBECTL), jq and gzip. The same server gives the same bytes.
set -eu

kubectl=${KUBECTL:-kubectl}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$kubectl" get --raw /openapi/v3 | jq -r '.paths | to_entries[] | "\(.key) \(.value.serverRelativeURL)"' >"$work/index"
while read -r name url; do
    "$kubectl" get --raw "$url" </dev/null | jq -c --arg name "$name" '{name: $name, document: .}'
done <"$work/index" >"$work/documents"

jq -cS -n '[inputs.document.components.schemas // {} | to_entries[]] | group_by(.key)
    | map(max_by(.value["x-kubernetes-group-version-kind"] // [] | length)) | from_entries' \
    "$work/documents" | gzip -9n >"$here/schemas.json.gz"
jq -cS -n '[inputs | {key: .name, value: .document.paths}] | from_entries' \
    "$work/documents" | gzip -9n >"$here/paths.json.gz"
