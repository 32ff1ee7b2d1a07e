package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metalab-dev/metalab/guest/sandbox/hostprograms"
)

// programFile is the program that all of programs link to, in the root.
const programFile = "usr/lib/metalab/program"

// socketName is the socket, in /run, on which the first process takes their requests.
const socketName = "metalab-system.sock"

// programTree are the files of the programs, below the machine's /usr.
func programTree(more []string) Tree {
	t := Tree{programFile: File(0o755, "")}
	for name := range programs {
		t["usr/bin/"+name] = Node{Mode: fs.ModeSymlink | 0o777, Link: "../lib/metalab/program"}
		if name != "systemctl" && name != "hostnamectl" { // those that end a boot (Debian, systemd-sysv)
			t["usr/sbin/"+name] = Node{Mode: fs.ModeSymlink | 0o777, Link: "../lib/metalab/program"}
		}
	}
	for _, name := range hostPrograms { // wherever the machine has the real one
		for _, dir := range []string{"usr/bin/", "usr/sbin/"} {
			t[dir+name] = Node{Mode: fs.ModeSymlink | 0o777, Link: "../lib/metalab/program"}
		}
	}
	for _, name := range daemonNames {
		t["usr/sbin/"+name] = Node{Mode: fs.ModeSymlink | 0o777, Link: "../lib/metalab/program"}
	}
	modules := path.Join("usr/lib/modules", kernelRelease())
	if _, err := os.Stat("/" + modules); err != nil { // kmod's programs and Ansible look there
		t[modules+"/modules.builtin"] = File(0o644, "")
	}
	for _, name := range more {
		t["usr/bin/"+name] = Node{Mode: fs.ModeSymlink | 0o777, Link: "../lib/metalab/program"}
	}
	return t
}

// question is a program's request to the first process, and reply the response.
type question struct {
	Program []string
	Calling calling
}

type reply struct {
	Output string
	Code   int
}

// Bounds of the questions of programs: anybody in the system may write to the socket.
const (
	maxQuestion     = 1 << 20 // bytes
	maxQuestions    = 64      // at a time
	questionTimeout = 10 * time.Second
)

// serve takes the requests of programs.
func (p *first) serve() error {
	l, err := net.Listen("unix", path.Join("/run", socketName))
	if err != nil {
		return fmt.Errorf("programs: %w", err)
	}
	// Everybody may ask: the programs know by whom they are called.
	if err := os.Chmod(path.Join("/run", socketName), 0o666); err != nil {
		return fmt.Errorf("programs: %w", err)
	}
	turns := make(chan struct{}, maxQuestions)
	go func() {
		for {
			turns <- struct{}{}
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { <-turns }()
				p.answer(c)
			}()
		}
	}()
	return nil
}

// answer hands a program's request to the program that has started this one.
func (p *first) answer(c net.Conn) {
	defer c.Close()
	q, err := readQuestion(c)
	if err != nil {
		_ = json.NewEncoder(c).Encode(reply{err.Error() + "\n", CodeCannotRun}) // else the program has ended
		return
	}
	ask := make(chan request, 1)
	p.mu.Lock()
	p.nextAsk--
	id := p.nextAsk // the IDs of commands are positive
	p.asking[id] = ask
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.asking, id)
	}()
	q.Calling.UID = callerOf(c)
	if err := p.send(response{ID: id, Program: q.Program, Calling: q.Calling}); err != nil {
		return
	}
	r := <-ask
	_ = json.NewEncoder(c).Encode(reply{r.Output, r.Code}) // else the program has ended
}

// nobody is the user whom no file belongs to.
const nobody = 65534

// callerOf returns the user of the process at the other end of a connection.
func callerOf(c net.Conn) int {
	uid := nobody
	u, ok := c.(*net.UnixConn)
	if !ok {
		return uid
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return uid
	}
	_ = raw.Control(func(fd uintptr) { // else the connection is closed
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = int(cred.Uid)
		}
	})
	return uid
}

// readQuestion reads a question of a program in time.
func readQuestion(c net.Conn) (q question, err error) {
	if err := c.SetReadDeadline(time.Now().Add(questionTimeout)); err != nil {
		return q, err
	}
	if err := json.NewDecoder(io.LimitReader(c, maxQuestion)).Decode(&q); err != nil {
		return q, fmt.Errorf("a question on the socket /run/%s: %w: give an object of at most %d KiB", socketName, err, maxQuestion>>10)
	}
	if len(q.Program) == 0 {
		return q, fmt.Errorf("a question on the socket /run/%s: it names no program", socketName)
	}
	return q, nil
}

// runProgram is a program in the system.
func runProgram(name string, args []string) int {
	list, install, edits := hostprograms.Edits(name, args)
	if editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")); edits && editor != "" {
		return edit(name, editor, list, install)
	}
	input, err := hostprograms.Input(name, args, os.Stdin, os.ReadFile)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	out, problems, code := askProgram(name, args, input)
	fmt.Fprint(os.Stderr, problems)
	fmt.Print(out)
	return code
}

// edit lets an editor change what a program lists, and installs it then.
func edit(name, editor string, list, install []string) int {
	text, _, _ := askProgram(name, list, nil) // there may be none
	err := func() error {
		dir, err := os.MkdirTemp("", name+".")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		file := path.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		c := exec.Command("/bin/sh", "-c", editor+` "$0"`, file)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", editor, err)
		}
		edited, err := os.ReadFile(file)
		text = string(edited)
		return err
	}()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	out, problems, code := askProgram(name, install, []byte(text))
	fmt.Fprint(os.Stderr, problems)
	fmt.Print(out)
	return code
}

// askProgram asks the first process to run a program.
func askProgram(name string, args []string, input []byte) (out, problems string, code int) {
	q := question{Program: append([]string{name}, args...), Calling: calling{Input: input}}
	q.Calling.Dir, _ = os.Getwd() // else paths are those of root's home
	c, err := net.Dial("unix", path.Join("/run", socketName))
	if err == nil {
		err = json.NewEncoder(c).Encode(q)
	}
	var r reply
	if err == nil { // anybody in the system may have taken the socket's place
		err = json.NewDecoder(io.LimitReader(c, maxResponse)).Decode(&r)
	}
	if err != nil {
		return "", fmt.Sprintf("%s: %v\n", name, err), 1
	}
	out, problems = streamsOf(r.Output)
	return out, problems, r.Code
}
