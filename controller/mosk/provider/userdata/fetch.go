package userdata

import "fmt"

// FetchProgram is the path of FetchScript on a server.
const FetchProgram = "/usr/local/sbin/fetch-lab-agent"

// maxProgram is how many bytes an agent's program may have: as many as an upgrade of it takes.
const maxProgram = 256 << 20

// FetchScript installs the LCM agent, unless it is there: it downloads its first argument, a URL, and
// compares the file's SHA-256 with the second, in hexadecimal. A failure names the URL, and of a
// wrong file both digests; the service that has called it starts it again. A program that another
// version has replaced stays: the agent upgrades itself. curl reads the variables of a proxy.
var FetchScript = fmt.Sprintf(`#!/bin/sh
set -eu
program=%[1]s
[ -x "$program" ] && exit 0
new=$program.new
trap 'rm -f "$new"' EXIT
if ! curl --fail --silent --show-error --location --max-filesize %[2]d --output "$new" --url "$1"; then
	echo "$1 is not downloaded, $program not installed" >&2
	exit 1
fi
got=$(sha256sum "$new")
got=${got%%%% *}
if [ "$got" != "$2" ]; then
	echo "$1 has the SHA-256 $got, and the release names $2: $program is not installed" >&2
	exit 1
fi
chmod 0755 "$new"
mv "$new" "$program"
`, Program, maxProgram)
