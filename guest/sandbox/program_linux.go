package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
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
		if name == "reboot" || name == "poweroff" {
			t["usr/sbin/"+name] = Node{Mode: fs.ModeSymlink | 0o777, Link: "../lib/metalab/program"}
		}
	}
	for _, name := range more {
		t["usr/bin/"+name] = Node{Mode: fs.ModeSymlink | 0o777, Link: "../lib/metalab/program"}
	}
	return t
}

// question is a program's request to the first process, and result the response.
type question struct{ Program []string }

type result struct {
	Output string
	Code   int
}

// serve takes the requests of programs.
func (p *first) serve() error {
	l, err := net.Listen("unix", path.Join("/run", socketName))
	if err != nil {
		return fmt.Errorf("programs: %w", err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.answer(c)
		}
	}()
	return nil
}

// answer hands a program's request to the program that has started this one.
func (p *first) answer(c net.Conn) {
	defer c.Close()
	var q question
	if err := json.NewDecoder(c).Decode(&q); err != nil || len(q.Program) == 0 {
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
	if err := p.send(response{ID: id, Program: q.Program}); err != nil {
		return
	}
	r := <-ask
	_ = json.NewEncoder(c).Encode(result{r.Output, r.Code}) // else the program has ended
}

// runProgram is a program in the system.
func runProgram(name string, args []string) int {
	c, err := net.Dial("unix", path.Join("/run", socketName))
	if err == nil {
		err = json.NewEncoder(c).Encode(question{append([]string{name}, args...)})
	}
	var r result
	if err == nil {
		err = json.NewDecoder(c).Decode(&r)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, errors.Join(err))
		return 1
	}
	fmt.Print(r.Output)
	return r.Code
}
