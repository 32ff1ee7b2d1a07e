package item

import (
	"slices"
	"strings"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// The params of host OS items. The specification has playbook, ansible, path and sha256;
// the other names are in no public text, and may change with this file.
const (
	// ParamURL is the address of the module's archive (downloader).
	ParamURL = "url"
	// ParamSHA256 is the archive's SHA-256 in hexadecimal (both runners): a playbook never
	// runs from another archive.
	ParamSHA256 = "sha256"
	// ParamPath is the directory in which the archive is unpacked (both runners).
	ParamPath = "path"
	// ParamPlaybook is the playbook's path below ParamPath (ansible).
	ParamPlaybook = "playbook"
	// ParamAnsible is the path of the program ansible-playbook (ansible).
	ParamAnsible = "ansible"
	// ParamValues are the values as a JSON object; without it the module has no values
	// (ansible).
	ParamValues = "values"
	// ParamSecretRef is the NAMESPACE/NAME of the Secret whose data the agent merges over the
	// values, as module.Schema.Merge does (ansible).
	ParamSecretRef = "secretRef"
	// ParamSecretVersion is the resourceVersion that the Secret had when its data changed last. The
	// agent uses no older Secret, but newer ones, whose labels have changed; new data give the item
	// another hash, so that it is executed again.
	ParamSecretVersion = "secretVersion"
)

const (
	// AnsiblePlaybook is the value of ParamAnsible.
	AnsiblePlaybook = "/usr/bin/ansible-playbook"
	// ModulesDir contains the directories of ParamPath, which are named MODULE-VERSION.
	ModulesDir = "/root/host-os-modules"
)

// hostOSPrefix and hostOSSuffix enclose the names of HostOS.
const (
	hostOSPrefix = "host-os-"
	hostOSSuffix = "-" + string(lcmv1.PhaseReconfigure)
)

// IsHostOSName reports whether a name is that of a host OS item.
func IsHostOSName(name string) bool {
	return strings.HasPrefix(name, hostOSPrefix) && strings.HasSuffix(name, hostOSSuffix)
}

// IsHostOS reports whether an item of an LCMCluster is one of HostOS. Items of a release
// that only look like one by their names have params or another version.
func IsHostOS(it lcmv1.LCMStateItem) bool {
	return IsHostOSName(it.Name) && len(it.Params) == 0 && it.Version == HostOSVersion && it.Phase == lcmv1.PhaseReconfigure &&
		slices.Contains([]lcmv1.Runner{lcmv1.RunnerDownloader, lcmv1.RunnerAnsible}, it.Runner)
}

// NotExited is the exit code of an item while it is executed.
const NotExited = -1

// Progress is how far the execution of an item is.
type Progress int

// The values of Progress.
const (
	NotStarted Progress = iota // also when the item has changed since its last execution
	Running
	Succeeded
	Failed
)

// ProgressOf returns how far the execution of an item is, as it is now. While an agent
// executes an item, its status has the item's hash, NotExited, startedAt and no
// finishedAt. An agent removes the statuses of items that the machine no longer has.
func ProgressOf(it lcmv1.LCMStateItem, statuses map[string]lcmv1.StateItemStatus, agentVersion string) Progress {
	status, executed := statuses[it.Name]
	switch {
	case !executed || status.Hash != Hash(it, agentVersion):
		return NotStarted
	case status.ExitCode == 0:
		return Succeeded
	case status.FinishedAt == nil:
		return Running
	}
	return Failed
}
