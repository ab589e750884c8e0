#!/bin/sh
# Builds kube-apiserver, etcd, kubectl and the Go clients of clients/ once, into a cache directory outside the tree that is named by their versions
# in go.mod, and prints the lines that tell the tests where they are:
#     eval "$(tests/control-plane/build.sh)"
# Question it answers: where is a control plane for this machine? It starts none; src/ does.
# 1. Standard output carries only the export lines; everything else goes to standard error.
# 2. A binary under its final name is complete: it is built beside it and renamed.
# 3. Two runs at once build once where flock(1) exists, and are merely wasteful where it does not.
# Cost: at once when all is built (Go is then not needed); else minutes, 0.8 GB of module cache, 2.4 GB of build cache.
# Read next: README.md.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

say() { printf 'control-plane: %s\n' "$*" >&2; }

version_of() { # module
    version=$(sed -n "s|^[[:space:]]*$1 \(v[0-9][^ ]*\).*|\1|p" "$here/go.mod" | head -n 1)
    [ -n "$version" ] || { say "go.mod requires no $1"; exit 1; }
    printf '%s' "$version"
}

kubernetes=$(version_of k8s.io/kubernetes)
etcd=$(version_of go.etcd.io/etcd/server/v3)
assets=${XDG_CACHE_HOME:-$HOME/.cache}/actix-informer/control-plane/kubernetes-$kubernetes-etcd-$etcd

build() { # name, package, linker flags
    [ -x "$assets/$1" ] && return
    command -v go >/dev/null || { say "Go is not installed; it is needed to build $1 (go.mod says which)"; exit 1; }
    say "building $1 into $assets"
    (cd "$here" && GOWORK=off CGO_ENABLED=0 GOOS='' GOARCH='' \
        go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w $3" -o "$assets/.$1.$$" "$2") >&2
    mv "$assets/.$1.$$" "$assets/$1"
}

export_line() { # variable, name
    printf "export %s='%s'\n" "$1" "$(printf '%s' "$assets/$2" | sed "s/'/'\\\\''/g")"
}

mkdir -p "$assets"
clients=$(cat "$here"/clients/go.* "$here"/clients/*.go | cksum)
have() { [ -x "$assets/$1" ]; }
current() { have go-clients && [ "$(cat "$assets/go-clients.sum" 2>/dev/null)" = "$clients" ]; }
if ! { have kube-apiserver && have etcd && have kubectl && { current || ! command -v go >/dev/null; }; }; then
    trap 'rm -f "$assets"/.*."$$"' EXIT
    trap 'exit 130' INT TERM
    if command -v flock >/dev/null; then
        exec 9>"$assets/.lock"
        flock 9
    fi
    minor=${kubernetes#v1.}
    stamp=k8s.io/component-base/version
    stamps="-X $stamp.gitVersion=$kubernetes -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*}"
    build etcd go.etcd.io/etcd/server/v3 ""
    build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "$stamps"
    build kubectl k8s.io/kubernetes/cmd/kubectl "$stamps"
    if ! current; then
        # Ours and small: built again whenever its sources change.
        rm -f "$assets/go-clients"
        here=$here/clients build go-clients . ""
        printf '%s' "$clients" >"$assets/go-clients.sum"
    fi
fi
export_line TEST_ASSET_KUBE_APISERVER kube-apiserver
export_line TEST_ASSET_ETCD etcd
export_line TEST_ASSET_KUBECTL kubectl
export_line INFORMER_GO_CLIENTS go-clients
