package space

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

func TestWatchRefusesBelowTheReserve(t *testing.T) {
	dir := t.TempDir()
	free := int64(0)
	var log bytes.Buffer
	w := New(Config{Dir: dir, Reserve: 40 << 20, Ballast: 10 << 20, Free: func() (int64, error) { return free, nil }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, tt := range []struct {
		free    int64 // MB
		full    bool
		ballast int64 // MB
		log     string
	}{
		{100, false, 10, ""},
		{40, false, 10, ""},
		{39, true, 0, "no space left"},
		{49, true, 0, ""}, // the ballast was emptied
		{59, true, 0, ""},
		{60, false, 10, "there is space again"},
		{50, false, 10, ""},
		{0, true, 0, "no space left"},
	} {
		free = tt.free << 20
		log.Reset()
		w.Look()
		err := w.Writable()
		var full *FullError
		if errors.As(err, &full) != tt.full || Full(err) != tt.full {
			t.Errorf("with %d MB Writable() = %v", tt.free, err)
		}
		if tt.full && (full.Free != free || full.Need != 60<<20 || !strings.Contains(err.Error(), "no space left on the file system of "+dir)) {
			t.Errorf("with %d MB Writable() = %v", tt.free, err)
		}
		if got := Held(dir) >> 20; got != tt.ballast {
			t.Errorf("with %d MB the ballast has %d MB, want %d", tt.free, got, tt.ballast)
		}
		if !strings.Contains(log.String(), tt.log) || (tt.log == "") != (log.Len() == 0) {
			t.Errorf("with %d MB the log says %q, want %q", tt.free, log.String(), tt.log)
		}
	}
}

// Use looks at the disk after 8 MB, before the next regular look.
func TestUseLooksAfterManyBytes(t *testing.T) {
	free := int64(100 << 20)
	w := New(Config{Dir: t.TempDir(), Reserve: 40 << 20, Free: func() (int64, error) { return free, nil }})
	w.Look()
	free = 10 << 20
	for i := range 8 {
		if err := w.Use(1 << 20); (err != nil) != (i == 7) {
			t.Errorf("after %d MB Use() = %v", i+1, err)
		}
	}
}

func TestRequire(t *testing.T) {
	if err := Require(t.TempDir(), 1); err != nil {
		t.Errorf("Require(1) = %v", err)
	}
	if err := Require(t.TempDir(), 1<<60); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "are needed") {
		t.Errorf("Require(1<<60) = %v", err)
	}
}

// The ballast takes blocks of the disk.
func TestBallastTakesSpace(t *testing.T) {
	prerequisites.Need(t, "preallocation")
	dir := t.TempDir()
	w := New(Config{Dir: dir, Reserve: 1, Ballast: 1 << 20})
	w.Look()
	st, err := os.Stat(filepath.Join(dir, BallastFile))
	if err != nil {
		t.Fatal(err)
	}
	if blocks := st.Sys().(*syscall.Stat_t).Blocks * 512; blocks < 1<<20 {
		t.Errorf("the ballast takes %d bytes of the disk", blocks)
	}
}
