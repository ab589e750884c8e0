#!/usr/bin/env bash
# The instructions of an event, by valgrind's callgrind: nobody asks for paths, one of 64 changes leaves marks, all do.
# A stretch is 1,024 events; what the start and the end cost is subtracted by a second, shorter run.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "valgrind is needed: apt-get install valgrind"; exit 1; }

binary=$(cargo bench --bench seeing --features metrics --no-run 2>&1 | sed -n 's/.*(\(.*seeing-[0-9a-f]*\)).*/\1/p')

# Instructions of a run: sampling, stretches.
run() {
  SEEING_ONE_OF=$1 SEEING_STRETCHES=$2 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$binary" 2>&1 |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

for one_of in 0 64 1; do
  few=$(run "$one_of" 4) many=$(run "$one_of" 44)
  echo "one of $one_of: $(((many - few) / (40 * 1024))) instructions an event"
done
