package lcm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Lines of the output of ansible-playbook.
var (
	taskLine  = regexp.MustCompile(`^(?:TASK|RUNNING HANDLER) \[(.*)\] \**$`)
	fatalLine = regexp.MustCompile(`^(?:fatal|failed): \[[^\]]*\].*?(?:FAILED|UNREACHABLE)! => (\{.*)$`)
	// unresolvedText is that of ansible-core 2.14; 2.19 begins it with a capital letter.
	unresolvedText = regexp.MustCompile(`(?i)couldn't resolve module/action '([^']+)'`)
)

// failure returns the task that has failed and its message, or else the end of the output.
func failure(output string) string {
	task, out := "", ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if m := taskLine.FindStringSubmatch(line); m != nil {
			task = m[1]
		}
		if m := fatalLine.FindStringSubmatch(line); m != nil {
			var r struct {
				Msg    any    `json:"msg"`
				Stderr string `json:"stderr"`
			}
			if json.Unmarshal([]byte(m[1]), &r) != nil || r.Msg == nil {
				r.Msg = m[1]
			}
			out = fmt.Sprintf("%s: %v", task, r.Msg)
			if r.Stderr != "" {
				out += ": " + r.Stderr
			}
		}
	}
	if out != "" {
		return out
	}
	var t tail
	_, _ = t.Write([]byte(output)) // it takes all
	return missingCollection(output) + t.last()
}

// missingCollection returns a line about the module that a playbook names and Ansible does not
// find: nearly all such modules are in collections, which ansible-core has not. It returns "" for
// other outputs.
func missingCollection(output string) string {
	m := unresolvedText.FindStringSubmatch(output)
	if m == nil || strings.HasPrefix(m[1], "ansible.builtin.") {
		return ""
	}
	where := "it is in a collection"
	if parts := strings.Split(m[1], "."); len(parts) > 2 {
		where = "it is in the collection " + parts[0] + "." + parts[1]
	}
	return fmt.Sprintf("the module %s is not on this server: %s, which the package %s has and ansible-core has not, or its name is misspelt\n", m[1], where, ansiblePackage)
}
