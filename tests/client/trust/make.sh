#!/bin/sh
# Makes the certificates of ../trust.rs that rcgen cannot make: P-521, RSA, SHA-1, SHA-512 with P-384, version 1.
# Question it answers: where do the files beside it come from? Needs OpenSSL 3; run it only to add one. Keys are for tests
# and nothing else. Each file NAME.pem has the server's certificate first, then its key; NAME-ca.pem has its authority.
set -eu
cd "$(dirname -- "$0")"
trash=$(mktemp -d)
trap 'rm -rf "$trash"' EXIT
days=36500
names='subjectAltName=DNS:localhost,IP:127.0.0.1'

key() { # name, OpenSSL's words for a key
    name=$1
    shift
    openssl genpkey "$@" -out "$trash/$name.key" 2>/dev/null
}

# A certificate that is signed by itself.
alone() { # name, common name, hash, extensions...
    name=$1 common=$2 hash=$3
    shift 3
    for extension; do set -- "$@" -addext "$extension"; shift; done
    openssl req -x509 -new -key "$trash/$name.key" "-$hash" -days $days -subj "/CN=$common" "$@" -out "$trash/$name.crt"
}

# A server's certificate, signed by an authority.
issued() { # name, authority, hash, [extensions]
    openssl req -new -key "$trash/$1.key" -subj "/CN=$1" -out "$trash/$1.csr"
    printf '%s\n%s\n' "$names" "${4:-}" >"$trash/$1.ext"
    openssl x509 -req -in "$trash/$1.csr" -CA "$trash/$2.crt" -CAkey "$trash/$2.key" -CAcreateserial "-$3" \
        -days $days -extfile "$trash/$1.ext" -out "$trash/$1.crt" 2>/dev/null
}

p256='-algorithm EC -pkeyopt ec_paramgen_curve:P-256'
p384='-algorithm EC -pkeyopt ec_paramgen_curve:P-384'
p521='-algorithm EC -pkeyopt ec_paramgen_curve:P-521'
rsa='-algorithm RSA -pkeyopt rsa_keygen_bits:2048'
authority='basicConstraints=critical,CA:TRUE keyUsage=critical,keyCertSign'

# shellcheck disable=SC2086
{
    key p521 $p521
    alone p521 p521 sha512 "$names"
    key p384-sha512-ca $p384
    alone p384-sha512-ca p384-sha512-ca sha512 $authority
    key p384-sha512 $p384
    issued p384-sha512 p384-sha512-ca sha512
    key p256-sha512-ca $p256
    alone p256-sha512-ca p256-sha512-ca sha512 $authority
    key p256-sha512 $p256
    issued p256-sha512 p256-sha512-ca sha512
    key p521-sha256-ca $p521
    alone p521-sha256-ca p521-sha256-ca sha256 $authority
    key p521-sha256 $p256
    issued p521-sha256 p521-sha256-ca sha256
    key rsa-ca $rsa
    alone rsa-ca rsa-ca sha256 $authority
    for hash in sha1 sha512; do
        key rsa-$hash $rsa
        issued rsa-$hash rsa-ca $hash
    done
    key v1-ca $p256
    openssl req -new -key "$trash/v1-ca.key" -subj /CN=v1-ca -out "$trash/v1-ca.csr"
    openssl x509 -req -in "$trash/v1-ca.csr" -signkey "$trash/v1-ca.key" -sha256 -days $days -out "$trash/v1-ca.crt" 2>/dev/null
    key v1 $p256
    issued v1 v1-ca sha256
}
for made in p521 p384-sha512 p256-sha512 p521-sha256 rsa-sha1 rsa-sha512 v1; do
    cat "$trash/$made.crt" "$trash/$made.key" >"$made.pem"
done
for made in p384-sha512-ca p256-sha512-ca p521-sha256-ca rsa-ca v1-ca; do
    cp "$trash/$made.crt" "$made.pem"
done
