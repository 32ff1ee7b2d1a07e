#!/bin/sh
# build.sh DIR [FLAG...]: builds the three programs into DIR, with flags for go build.
# The first build compiles Kubernetes, which takes minutes: it says so, and how far
# it has got.
set -eu
dir=$1
shift
cd "$(dirname "$0")/.."
GO=${GO:-go}
mkdir -p "$dir"
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || true)
[ -z "$commit" ] || git diff --quiet HEAD 2>/dev/null || commit=$commit+changes
total=$($GO list -deps ./cmd/... | wc -l)
# go build -v names a package when it is compiled: on standard error, as messages are.
terminal=0
[ -t 2 ] && terminal=1
for program in labctl lab-controller lab-agent; do
  { $GO build -v -ldflags "-s -w -X github.com/metalab-dev/metalab/version.commit=$commit ${LDFLAGS:-}" "$@" -o "$dir/$program" "./cmd/$program" 2>&1 || echo "build.sh: failed"; } |
    awk -v total="$total" -v terminal=$terminal '
      /^build.sh: failed$/ { failed = 1; next }
      /^[A-Za-z0-9_.\/~-]+$/ {
        if (++n == 20) print "compiling: Kubernetes takes some minutes the first time" > "/dev/stderr"
        if (n < 20) next
        if (terminal) printf "\r%d of about %d packages", n, total > "/dev/stderr"
        else if (n % 250 == 0) print n " of about " total " packages" > "/dev/stderr"
        next
      }
      { print > "/dev/stderr" }
      END { if (terminal && n >= 20) print "" > "/dev/stderr"; exit failed }'
done
