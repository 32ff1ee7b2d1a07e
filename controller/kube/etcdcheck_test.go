package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyTree copies files without the zeros at their end: etcd allocates its files in
// advance.
func copyTree(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file := filepath.Join(to, name)
		return errors.Join(os.WriteFile(file, []byte(strings.TrimRight(string(b), "\x00")), 0o600), os.Truncate(file, int64(len(b))))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An etcd whose data were damaged after a kill does not start, and the error has the file
// and the fix. The test calls checkEtcd, because Start is slow.
func TestDamagedEtcdIsRefused(t *testing.T) {
	live := t.TempDir()
	api := start(t, Config{Dir: live})
	create(t, clientFor(t, api.RESTConfig()), configMap("default", "kept"))
	killed := t.TempDir()
	copyTree(t, filepath.Join(killed, "etcd"), filepath.Join(live, "etcd"))
	stop(t, api)
	logs, err := filepath.Glob(filepath.Join(killed, "etcd", "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	db := filepath.Join(killed, "etcd", "member", "snap", "db")
	if err := checkEtcd(filepath.Join(killed, "etcd")); err != nil {
		t.Fatalf("checkEtcd() after a kill = %v", err)
	}
	content, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	used := len(strings.TrimRight(string(content), "\x00"))
	flip := func(name string, at int64) error {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		b := make([]byte, 1)
		_, err = f.ReadAt(b, at)
		if err == nil {
			_, err = f.WriteAt([]byte{b[0] ^ 0x20}, at)
		}
		return errors.Join(err, f.Close())
	}
	// change replaces text in the database, wherever it is: pages of earlier transactions have it, too.
	change := func(dir, from, to string) error {
		name := filepath.Join(dir, "etcd", "member", "snap", "db")
		b, err := os.ReadFile(name)
		if err == nil && !strings.Contains(string(b), from) {
			err = fmt.Errorf("%s does not have %q", name, from)
		}
		return errors.Join(err, os.WriteFile(name, []byte(strings.ReplaceAll(string(b), from, to)), 0o600))
	}
	truncate := func(name string, size int64) func(string) error {
		return func(dir string) error { return os.Truncate(filepath.Join(dir, name), size) }
	}
	log, database := strings.TrimPrefix(logs[0], killed), strings.TrimPrefix(db, killed)
	for _, tt := range []struct {
		name   string
		damage func(dir string) error
		file   string // in the error
	}{
		{"a byte of the log", func(dir string) error { return flip(filepath.Join(dir, log), int64(used/2)) }, filepath.Dir(log)},
		{"a log that is cut off", truncate(log, int64(used/2)), filepath.Dir(log)},
		{"an empty log", truncate(log, 0), filepath.Dir(log)},
		{"no log", func(dir string) error { return os.Remove(filepath.Join(dir, log)) }, filepath.Dir(log)},
		{"no logs", func(dir string) error { return os.RemoveAll(filepath.Join(dir, filepath.Dir(log))) }, filepath.Dir(log)},
		{"a directory in place of the log", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, log)), os.Mkdir(filepath.Join(dir, log), 0o700))
		}, filepath.Dir(log)},
		{"an empty database", truncate(database, 0), database},
		{"a database that is cut off", truncate(database, 100_000), database},
		{"a database whose pages are overwritten", func(dir string) error {
			name := filepath.Join(dir, database)
			st, err := os.Stat(name)
			if err != nil {
				return err
			}
			return errors.Join(os.Truncate(name, 2*int64(os.Getpagesize())), os.Truncate(name, st.Size()))
		}, database},
		{"the value of an object", func(dir string) error {
			return change(dir, "k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12", "k8s\x00\n\x0f\n\x02v1\x12\tConfigMaq\x12")
		}, database + ": has /registry/configmaps/"},
		{"the name of an object", func(dir string) error {
			return change(dir, "/customresourcedefinitions/hostfirmwarecomponents", "/customresourcedefinitions/hostfirmwarecomponentz")
		}, database + ": has /registry/apiextensions.k8s.io/customresourcedefinitions/hostfirmwarecomponentz.metal3.io with another name or value than was written"},
		{"no database", func(dir string) error { return os.Remove(filepath.Join(dir, database)) }, database},
		{"a directory in place of the database", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, database)), os.Mkdir(filepath.Join(dir, database), 0o700))
		}, database},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			copyTree(t, dir, killed)
			if err := tt.damage(dir); err != nil {
				t.Fatal(err)
			}
			_, err := Start(t.Context(), Config{Dir: dir})
			if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, tt.file)) || !strings.Contains(err.Error(), "move that directory away") {
				t.Errorf("Start() = %v, want %s and what to do", err, tt.file)
			}
		})
	}
	start(t, Config{Dir: killed}) // undamaged, it starts
}

// Files of keys and certificates that were changed or swapped are refused.
func TestDamagedKeysAreRefused(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, Config{Dir: dir}))
	names, err := filepath.Glob(filepath.Join(dir, "pki", "*"))
	if err != nil || len(names) != 4 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, damage := range map[string]func() error{
			"empty":       func() error { return os.Truncate(name, 0) },
			"half":        func() error { return os.Truncate(name, int64(len(b)/2)) },
			"a directory": func() error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o700)) },
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			_, err := Start(t.Context(), Config{Dir: dir})
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "remove it") && !strings.Contains(err.Error(), "move it away") {
				t.Errorf("%s, %s: Start() = %v, want the file and what to do", name, what, err)
			}
			if err := errors.Join(os.RemoveAll(name), os.WriteFile(name, b, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
