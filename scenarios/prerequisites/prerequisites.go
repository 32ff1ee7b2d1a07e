// Package prerequisites is the table of programs, modules of Python, files and features of
// the kernel that tests need beyond Go and Linux. A test whose prerequisite is missing is
// skipped, or fails where METALAB_NEED_PROGRAMS is set. `make test` says beforehand what is
// missing and which tests are skipped for it. The package knows no test.
package prerequisites

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// NeedEnv is an environment variable. Where it is set, a missing prerequisite is a failure.
const NeedEnv = "METALAB_NEED_PROGRAMS"

// Environment variables that say where a prerequisite is.
const (
	AxeEnv          = "METALAB_AXE"           // the file axe.min.js of axe-core
	BootPackagesEnv = "METALAB_BOOT_PACKAGES" // a directory of Debian packages
	DockerEnv       = "DOCKER_HOST"           // the URL of a container engine
	ImageEnv        = "METALAB_IMAGE"         // the name of the container image
)

// Prerequisite is something that tests need.
type Prerequisite struct {
	Name     string   // by which tests ask for it
	Commands []string // programs that it consists of; none: the one of its name
	Get      string   // how to get it: "Debian: ipmitool"
	Admin    bool     // it is in /usr/sbin, which is not in every user's path: run the path that Need returns
	Optional bool     // its absence is no failure, even where NeedEnv is set: not everybody can have it

	find func() (string, error) // returns its path; nil: a program
}

// Table lists all prerequisites.
var Table = []Prerequisite{
	{Name: "ansible-playbook", Get: "Debian: ansible, or ansible-core, which has no collections"},
	{Name: "axe-core", Get: "npm pack axe-core@4.10.3, unpacked; set METALAB_AXE to its axe.min.js", find: axe},
	{Name: "bash-completion", Get: "Debian: bash-completion", find: func() (string, error) { return oneOf(bashCompletion) }},
	{Name: "blkid", Admin: true, Get: "Debian: util-linux"},
	{Name: "bsdtar", Get: "Debian: libarchive-tools"},
	{Name: "chromium", Get: "Debian: chromium"},
	{Name: "cloud-init", Get: "Debian: cloud-init"},
	{Name: "cloud-init 22.4.2", Get: "Debian 12: cloud-init", find: pythonWith("cloudinit.version as v; assert v.version_string().startswith('22.4.2')")},
	{Name: "cloudinit", Get: "Debian: cloud-init", find: pythonWith("cloudinit")},
	{Name: "collections of Ansible", Get: "Debian: ansible", find: func() (string, error) { return oneOf(collections) }},
	{Name: "container engine", Get: "Debian: docker.io; or set DOCKER_HOST", find: containerEngine},
	{Name: "container image", Get: "make image; or set METALAB_IMAGE", find: containerImage},
	{Name: "cpio", Get: "Debian: cpio"},
	{Name: "curl", Get: "Debian: curl"},
	{Name: "DMTF archive", Optional: true, Get: "DSP8010 and DSP8011 2025.4, at ../shared/data/dmtf-2025.4.zip beside the repository", find: dmtfArchive},
	{Name: "debootstrap", Admin: true, Get: "Debian: debootstrap"},
	{Name: "debugfs", Admin: true, Get: "Debian: e2fsprogs"},
	{Name: "dpkg", Get: "Debian: dpkg"},
	{
		Name: "FreeIPMI", Get: "Debian: freeipmi-tools",
		Commands: []string{
			"bmc-info", "bmc-device", "ipmipower", "ipmiconsole", "ipmi-chassis", "ipmi-sel", "ipmi-sensors", "ipmi-fru", "ipmi-dcmi", "ipmi-pef-config",
			"ipmi-config", "ipmi-raw", "ipmi-oem",
		},
	},
	{Name: "git", Get: "Debian: git"},
	{Name: "ipmitool", Get: "Debian: ipmitool"},
	{Name: "mdadm", Admin: true, Get: "Debian: mdadm"},
	{Name: "mksquashfs", Get: "Debian: squashfs-tools"},
	{Name: "network namespace", Get: "Linux, as root or with user namespaces (sysctl user.max_user_namespaces)", find: networkNamespace},
	{Name: "openssl", Get: "Debian: openssl"},
	{Name: "mkfs.ext4", Admin: true, Get: "Debian: e2fsprogs"},
	{Name: "mkfs.vfat", Admin: true, Get: "Debian: dosfstools"},
	{Name: "OVMF", Get: "Debian: ovmf", find: func() (string, error) { return oneOf(ovmf) }},
	{Name: "packages of an agent's image", Get: "Debian: apt-get download linux-image-cloud-amd64's kernel, isolinux, syslinux-common, systemd-boot-efi and ipxe to the directory that METALAB_BOOT_PACKAGES names", find: bootPackages},
	{Name: "preallocation", Get: "a directory of temporary files (TMPDIR) on ext4, XFS, Btrfs or tmpfs", find: preallocation},
	{Name: "python3-apt", Get: "Debian: python3-apt", find: pythonWith("apt_pkg")},
	{Name: "QEMU", Commands: []string{"qemu-system-x86_64"}, Get: "Debian: qemu-system-x86"},
	{Name: "qemu-img", Get: "Debian: qemu-utils"},
	{Name: "redfishtool", Get: "Debian: redfishtool"},
	{Name: "redfishtoollib", Get: "Debian: redfishtool", find: pythonWith("redfishtoollib")},
	{Name: "script", Get: "Debian: bsdutils"},
	{Name: "sfdisk", Admin: true, Get: "Debian: fdisk"},
	{Name: "skopeo", Get: "Debian: skopeo"},
	{Name: "small file system", Get: "Linux, as root or with user namespaces (sysctl user.max_user_namespaces)", find: smallFileSystem},
	{Name: "sushy", Get: "Debian: python3-sushy", find: pythonWith("sushy")},
	{Name: "umoci", Get: "Debian: umoci"},
	{Name: "user namespaces", Optional: true, Get: "Linux 5.11 with user namespaces and overlays in them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone; AppArmor's restriction off), and TMPDIR on a file system that an overlay takes (ext4, XFS, tmpfs)", find: overlayInNamespace},
}

// Lookup returns the prerequisite of a name, or the one that a program belongs to.
func Lookup(name string) (Prerequisite, bool) {
	i := slices.IndexFunc(Table, func(p Prerequisite) bool { return p.Name == name || slices.Contains(p.Commands, name) })
	if i < 0 {
		return Prerequisite{}, false
	}
	return Table[i], true
}

// Find returns the path of a prerequisite, or of a program that belongs to one. Its error
// says how to get it.
func Find(name string) (string, error) {
	p, ok := Lookup(name)
	if !ok {
		return "", fmt.Errorf("%q is not in the table of prerequisites", name)
	}
	path, err := p.locate(name)
	if err != nil {
		return "", fmt.Errorf("%s is missing (%s): %w", name, p.Get, err)
	}
	return path, nil
}

func (p Prerequisite) locate(name string) (string, error) {
	switch {
	case p.find != nil:
		return p.find()
	case name == p.Name && len(p.Commands) > 0:
		name = p.Commands[0]
	}
	path, err := exec.LookPath(name)
	if err != nil && p.Admin {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name))
	}
	return path, err
}

// Need returns the path of a prerequisite. When it is missing Need skips the test, or fails
// it where NeedEnv is set.
func Need(t testing.TB, name string) string {
	t.Helper()
	path, err := Find(name)
	switch p, known := Lookup(name); {
	case err == nil:
	case !known || Required() && !p.Optional:
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return path
}

// Required reports whether a missing prerequisite is a failure.
func Required() bool { return os.Getenv(NeedEnv) != "" }

// Missing returns the prerequisites that are missing.
func Missing() (out []Prerequisite) {
	for _, p := range Table {
		names := p.Commands
		if len(names) == 0 {
			names = []string{p.Name}
		}
		if slices.ContainsFunc(names, func(name string) bool { _, err := p.locate(name); return err != nil }) {
			out = append(out, p)
		}
	}
	return out
}

// ovmf are the places of EDK II, built without stored variables.
// bashCompletion are places of the functions that generated completion scripts call.
var bashCompletion = []string{
	"/usr/share/bash-completion/bash_completion", // Debian, Ubuntu, Fedora, Arch
	"/usr/local/share/bash-completion/bash_completion",
}

// collections are places of the collections of Ansible that tests use, which are installed together.
var collections = []string{
	"/usr/lib/python3/dist-packages/ansible_collections/community/general", // Debian, Ubuntu
	"/usr/share/ansible/collections/ansible_collections/community/general", // Fedora
}

var ovmf = []string{
	"/usr/share/OVMF/OVMF_CODE_4M.fd", // Debian, Ubuntu
	"/usr/share/OVMF/OVMF_CODE.fd",
	"/usr/share/edk2/ovmf/OVMF_CODE.fd",   // Fedora
	"/usr/share/edk2/x64/OVMF_CODE.4m.fd", // Arch
	"/usr/share/qemu/ovmf-x86_64-code.bin",
	"/usr/share/qemu/edk2-x86_64-code.fd", // QEMU's own
}

// oneOf returns the first file that exists.
func oneOf(files []string) (string, error) {
	for _, name := range files {
		if _, err := os.Stat(name); err == nil {
			return name, nil
		}
	}
	return "", fmt.Errorf("there is none of %s", strings.Join(files, ", "))
}

// pythons are the interpreters that may have a module: one that a distribution installed
// need not be first in the path.
var pythons = []string{"python3", "/usr/bin/python3"}

// pythonWith returns a function that finds an interpreter that can import a module.
func pythonWith(module string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		for _, python := range pythons {
			if exec.Command(python, "-c", "import "+module).Run() == nil {
				return python, nil
			}
		}
		return "", fmt.Errorf("no Python has a module %s", module)
	})
}

// axe finds the script of axe-core, which checks the accessibility of pages.
func axe() (string, error) {
	name := os.Getenv(AxeEnv)
	if st, err := os.Stat(name); name == "" || err != nil || st.IsDir() {
		return "", fmt.Errorf("%s is %q: it must name a file", AxeEnv, name)
	}
	return name, nil
}

// bootPackages returns the directory of packages that the environment names.
func bootPackages() (string, error) {
	dir := os.Getenv(BootPackagesEnv)
	if found, _ := filepath.Glob(filepath.Join(dir, "*.deb")); dir == "" || len(found) == 0 {
		return "", fmt.Errorf("%s is %q: it must name a directory with packages", BootPackagesEnv, dir)
	}
	return dir, nil
}

// engineTimeout is how long a container engine may take to answer. One that does not run
// refuses the connection at once; one on a busy machine is not missing.
const engineTimeout = time.Minute

// dialEngine connects to the container engine that the environment names, as docker does.
func dialEngine(ctx context.Context) (net.Conn, error) {
	at, err := url.Parse(cmp.Or(os.Getenv(DockerEnv), "unix:///var/run/docker.sock"))
	if err != nil {
		return nil, err
	}
	network, address := "tcp", at.Host
	if at.Scheme == "unix" {
		network, address = "unix", at.Path
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// containerEngine returns "" when a container engine answers.
func containerEngine() (string, error) {
	status, err := askEngine("/_ping")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the engine answers %d %s", status, http.StatusText(status))
	}
	return "", err
}

// containerImage returns the name of the image with labctl, which the engine must have.
func containerImage() (string, error) {
	name := cmp.Or(os.Getenv(ImageEnv), "metalab:latest")
	status, err := askEngine("/images/" + name + "/json")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: the engine answers %d %s", name, status, http.StatusText(status))
	}
	if err != nil {
		return "", err
	}
	return name, nil
}

// askEngine sends GET to the container engine, and returns the status of the response.
func askEngine(path string) (status int, err error) {
	limit := patience.Of(engineTimeout)
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("%w: %s", patience.ErrLimit, limit))
	defer cancel()
	return getFromEngine(ctx, path)
}

// getFromEngine is askEngine until ctx ends. Its error then says how far the engine has come.
func getFromEngine(ctx context.Context, path string) (status int, err error) {
	var connected atomic.Bool
	engine := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := dialEngine(ctx)
			connected.Store(err == nil)
			return c, err
		},
	}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine"+path, nil)
	if err != nil {
		return 0, err
	}
	r, err := engine.Do(q)
	if err != nil && ctx.Err() != nil {
		saw := "no connection"
		if connected.Load() {
			saw = "a connection, and no response to GET " + path
		}
		return 0, fmt.Errorf("the engine does not answer: %w (last: %s)", context.Cause(ctx), saw)
	}
	if err != nil {
		return 0, err
	}
	return r.StatusCode, r.Body.Close()
}

// dmtfArchive returns the path of DMTF's schemas and registries.
func dmtfArchive() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	name := filepath.Join(root, "..", "shared", "data", "dmtf-2025.4.zip")
	_, err = os.Stat(name)
	return name, err
}

// Root returns the directory of the repository that the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a repository", dir)
		}
	}
}
