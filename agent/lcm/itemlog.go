package lcm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// logDir has the logs of items. It is on the disk: a log outlives the boot, as the item's result does.
const logDir = "/var/log/lcm/items"

const (
	maxLog      = 1 << 20         // bytes of output that a log has, the last ones
	maxLogLine  = 64 << 10        // bytes of a line
	logAttempts = 3               // attempts of an item whose logs are kept
	logEvery    = 1 * time.Second // wall time between two writes of a log
)

// LogFile returns the path of the log of an item's last attempt; those of the attempts before it are
// numbered, .1 and .2. A name may have any characters, slashes included.
func LogFile(itemName string) string { return path.Join(logDir, url.PathEscape(itemName)+".log") }

// logFiles returns the paths of all logs of an item, the last attempt's first.
func logFiles(itemName string) []string {
	out := []string{LogFile(itemName)}
	for i := 1; i < logAttempts; i++ {
		out = append(out, fmt.Sprintf("%s.%d", out[0], i))
	}
	return out
}

// itemLog is the output of one attempt of an item, in a file of the server. The file is written
// anew each second that brings output, since System has no way to append: a file of an agent
// appears as a whole. A log that cannot be written, because the disk is full, is no failure
// of the item. A nil *itemLog takes output and drops it.
type itemLog struct {
	put    func(content []byte) error
	now    func() time.Time
	warn   *slog.Logger
	title  string
	stop   context.CancelFunc
	ended  sync.WaitGroup
	change chan struct{}

	mu      sync.Mutex
	hide    redactor
	head    string // the first line
	line    []byte // the present line, which may contain a part of a value: it is not written before its end
	cut     bool   // the rest of the line is left out
	text    []byte // complete lines without values of Secrets
	dropped int    // bytes before text
	failed  bool   // the last write has failed, and was reported
}

// openLog begins the log of an attempt, and keeps those of the attempts before. Items of the runner
// downloader start no command, and have none.
func (a *agent) openLog(m *lcmv1.LCMMachine, it lcmv1.LCMStateItem) *itemLog {
	if it.Runner == lcmv1.RunnerDownloader {
		return nil
	}
	a.removeOldLogs(m, it.Name)
	files := logFiles(it.Name)
	for i := len(files) - 1; i > 0; i-- {
		old, err := a.System.ReadFile(files[i-1])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = a.System.Put(sys.File{Name: files[i], Mode: 0o600, Content: old})
		}
		if err != nil {
			a.Log.Warn("the log of an earlier attempt is lost", "item", it.Name, "error", err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &itemLog{
		put: func(content []byte) error {
			return a.System.Put(sys.File{Name: logDir, Mode: fs.ModeDir | 0o700}, sys.File{Name: files[0], Mode: 0o600, Content: content})
		},
		now: a.Clock.Now, warn: a.Log, stop: stop, change: make(chan struct{}, 1),
		title: fmt.Sprintf("item %s, attempt %d", it.Name, m.Status.StateItemStatuses[it.Name].Attempt),
	}
	l.head = l.stamp("begins")
	l.store()
	l.ended.Go(func() { l.follow(ctx) })
	return l
}

// removeOldLogs removes the logs of items that the LCMMachine no longer has, so that the logs of a
// server do not grow with each version of a module.
func (a *agent) removeOldLogs(m *lcmv1.LCMMachine, present string) {
	there, err := a.System.ReadDir(logDir)
	if err != nil {
		return // there is none
	}
	kept := logFiles(present)
	for _, it := range m.Spec.StateItems {
		kept = append(kept, logFiles(it.Name)...)
	}
	var old []string
	for _, name := range there {
		if file := path.Join(logDir, name); !slices.Contains(kept, file) {
			old = append(old, file)
		}
	}
	if len(old) == 0 {
		return
	}
	if err := a.System.Remove(old...); err != nil {
		a.Log.Warn("logs of earlier items are left", "error", err)
	}
}

// stamp returns a line about the attempt with the time.
func (l *itemLog) stamp(what string) string {
	return fmt.Sprintf("--- %s, %s: %s\n", l.title, l.now().UTC().Format(time.RFC3339), what)
}

// mask sets the values that the log must not have. It is called before there is output.
func (l *itemLog) mask(hide redactor) {
	if l != nil {
		l.hide = hide
	}
}

// Write implements io.Writer. It never fails.
func (l *itemLog) Write(p []byte) (int, error) {
	if l == nil {
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		l.add(part)
		if whole {
			l.endLine()
		}
		rest = after
	}
	return len(p), nil
}

// add adds to the present line as much as it may have.
func (l *itemLog) add(part []byte) {
	if l.cut {
		return
	}
	l.line = append(l.line, part[:min(len(part), maxLogLine+1)]...)
	l.cut = len(l.line) > maxLogLine
}

// endLine moves the present line to the text.
func (l *itemLog) endLine() {
	line := l.hide.redact(strings.ToValidUTF8(string(l.line), "?"))
	if l.cut { // a value may be cut, too: no form of it would match
		line = strings.ToValidUTF8(line[:max(0, len(line)-l.hide.widest)], "") + " … (the line is too long)"
	}
	l.line, l.cut = l.line[:0], false
	l.text = append(append(l.text, line...), '\n')
	if len(l.text) > maxLog { // a quarter goes at once, so that not each line moves all
		from := len(l.text) - maxLog*3/4
		if i := bytes.IndexByte(l.text[from:], '\n'); i >= 0 {
			from += i + 1
		}
		l.dropped += from
		l.text = append(l.text[:0], l.text[from:]...)
	}
	select {
	case l.change <- struct{}{}:
	default: // a write is due already
	}
}

// follow writes the log while the item runs.
func (l *itemLog) follow(ctx context.Context) {
	pause := time.NewTicker(logEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.change:
			l.store()
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// store writes the log.
func (l *itemLog) store() {
	l.mu.Lock()
	content := []byte(l.head)
	if l.dropped > 0 {
		content = fmt.Appendf(content, "… (%d bytes are left out)\n", l.dropped)
	}
	content = append(content, l.text...)
	l.mu.Unlock()
	err := l.put(content)
	if err != nil && !l.failed {
		l.warn.Warn("the log of an item cannot be written", "log", l.title, "error", err)
	}
	l.failed = err != nil
}

// end adds the result and writes the log for the last time.
func (l *itemLog) end(r result) {
	if l == nil {
		return
	}
	l.stop()
	l.ended.Wait()
	l.mu.Lock()
	if len(l.line) > 0 {
		l.endLine()
	}
	what := fmt.Sprintf("exit code %d", r.code)
	if text := strings.TrimSpace(r.message); text != "" {
		what += ": " + text
	}
	l.text = append(l.text, l.stamp(what)...)
	l.mu.Unlock()
	l.store()
}
