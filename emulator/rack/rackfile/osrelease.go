package rackfile

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Fields of os-release(5): names, and what ID may have.
var (
	osReleaseName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	osReleaseID   = regexp.MustCompile(`^[a-z0-9._-]+$`)
)

// maxOSRelease bounds the text of os-release.
const maxOSRelease = 4096 // bytes

// osReleaseProblems checks the fields of an os-release.
func osReleaseProblems(fields map[string]string, need func(ok bool, field, text string, args ...any)) {
	if len(fields) == 0 {
		return
	}
	need(osReleaseID.MatchString(fields["ID"]), "ID", "%q: use a-z, 0-9, ., _ and -, such as ubuntu", fields["ID"])
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		need(osReleaseName.MatchString(name), name, "use a name of os-release(5), such as VERSION_ID")
		need(!strings.ContainsFunc(fields[name], func(r rune) bool { return r < ' ' || r == 0x7F }), name, "%q: use one line", fields[name])
	}
	n := len(osReleaseText(fields))
	need(n <= maxOSRelease, "ID", "the fields take %d bytes: use at most %d", n, maxOSRelease)
}

// osReleaseText returns the fields as /etc/os-release has them: by name, quoted for a
// shell.
func osReleaseText(fields map[string]string) string {
	var b strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		b.WriteString(name + `="` + quote.Replace(fields[name]) + "\"\n")
	}
	return b.String()
}
