package sandbox

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// This file finds and ends the processes of a command, in the first process.

// marker is in the environment of a command and of all that it starts.
func marker(id int) string { return "METALAB_COMMAND=" + strconv.Itoa(id) }

// kill sends a signal to a command and the processes that it has started: its session, its
// descendants, and all processes that have its marker, which may have outlived it. SIGKILL
// for the last command ends all others.
func (p *first) kill(id int, signal unix.Signal) {
	p.mu.Lock()
	pid, alone := p.running[id], len(p.running) == 1
	if _, ok := p.awaited[id]; ok {
		p.awaited[id] = true
	}
	p.mu.Unlock()
	switch {
	case pid != 0 && alone && signal == unix.SIGKILL:
		defer p.stops(id)()
		were := processes()
		_ = unix.Kill(-1, signal)
		awaitEnds(were)
	case signal == unix.SIGKILL:
		defer p.stops(id)()
		endProcesses(id, pid)
	default:
		members, _ := processesOf(id, pid)
		for q := range members {
			_ = unix.Kill(q, signal)
		}
	}
}

// stops makes the end of a command wait until the caller has called done: nothing is left then of
// what the command has started.
func (p *first) stops(id int) (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[id] == 0 || p.stopping[id] != nil {
		return func() {}
	}
	nothing := make(chan struct{})
	p.stopping[id] = nothing
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.stopping, id)
		close(nothing)
	}
}

// killRounds is how often endProcesses looks for new processes before it stops all. One that forks
// is found the next time, but for one that never stays while it is looked at.
const killRounds = 3

// holdRounds bounds how often endProcesses stops all processes. Once is enough: while they are
// stopped none starts another.
const holdRounds = 3

// endProcesses kills a command with all that it has started, those that fork without an end
// included.
func endProcesses(id, pid int) {
	sent := map[int]bool{}
	defer func() { awaitEnds(slices.Collect(maps.Keys(sent))) }()
	kill := func() (more bool) {
		members, sure := processesOf(id, pid)
		for q := range members {
			more = more || !sent[q]
			sent[q] = true
			_ = unix.Kill(q, unix.SIGKILL)
		}
		return more || !sure
	}
	for range killRounds {
		if !kill() {
			return
		}
	}
	for range holdRounds {
		more := false
		hold(func() { more = kill() })
		if !more {
			return
		}
	}
}

// endTime bounds the wait for killed processes. A process needs a processor to end, and may wait for a
// disk.
const endTime = time.Second

// awaitEnds returns when processes that were killed are gone: nothing lists them any more.
func awaitEnds(pids []int) {
	await(endTime, func() bool {
		pids = slices.DeleteFunc(pids, func(pid int) bool {
			f := statFields(pid)
			return len(f) < 2 || (f[0] == "Z" || f[0] == "X") && f[1] != "1" // its parent does not look after it
		})
		return len(pids) == 0
	})
}

// holding is held by hold: of two at once the second would take the processes that the first has
// stopped for ones that were stopped before, and leave them so.
var holding sync.Mutex

// hold stops all processes while do runs. The kernel gives SIGSTOP to all at once, and to what they
// are about to fork (kill(2), pid -1). Those that were stopped before stay so.
func hold(do func()) {
	holding.Lock()
	defer holding.Unlock()
	was := map[int]bool{}
	for _, q := range processes() {
		f := statFields(q)
		was[q] = len(f) > 0 && f[0] == "T"
	}
	_ = unix.Kill(-1, unix.SIGSTOP)
	do()
	for _, q := range processes() {
		if !was[q] {
			_ = unix.Kill(q, unix.SIGCONT)
		}
	}
}

// processesOf returns the processes of a command: pid, if it is not 0, those that have the
// command's marker, and their descendants. sure is false if a process ended while it was looked at:
// it may have been one of the command, and have started another.
func processesOf(id, pid int) (members map[int]bool, sure bool) {
	parents := map[int]int{}
	members, sure = map[int]bool{}, true
	if pid != 0 {
		members[pid] = true
	}
	for _, q := range processes() {
		parents[q] = parentOf(q)
		if hasMarker(q, id) {
			members[q] = true
		} else if f := statFields(q); !members[q] && (len(f) == 0 || f[0] == "Z" || f[0] == "X") {
			sure = false
		}
	}
	for q := range parents {
		for ancestor := q; ancestor > 1; ancestor = parents[ancestor] {
			if members[ancestor] {
				members[q] = true
				break
			}
		}
	}
	return members, sure
}

// nothingOf reports whether no process of a command is left.
func nothingOf(id int) bool {
	members, sure := processesOf(id, 0)
	return len(members) == 0 && sure
}

// execTimeout is how long a process may take to replace its program, which waits for disks.
const execTimeout = time.Second

// hasMarker reports whether a process has a command's marker. While it replaces its program, it has
// no environment to look at: one that was not found then would never end.
func hasMarker(pid, id int) bool {
	var env []byte
	look := func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		env = b
		return err != nil || len(b) > 0
	}
	await(execTimeout, func() bool {
		// The first look may have opened the environment that an execve(2) then took away.
		return look() || !replacesProgram(pid) && (look() || !replacesProgram(pid))
	})
	return strings.Contains("\x00"+string(env)+"\x00", "\x00"+marker(id)+"\x00")
}

// replacesProgram reports whether a process is about to run another program (execve(2)): it lives
// and has no environment yet (proc_pid_stat(5), field 51, "env_end").
func replacesProgram(pid int) bool {
	const state, envEnd = 0, 51 - 3 // the first that statFields returns is field 3
	f := statFields(pid)
	return len(f) > envEnd && f[state] != "Z" && f[state] != "X" && f[envEnd] == "0"
}

// processes returns all processes but the first.
func processes() (out []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid > 1 {
			out = append(out, pid)
		}
	}
	return out
}

// parentOf returns the parent of a process (proc_pid_stat(5), field 4).
func parentOf(pid int) int {
	f := statFields(pid)
	if len(f) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(f[1])
	return parent
}

// living returns the processes but the first and zombies, which wait to be reaped
// (proc_pid_stat(5), field 3).
func living() []int {
	return slices.DeleteFunc(processes(), func(pid int) bool {
		f := statFields(pid)
		return len(f) == 0 || f[0] == "Z" || f[0] == "X"
	})
}

// statFields returns the fields of a process's status after its name.
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}
