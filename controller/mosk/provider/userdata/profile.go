package userdata

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
)

// The names of a profile's files are in no public text.
const (
	sysctlFile  = "/etc/sysctl.d/90-host-profile.conf"
	modulesFile = "/etc/modules-load.d/host-profile.conf"
	modprobeDir = "/etc/modprobe.d/"
	preScript   = "/usr/local/sbin/host-profile-pre-deploy"
	postScript  = "/usr/local/sbin/host-profile-post-deploy"
	preDone     = "/var/lib/lab-agent/pre-deploy.done"
)

// addProfile adds the kernel parameters and scripts of a profile. Its commands come before
// those that start the agent.
func (c *cloudConfig) addProfile(p *hostprofilev1.BareMetalHostProfileSpec) {
	var commands []string
	if k := p.KernelParameters; k != nil {
		commands = c.addKernelParameters(k)
	}
	if p.PreDeployScript != "" {
		c.BootCmd = append(c.BootCmd, preDeploy(p.PreDeployScript))
	}
	if p.PostDeployScript != "" {
		c.WriteFiles = append(c.WriteFiles, file{Path: postScript, Permissions: "0700", Content: p.PostDeployScript})
		commands = append(commands, postScript+" || echo \"postDeployScript ended with code $?\" >&2")
	}
	c.RunCmd = append(commands, c.RunCmd...)
}

// addKernelParameters adds the files of kernel parameters, and returns the commands that
// apply them at the first boot: systemd reads the files before cloud-init writes them.
func (c *cloudConfig) addKernelParameters(k *hostprofilev1.KernelParameters) (commands []string) {
	var modules []string
	for _, m := range k.Modules {
		c.WriteFiles = append(c.WriteFiles, file{Path: modprobeDir + m.Filename, Permissions: "0644", Content: m.Content})
	}
	if modules = modulesOf(k.Modules); len(modules) > 0 {
		c.WriteFiles = append(c.WriteFiles, file{Path: modulesFile, Permissions: "0644", Content: strings.Join(modules, "\n") + "\n"})
		commands = append(commands, "modprobe --all "+strings.Join(modules, " "))
	}
	if len(k.Sysctl) > 0 {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(k.Sysctl)) {
			fmt.Fprintf(&b, "%s = %s\n", name, k.Sysctl[name])
		}
		c.WriteFiles = append(c.WriteFiles, file{Path: sysctlFile, Permissions: "0644", Content: b.String()})
		commands = append(commands, "sysctl --quiet --load="+sysctlFile) // a module may have added a name
	}
	return commands
}

// modulesOf returns the kernel modules that files of modprobe.d(5) give options, and that
// none of them forbids, in their order.
func modulesOf(files []hostprofilev1.ModuleFile) (out []string) {
	forbidden := map[string]bool{}
	for _, f := range files {
		for line := range strings.Lines(f.Content) {
			switch words := strings.Fields(line); {
			case len(words) < 2:
			case words[0] == "options" && isModule(words[1]) && !slices.Contains(out, words[1]):
				out = append(out, words[1])
			case words[0] == "blacklist", words[0] == "install":
				forbidden[words[1]] = true
			}
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return forbidden[name] })
}

// isModule reports whether a word is the name of a module, which a shell takes as it is.
func isModule(word string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return strings.Trim(word, letters) == "" && !strings.HasPrefix(word, "-")
}

// preDeploy returns a command of bootcmd that runs a script once. bootcmd comes before
// write_files, so that the command has the script, and runs at every boot.
func preDeploy(script string) string {
	return "[ -e " + preDone + " ] || ( mkdir -p /var/lib/lab-agent /usr/local/sbin; " +
		"echo " + base64.StdEncoding.EncodeToString([]byte(script)) + " | base64 -d > " + preScript + "; chmod 0700 " + preScript + "; " +
		preScript + " || echo \"preDeployScript ended with code $?\" >&2; touch " + preDone + " )"
}
