package rootfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/rootfs"
)

const (
	keyA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	keyB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	keyC = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

// childEnv makes a process of this program use a cache: its directory, an image, a log of
// unpackings, and where it kills itself: "" nowhere, the number of a read, or a step.
const childEnv = "ROOTFS_TEST_CHILD"

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(childEnv), "|"); len(args) == 4 {
		child(args[0], args[1], args[2], args[3])
	}
	os.Exit(m.Run())
}

func child(dir, image, log, die string) {
	c := rootfs.Cache{Dir: dir}
	kill := func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	}
	c.SetStep(func(step string) {
		if step == die {
			kill()
		}
	})
	reads := -1
	if n, err := strconv.Atoi(die); err == nil {
		reads = n
	}
	_, done, err := c.Use(context.Background(), keyA, opener(image, log, func() {
		if reads--; reads == -1 {
			kill()
		}
	}))
	if err == nil {
		done()
		if die == "removing" {
			_, err = c.Prune(true)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// opener opens an image, adds a line to a log, and calls a function at each read.
func opener(image, log string, read func()) func() (io.ReaderAt, int64, error) {
	return func() (io.ReaderAt, int64, error) {
		l, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, 0, err
		}
		defer l.Close()
		if _, err := l.WriteString("open\n"); err != nil {
			return nil, 0, err
		}
		f, err := os.Open(image)
		if err != nil {
			return nil, 0, err
		}
		st, err := f.Stat()
		if err != nil {
			return nil, 0, err
		}
		return watched{f, read}, st.Size(), nil
	}
}

type watched struct {
	*os.File
	read func()
}

func (w watched) ReadAt(p []byte, off int64) (int, error) {
	w.read()
	return w.File.ReadAt(p, off)
}

func startChild(t *testing.T, dir, image, log, die string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{dir, image, log, die}, "|"))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// plain opens an image and counts nothing.
func plain(t testing.TB, image string) func() (io.ReaderAt, int64, error) {
	return opener(image, filepath.Join(t.TempDir(), "log"), func() {})
}

// never fails a test that unpacks.
func never(t testing.TB) func() (io.ReaderAt, int64, error) {
	return func() (io.ReaderAt, int64, error) {
		t.Error("it is unpacked again")
		return nil, 0, os.ErrInvalid
	}
}

func use(t testing.TB, c *rootfs.Cache, key string, open func() (io.ReaderAt, int64, error)) (*rootfs.Root, func()) {
	t.Helper()
	root, done, err := c.Use(t.Context(), key, open)
	if err != nil {
		t.Fatalf("Use(%.4s) = %v", key, err)
	}
	t.Cleanup(done)
	return root, done
}

// keys returns what a cache lists, with "+" where it is in use.
func keys(t testing.TB, c *rootfs.Cache) string {
	t.Helper()
	list, err := c.List()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		k := e.Key[:1]
		if e.InUse {
			k += "+"
		}
		out = append(out, k)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestCacheUnpacksOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	c := &rootfs.Cache{Dir: dir}
	image := makeExt(t, makeTree(t), "64M")
	root, done := use(t, c, keyA, plain(t, image))
	again, doneAgain := use(t, c, keyA, never(t))
	if root.Dir != again.Dir || again.Architecture != "arm64" || again.OSRelease != osRelease {
		t.Errorf("Use() = %+v, then %+v", root, again)
	}
	list, err := c.List()
	if err != nil || len(list) != 1 || list[0].Name != "Debian GNU/Linux 12 (bookworm)" || list[0].Architecture != "arm64" ||
		list[0].Bytes != root.Bytes || !list[0].InUse || list[0].LastUse.IsZero() {
		t.Errorf("List() = %+v, %v", list, err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the cache has mode %v: %v", st.Mode(), err)
	}
	done()
	done()
	if removed, err := c.Prune(true); err != nil || len(removed) != 0 || keys(t, c) != "a+" {
		t.Errorf("Prune() of one in use = %v, %v", removed, err)
	}
	doneAgain()
	if removed, err := c.Prune(false); err != nil || len(removed) != 0 {
		t.Errorf("Prune(false) = %v, %v", removed, err)
	}
	if removed, err := c.Prune(true); err != nil || len(removed) != 1 || keys(t, c) != "" {
		t.Errorf("Prune(true) = %v, %v", removed, err)
	}
	empty(t, dir)
}

// empty fails unless nothing is in a directory.
func empty(t testing.TB, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("%s has %v: %v", dir, left, err)
	}
}

func TestCacheRemovesTheLeastRecentlyUsed(t *testing.T) {
	image := smallRoot(t, "x")
	c := &rootfs.Cache{Dir: t.TempDir()}
	root, done := use(t, c, keyA, plain(t, image))
	done()
	_, done = use(t, c, keyB, plain(t, image))
	done()
	for key, seconds := range map[string]int64{keyA: 2000, keyB: 1000} {
		at := time.Unix(seconds, 0)
		if err := os.Chtimes(filepath.Join(c.Dir, key+".lock"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	_, done = use(t, c, keyB, never(t)) // now A is the least recently used
	done()
	c.Max = 2*root.Bytes + 1
	if removed, err := c.Prune(false); err != nil || len(removed) != 0 {
		t.Errorf("Prune() within Max = %v, %v", removed, err)
	}
	c.Max = 2*root.Bytes - 1
	if removed, err := c.Prune(false); err != nil || len(removed) != 1 || keys(t, c) != "b" {
		t.Errorf("Prune() beyond Max = %v, %v, left %s", removed, err, keys(t, c))
	}
	_, done = use(t, c, keyB, never(t))
	use(t, c, keyC, plain(t, image)) // makes room, but not of what is in use
	if got := keys(t, c); got != "b+ c+" {
		t.Errorf("the cache has %s", got)
	}
	done()
	use(t, c, keyA, plain(t, image))
	if got := keys(t, c); got != "a+ c+" {
		t.Errorf("the cache has %s", got)
	}
}

func TestCacheRefusesKeysThatAreNoDigest(t *testing.T) {
	for _, key := range []string{"", "../../../../../../../../../../etc/x", strings.ToUpper(keyA), keyA[:31], keyA + keyA + "a", keyA[:40] + "/" + keyA[:20]} {
		var refused *rootfs.KeyError
		_, _, err := (&rootfs.Cache{Dir: t.TempDir()}).Use(t.Context(), key, never(t))
		if !errors.As(err, &refused) {
			t.Errorf("Use(%q) = %v", key, err)
		}
	}
}

func TestCacheLeavesNothingOfWhatFailed(t *testing.T) {
	c := &rootfs.Cache{Dir: t.TempDir()}
	image := makeExt(t, makeTree(t), "64M")
	_, _, err := c.Use(t.Context(), keyA, func() (io.ReaderAt, int64, error) { return nil, 0, os.ErrPermission })
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("Use() = %v", err)
	}
	empty(t, c.Dir)
	var none *rootfs.NoRootError
	_, _, err = c.Use(t.Context(), keyA, func() (io.ReaderAt, int64, error) { return strings.NewReader("no disk"), 7, nil })
	if !errors.As(err, &none) {
		t.Errorf("Use() = %v", err)
	}
	empty(t, c.Dir)

	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, _, err = c.Use(ctx, keyA, opener(image, filepath.Join(t.TempDir(), "log"), func() {
		if n++; n == 60 {
			cancel()
		}
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Use() = %v after %d reads", err, n)
	}
	empty(t, c.Dir)
}

// One who waits for another's unpacking can give up.
func TestCacheWaitsUntilItsContextEnds(t *testing.T) {
	c := &rootfs.Cache{Dir: t.TempDir()}
	image := smallRoot(t, "x")
	var once sync.Once
	use(t, c, keyA, opener(image, filepath.Join(t.TempDir(), "log"), func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, _, err := c.Use(ctx, keyA, never(t)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Use() = %v", err)
			}
		})
	}))
}

// One who has found nothing and then waits for another's unpacking does not unpack again.
func TestCacheLooksAgainAfterItWaited(t *testing.T) {
	dir, image := t.TempDir(), smallRoot(t, "x")
	c := &rootfs.Cache{Dir: dir}
	c.SetStep(func(step string) {
		if step == "absent" {
			_, done := use(t, &rootfs.Cache{Dir: dir}, keyA, plain(t, image))
			done()
		}
	})
	use(t, c, keyA, never(t))
}

func TestCacheIsSharedByProcessesAndGoroutines(t *testing.T) {
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	tree := makeTree(t)
	image := makeExt(t, tree, "64M")
	var children []*exec.Cmd
	for range 3 {
		children = append(children, startChild(t, dir, image, log, ""))
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			c := &rootfs.Cache{Dir: dir}
			_, done, err := c.Use(t.Context(), keyA, opener(image, log, func() {}))
			if err != nil {
				t.Errorf("Use() = %v", err)
				return
			}
			done()
		})
	}
	wait.Wait()
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process: %v", err)
		}
	}
	if got := string(read(t, log)); got != "open\n" {
		t.Errorf("it was unpacked %d times", strings.Count(got, "\n"))
	}
}

// A process that is killed anywhere leaves an entry that is whole, or none.
func TestCacheSurvivesKilledProcesses(t *testing.T) {
	tree := makeTree(t)
	image := makeExt(t, tree, "64M")
	whole := unpack(t, image)
	reads := 0
	use(t, &rootfs.Cache{Dir: t.TempDir()}, keyA, opener(image, filepath.Join(t.TempDir(), "log"), func() { reads++ }))
	seed := rand.Uint64()
	t.Logf("seed %d, %d reads", seed, reads)
	random := rand.New(rand.NewPCG(seed, 0))
	points := []string{"found", "unpacked", "synced", "renamed", "removing"}
	for range 8 {
		points = append(points, strconv.Itoa(random.IntN(reads)))
	}
	for _, die := range points {
		c := &rootfs.Cache{Dir: t.TempDir()}
		err := startChild(t, c.Dir, image, filepath.Join(t.TempDir(), "log"), die).Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("killed at %s: %v", die, err)
		}
		opened := false
		root, done := use(t, c, keyA, func() (io.ReaderAt, int64, error) {
			opened = true
			return plain(t, image)()
		})
		if opened != (die != "renamed") {
			t.Errorf("killed at %s: unpacked again: %v", die, opened)
		}
		equal(t, whole.Dir, root.Dir)
		done()
		if _, err := c.Prune(true); err != nil {
			t.Error(err)
		}
		empty(t, c.Dir)
	}
}

// equal fails unless two trees have the same files.
func equal(t *testing.T, want, got string) {
	t.Helper()
	names := func(dir string) (out []string) {
		err := filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
			name, _ := filepath.Rel(dir, at)
			out = append(out, name)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return out
	}
	if a, b := names(want), names(got); !slices.Equal(a, b) {
		t.Errorf("%s has %d files, want the %d of %s", got, len(b), len(a), want)
	}
	for _, name := range names(want) {
		same(t, filepath.Join(want, name), filepath.Join(got, name), name)
	}
}

// What a killed process has left of a key that nobody wants any more is removed.
func TestCacheSweepsLeftovers(t *testing.T) {
	image := smallRoot(t, "x")
	c := &rootfs.Cache{Dir: t.TempDir()}
	_ = startChild(t, c.Dir, image, filepath.Join(t.TempDir(), "log"), "unpacked").Wait()
	if _, err := os.Stat(filepath.Join(c.Dir, keyA+".part")); err != nil {
		t.Fatal(err)
	}
	if keys(t, c) != "" {
		t.Errorf("the cache has %s", keys(t, c))
	}
	use(t, c, keyB, plain(t, image))
	if _, err := os.Stat(filepath.Join(c.Dir, keyA+".part")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
