package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// asShard is the environment variable that makes this program a shard: it has the state
// directory.
const asShard = "METALAB_TEST_SHARD"

const rackFile = "rack.json"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asShard); dir != "" {
		if err := runShard(dir, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runShard is a shard without operating systems, until its input ends.
func runShard(dir, tokenFile string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var r rackfile.Lab
	b, err := os.ReadFile(filepath.Join(dir, rackFile))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return err
	}
	origin, err := rack.LastTime(dir)
	if now := clock.Wall(); now.After(origin) {
		origin = now
	}
	if err != nil {
		return err
	}
	l, err := rack.Open(ctx, rack.Config{Dir: dir, Rack: &r, Listen: "lo:0", Clock: clock.NewScaled(origin, 60)})
	if err != nil {
		return err
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return err
	}
	remote, err := control.ListenRemote(ctx, l, "127.0.0.1:0", strings.TrimSpace(string(token)))
	if err != nil {
		return err
	}
	s, err := control.New(control.Config{Rack: l, Remote: remote})
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	for _, serve := range []func(context.Context) error{l.Serve, s.Serve, l.Clock().Run} {
		serving.Go(func() { _ = serve(ctx) })
	}
	if err := os.WriteFile(filepath.Join(dir, AddressFile), []byte(remote.Listener.Addr().String()), 0o600); err != nil {
		return err
	}
	progress := os.NewFile(3, "progress")
	if _, err := fmt.Fprintln(progress, ReadyLine); err != nil {
		return err
	}
	progress.Close()
	serving.Wait()
	return l.Close()
}

// config returns the configuration of a lab of two hosts a shard.
func config(t *testing.T, dir string, hosts, count int) Config {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", "")
	if _, err := network.OpenAuthority(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	return Config{
		Dir: dir, Rack: rackfile.Default(hosts), Size: 2, Count: count,
		Prepare: func(_ int, dir string, part rackfile.Lab) error {
			b, err := json.Marshal(part)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, rackFile), b, 0o600)
		},
		Command: func(dir, token string) *exec.Cmd {
			c := exec.Command(os.Args[0], token)
			c.Env = append(os.Environ(), asShard+"="+dir)
			return c
		},
	}
}

func start(t *testing.T, c Config) *Set {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceValue(s.Stop)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// await returns the status of a shard as soon as it meets a condition; the test fails after
// patience.Limit.
func await(t *testing.T, s *Set, i int, what string, met func(control.Status, error) bool) control.Status {
	t.Helper()
	ctx := patience.Within(t, time.Minute)
	for {
		var st control.Status
		err := errors.New("it does not run")
		if c := s.Shards()[i].Client; c != nil {
			st, err = c.Status(ctx)
		}
		if met(st, err) {
			return st
		}
		if ctx.Err() != nil {
			t.Fatalf("shard %d: not %s: %v: %+v, %v", i, what, context.Cause(ctx), st, err)
		}
	}
}

func power(t *testing.T, s *Set, i int, host string) string {
	t.Helper()
	h, err := s.Shards()[i].Client.Host(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	return h.Power
}

// A shard that is killed is started again with its servers as they were; the others go on.
func TestKilledShardComesBackAsItWas(t *testing.T) {
	s := start(t, config(t, t.TempDir(), 4, 2))
	if _, err := s.Shards()[1].Client.Power(t.Context(), "node-2", "On"); err != nil {
		t.Fatal(err)
	}
	up := func(st control.Status, err error) bool { return err == nil && st.Hosts == 2 }
	other, first := await(t, s, 0, "up", up), await(t, s, 1, "up", up)
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := await(t, s, 1, "up again", func(st control.Status, err error) bool { return err == nil && st.PID != first.PID })
	if again.Hosts != 2 || power(t, s, 1, "node-2") == "Off" || power(t, s, 1, "node-3") != "Off" {
		t.Errorf("the shard came back with %d hosts, node-2 is %s and node-3 is %s", again.Hosts, power(t, s, 1, "node-2"), power(t, s, 1, "node-3"))
	}
	if now := await(t, s, 0, "up", up); now.PID != other.PID {
		t.Errorf("the other shard was started again, too: %d, then %d", other.PID, now.PID)
	}
}

// A shard that was scaled in keeps its state, and comes back with it.
func TestScalingKeepsTheServers(t *testing.T) {
	dir := t.TempDir()
	s := start(t, config(t, dir, 4, 2))
	if _, err := s.Shards()[1].Client.Power(t.Context(), "node-2", "On"); err != nil {
		t.Fatal(err)
	}
	if err := s.Scale(t.Context(), 1, rackfile.Default(4)); err != nil {
		t.Fatal(err)
	}
	if held, err := rack.Running(StateOf(dir, 1)); held || err != nil {
		t.Errorf("the shard that was scaled in runs: %t, %v", held, err)
	}
	if x := s.Shards()[1]; x.Client != nil || x.Off != control.ScaledIn || x.Rack.Len() != 2 {
		t.Errorf("the shard that was scaled in is %+v", x)
	}
	if err := s.Scale(t.Context(), 4, rackfile.Default(6)); err == nil {
		t.Error("4 shards of 6 hosts are taken")
	}
	if err := s.Scale(t.Context(), 3, rackfile.Default(6)); err != nil {
		t.Fatal(err)
	}
	if power(t, s, 1, "node-2") == "Off" || power(t, s, 2, "node-5") != "Off" {
		t.Errorf("node-2 is %s, node-5 is %s", power(t, s, 1, "node-2"), power(t, s, 2, "node-5"))
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := Released(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	again := start(t, config(t, dir, 6, 1))
	if n := len(again.Shards()); n != 3 || again.Shards()[2].Off != control.ScaledIn {
		t.Errorf("%d shards are known, want the 3 that there have been", n)
	}
}

// Shards share the lab's authority, and a token that only this user can read.
func TestShardsShareAuthorityAndToken(t *testing.T) {
	dir := t.TempDir()
	c := config(t, dir, 4, 2)
	s := start(t, c)
	want, err := os.ReadFile(filepath.Join(dir, network.CACertFile))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		got, err := os.ReadFile(filepath.Join(StateOf(dir, i), network.CACertFile))
		if err != nil || string(got) != string(want) {
			t.Errorf("shard %d has another authority: %v", i, err)
		}
		if st, err := os.Stat(filepath.Join(StateOf(dir, i), network.CAKeyFile)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("the key of shard %d: %v, %v", i, st.Mode(), err)
		}
	}
	st, err := os.Stat(filepath.Join(dir, Dir, TokenFile))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the token: %v, %v, want mode 0600", st.Mode(), err)
	}
	first := s.token
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if again := start(t, c); again.token != first {
		t.Error("the token is another one after the lab was started again")
	}
}

// A shard that cannot start is an error with the end of its log, and ends the others.
func TestShardThatCannotStartIsAnError(t *testing.T) {
	c := config(t, t.TempDir(), 4, 2)
	right := c.Command
	c.Command = func(dir, token string) *exec.Cmd {
		if strings.HasSuffix(dir, Name(1)) {
			return exec.Command("sh", "-c", "echo no such rack; exit 3")
		}
		return right(dir, token)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "shard-1: exit status 3: no such rack") {
		t.Errorf("Start = %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if err := Released(t.Context(), c.Dir); err != nil {
		t.Error(err)
	}
}
