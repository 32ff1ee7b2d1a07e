package sandbox

import (
	"fmt"
	"strings"
)

// programNames are the names of programs.
var programNames = []string{"systemctl", "hostnamectl", "reboot", "poweroff", "halt", "shutdown"}

// programs are the implementations of systemctl, hostnamectl and of those that end a boot: a function
// each that returns the program's output and its exit code.
var programs map[string]func(*System, []string) (string, int)

func init() { // the functions run commands, which look for programs
	programs = map[string]func(*System, []string) (string, int){
		"systemctl": systemctl, "hostnamectl": hostnamectl, "reboot": reboot, "poweroff": powerOff, "halt": halt, "shutdown": shutdown,
	}
}

func fail(program string, err error) (string, int) {
	return printed("", fmt.Sprintf("%s: %v\n", program, err)), 1
}

// printed joins what a program writes to its standard output and error, which go through the first
// process as one text: a NUL is between them.
func printed(out, err string) string {
	out = strings.ReplaceAll(out, "\x00", "")
	if err == "" {
		return out
	}
	return out + "\x00" + err
}

// streamsOf undoes printed.
func streamsOf(text string) (out, err string) {
	out, err, _ = strings.Cut(text, "\x00")
	return out, err
}

func withoutOptions(args []string) (out []string) {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			out = append(out, a)
		}
	}
	return out
}

// BuiltIn returns the words of a line of a shell that is one program of this package with
// plain arguments. Exec runs it without a process.
func BuiltIn(line string) (words []string, ok bool) {
	if strings.ContainsAny(line, "|&;<>()$`\\\"'*?[]#~=%{}\n") {
		return nil, false
	}
	words = strings.Fields(line)
	if len(words) == 0 {
		return nil, false
	}
	return words, withoutProcess(words[0])
}
