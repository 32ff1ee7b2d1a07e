package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// packageChecks ask for packages as playbooks do.
const packageChecks = `
says() { grep -qF "$1" /tmp/out || { echo "no '$1' in:"; cat /tmp/out; failed=1; }; }
fails() { code=$1; shift; "$@" >/tmp/out 2>&1; is "$?" "$code"; }
check dpkg -s dpkg; says "Status: install ok installed"
check dpkg -l dpkg; says "ii  dpkg"
is "$(dpkg-query -W -f '${db:Status-Status}' dpkg)" installed
is "$(dpkg -S /usr/bin/dpkg)" "dpkg: /usr/bin/dpkg"
check dpkg --audit; is "$(cat /tmp/out)" ""
fails 1 dpkg -s none
check update-alternatives --get-selections; says auto
here apt-get || exit ${failed:-0}
check apt-cache policy dpkg; says "100 /var/lib/dpkg/status"
check apt-get update; is "$(cat /tmp/out)" "Reading package lists..."
[ -e /var/lib/apt/periodic/update-success-stamp ] || { echo no stamp; failed=1; }
check apt-get install -y dpkg; says "dpkg is already the newest version"
fails 100 apt-get install -y none; says "E: Unable to locate package none"
is "$(find /var/cache/apt -type f -size +0)" ""
`

// changeCheck removes a package, whose files are gone for this server, and installs another one.
const changeCheck = `
check apt-get remove -y dosfstools; says "Removing dosfstools"
[ ! -e /usr/sbin/mkfs.fat ] || { echo its files are left; failed=1; }
fails 1 dpkg -s dosfstools
check apt-get remove -y dosfstools
mkdir -p own/DEBIAN own/usr/bin
printf 'Package: own\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n' >own/DEBIAN/control
printf '#!/bin/sh\necho "$1" >/etc/own\n' >own/DEBIAN/postinst
printf '#!/bin/sh\n' >own/usr/bin/own
chmod 755 own/DEBIAN/postinst own/usr/bin/own
check dpkg-deb -b own own.deb
check apt-get install -y ./own.deb; says "Setting up own (1)"
check own
is "$(cat /etc/own)" configure
check apt-get purge -y own
fails 127 own
`

// The databases of packages say what this machine's /usr has, and apt works with them without a
// network.
func TestPackagesAreThoseOfThisMachine(t *testing.T) {
	prerequisites.Need(t, "user namespaces")
	prerequisites.Need(t, "dpkg")
	prerequisites.Need(t, "mkfs.vfat")
	script := functions + packageChecks
	if os.Getuid() == 0 { // dpkg changes owners
		script += changeCheck
	}
	s := sandbox.New(sandbox.Config{Base: Base(texts["bookworm"]), Store: &layer{}, Dir: filepath.Join(t.TempDir(), "root"), RequireLimits: true})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var out strings.Builder
	code, err := s.Exec(patience.Within(t, time.Minute), sandbox.Command{Args: []string{"/bin/bash", "-c", script + "exit ${failed:-0}"}, Stdout: &out, Stderr: &out})
	if err != nil || code != 0 {
		t.Errorf("code %d, %v:\n%s", code, err, out.String())
	}
	if _, err := os.Stat("/usr/sbin/mkfs.fat"); err != nil {
		t.Errorf("this machine has lost a package's file: %v", err)
	}
}
