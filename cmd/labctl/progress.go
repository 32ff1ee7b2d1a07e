package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress shows how far work has got: in place on a terminal, and with a line now
// and then elsewhere. Work that is done within progressAfter shows nothing.
type progress struct {
	w        io.Writer
	what     string
	total    int
	terminal bool
	now      func() time.Time
	began    time.Time

	mu    sync.Mutex
	done  int
	last  time.Time // when it was last shown
	shown bool
}

// Real times between two lines, and before the first.
const (
	progressAfter    = time.Second
	terminalInterval = 100 * time.Millisecond
	pipeInterval     = 10 * time.Second
)

func newProgress(w io.Writer, what string, total int) *progress {
	p := &progress{w: w, what: what, total: total, terminal: isTerminal(w), now: time.Now}
	p.began = p.now()
	return p
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// add counts work that is done.
func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	now, interval := p.now(), pipeInterval
	if p.terminal {
		interval = terminalInterval
	}
	if p.done < p.total && now.Sub(p.began) >= progressAfter && now.Sub(p.last) >= interval {
		p.last = now
		p.show()
	}
}

// show writes the count. The caller holds p.mu.
func (p *progress) show() {
	p.shown = true
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%d of %d %s", p.done, p.total, p.what)
		return
	}
	fmt.Fprintf(p.w, "%d of %d %s\n", p.done, p.total, p.what)
}

// end writes the last count, if there was one before.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shown {
		return
	}
	p.show()
	if p.terminal {
		fmt.Fprintln(p.w)
	}
}

// statusLine shows a text that changes: in place on a terminal, and elsewhere with a
// line for each change, but at most one in statusInterval.
type statusLine struct {
	w        io.Writer
	terminal bool
	text     string
	last     time.Time
}

// statusInterval is the real time between two lines that are not on a terminal.
const statusInterval = 5 * time.Second

func newStatusLine(w io.Writer) *statusLine { return &statusLine{w: w, terminal: isTerminal(w)} }

// set shows a text, if it is another one.
func (s *statusLine) set(text string) {
	switch {
	case text == s.text:
	case s.terminal:
		fmt.Fprintf(s.w, "\r\x1b[K%s", text)
		s.text = text
	case time.Since(s.last) >= statusInterval:
		fmt.Fprintln(s.w, text)
		s.text, s.last = text, time.Now()
	}
}

// end ends the line.
func (s *statusLine) end() {
	if s.terminal && s.text != "" {
		fmt.Fprintln(s.w)
	}
}
