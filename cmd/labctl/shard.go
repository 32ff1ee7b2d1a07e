package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/cluster"
	"github.com/metalab-dev/metalab/scenarios/outfile"
	"github.com/metalab-dev/metalab/scenarios/shards"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// fleet returns the shards of a lab that was made with several. Each runs labctl shard.
func (f *upFlags) fleet(o *options, s lab.Settings, log *slog.Logger) (*shards.Set, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	place, err := rackfile.Listen(s.Listen).Parse()
	if err != nil {
		return nil, err
	}
	tapes := recordings{file: f.record, runs: map[string]int{}}
	return shards.New(shards.Config{
		Dir: o.state, Log: log, Rack: s.Complete(), Size: s.ShardSize, Count: s.Shards,
		Prepare: func(i int, dir string, part rackfile.Lab) error {
			shard := s
			if s.Rack == nil { // there may be more hosts by now
				shard.Hosts = part.Total()
			}
			return shard.PrepareShard(dir, *part.Part, listenOf(place, i, s.ShardSize))
		},
		Command: func(dir, token string) *exec.Cmd {
			args := []string{"shard", "--state", dir, "--token-file", token, "--address-file", filepath.Join(dir, shards.AddressFile), fmt.Sprintf("--progress-fd=%d", progressFD), "--until-input-ends"}
			if f.http2 {
				args = append(args, "--http2")
			}
			if f.schemas != "" {
				args = append(args, "--schemas", f.schemas)
			}
			if f.record != "" {
				args = append(args, "--recording", tapes.next(filepath.Base(dir)))
			}
			if o.explicit {
				args = append(args, "--sync")
			}
			return exec.Command(self, args...)
		},
	})
}

// recordings names the recordings of shards.
type recordings struct {
	file string // that the user has named

	mu   sync.Mutex
	runs map[string]int // number of runs of each shard, by the shard's name
}

// next returns the file of the next run of a shard: of lab.json.gz, lab.shard-0.json.gz, and
// lab.shard-0.2.json.gz after the shard has died once.
func (r *recordings) next(shard string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.runs[shard]++; r.runs[shard] > 1 && r.taken(shard); r.runs[shard]++ { // the first ones were looked at by labctl up
		continue
	}
	return r.name(shard)
}

// taken reports whether the file of the current run of a shard is there, and no recording.
func (r *recordings) taken(shard string) bool {
	_, err := os.Stat(r.name(shard))
	return err == nil && view.CheckFree(r.name(shard), "") != nil
}

// name returns the file of the current run of a shard.
func (r *recordings) name(shard string) string {
	if n := r.runs[shard]; n > 1 {
		shard += fmt.Sprintf(".%d", n)
	}
	dir, name := filepath.Split(r.file)
	stem, ending, dot := strings.Cut(name, ".")
	if dot {
		ending = "." + ending
	}
	return dir + stem + "." + shard + ending
}

// listenOf returns the --listen of a shard: with loopback addresses each shard needs a port
// of its own, with one address each host does.
func listenOf(p rackfile.Place, shard, size int) string {
	switch {
	case p.Addr.IsValid():
		return fmt.Sprintf("%s:%d", bracketed(p), int(p.Port)+shard*size)
	case p.Port != 0:
		return fmt.Sprintf("%s:%d", rackfile.Loopback, int(p.Port)+shard)
	}
	return string(rackfile.Loopback)
}

func bracketed(p rackfile.Place) string {
	if p.Addr.Is6() {
		return "[" + p.Addr.String() + "]"
	}
	return p.Addr.String()
}

// shardFlags are the flags of labctl shard.
type shardFlags struct {
	upFlags
	token, address, addressFile string
	sync, untilInputEnds        bool

	pod, authority, gate, gateName, peers string
	size                                  int
}

func newShard(o *options) *cobra.Command {
	f := &shardFlags{upFlags: upFlags{settings: lab.DefaultSettings()}}
	c := &cobra.Command{
		Use:   "shard",
		Short: "Run a part of the servers of a lab in several processes",
		Long: `Run a part of the servers of a lab in several processes: its BMCs, boots and agents,
without a Kubernetes API and controllers. labctl up --shards runs one for each part. In a
cluster it is the program of the pods of a StatefulSet (see labctl docs cluster): the
number at the end of --pod and --size say which servers it runs.

With --gateway all BMCs share one more address. A client names the server by the server
name of TLS, or by the header Forwarded: host=NAME; with --peers that reaches the servers
of other shards, too.`,
		Example: `  labctl up --shards 4 --hosts 8000   # which runs four of these
  labctl shard --pod racks-2 --size 2000 --listen 192.0.2.7:10000 --advertise racks-2.shards \
    --gateway 192.0.2.7:8443 --control 192.0.2.7:7443 --token-file /secret/token --authority /secret`,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.pod != "" { // else the lab has made the directory
				if err := o.claim(authority...); err != nil {
					return err
				}
			}
			s, err := f.resolveShard(c, o.state)
			if err != nil {
				return err
			}
			token, err := os.ReadFile(f.token)
			if err != nil {
				return fmt.Errorf("--token-file: %w", err)
			}
			f.remote = &lab.Remote{Address: f.address, Token: strings.TrimSpace(string(token)), File: f.addressFile}
			if f.remote.Token == "" {
				return usage.New(fmt.Errorf("--token-file %s is empty: whoever knows the token may do everything", f.token))
			}
			if f.authority != "" {
				if err := shards.ShareAuthority(f.authority, o.state); err != nil {
					return fmt.Errorf("--authority: %w", err)
				}
			}
			if f.gate != "" {
				f.gateway = &lab.Gateway{Address: f.gate, Name: f.gateName, Peer: f.peer(s)}
			}
			o.explicit = f.sync
			ctx := c.Context()
			if f.untilInputEnds {
				var end context.CancelFunc
				ctx, end = context.WithCancel(ctx)
				defer end()
				go func() {
					_, _ = io.Copy(io.Discard, os.Stdin) // any end is the end of the process that has started this one
					end()
				}()
			}
			return f.run(ctx, o, s, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.token, "token-file", "", "file with the token that programs need for the control API")
	fl.StringVar(&f.address, "control", "127.0.0.1:0", "address and port of the control API, with TLS")
	fl.StringVar(&f.addressFile, "address-file", "", "file that gets the address of the control API")
	fl.StringVar(&f.pod, "pod", "", "name with the number of the shard at its end: racks-2 is the third (default: the state directory says which it is)")
	fl.IntVar(&f.size, "size", 0, "number of servers of each shard")
	fl.StringVarP(&f.file, "file", "f", "", "file that defines the racks of all shards (kind: Lab)")
	fl.StringVar(&f.profile, "profile", "", "model of the servers: "+strings.Join(lab.Profiles(), ", ")+", or a file or folder (default: generic)")
	fl.StringVar(&f.models, "profiles", "", "folder with more models for the file of -f")
	fl.Uint64Var(&f.settings.Seed, "seed", 0, "seed of all identities and random choices, the same in all shards (default: 1)")
	fl.StringVar(&f.settings.Listen, "listen", "", "where the BMCs are: loopback, loopback:PORT, or ADDRESS[:FIRSTPORT], also with the name of a network interface (default: loopback)")
	fl.StringVar(&f.settings.Speed, "speed", f.settings.Speed, "the lab's time: a factor of real time (60x)")
	fl.StringVar(&f.name, "advertise", "", "DNS name of the address of --listen, by which clients find the BMCs")
	fl.StringVar(&f.gate, "gateway", "", "address and port that all BMCs share")
	fl.StringVar(&f.gateName, "gateway-name", "", "DNS name by which clients find that address")
	fl.StringVar(&f.peers, "peers", "", "address and port of the gateway of each shard, with %d in place of its number: racks-%d.shards:8443")
	fl.StringVar(&f.authority, "authority", "", "folder with ca.crt and ca.key of the authority that signs for the BMCs of all shards")
	fl.BoolVar(&f.http2, "http2", false, "let clients speak HTTP/2 to the BMCs")
	fl.StringVar(&f.schemas, "schemas", "", "DMTF's DSP8010 archive (a zip file), whose schemas the BMCs then serve")
	fl.StringVar(&f.record, "recording", "", "file that gets a recording of the shard, without secrets")
	fl.BoolVar(&f.sync, "sync", false, "state survives a power cut, not only the death of the process")
	fl.BoolVar(&f.untilInputEnds, "until-input-ends", false, "")
	fl.IntVar(&f.ready, "progress-fd", 0, "")
	must(fl.MarkHidden("until-input-ends"))
	must(fl.MarkHidden("progress-fd"))
	must(c.MarkFlagRequired("token-file"))
	must(c.MarkFlagDirname("authority"))
	must(c.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(lab.Profiles(), cobra.ShellCompDirectiveDefault)))
	c.MarkFlagsRequiredTogether("pod", "size")
	c.AddCommand(newShardSecret())
	return c
}

// resolveShard returns the settings of a shard: those in its state directory, or those of the
// flags.
func (f *shardFlags) resolveShard(c *cobra.Command, dir string) (lab.Settings, error) {
	stored, found, err := lab.LoadSettings(dir)
	if err != nil {
		return stored, err
	}
	if f.pod == "" {
		if !found || stored.Part == nil {
			return stored, usage.New(fmt.Errorf("%s is not the state directory of a shard: give --pod and --size, or use labctl up --shards", dir))
		}
		return stored, nil
	}
	number, err := strconv.Atoi(f.pod[strings.LastIndexByte(f.pod, '-')+1:])
	if err != nil || number < 0 || f.size < 1 {
		return stored, usage.New(fmt.Errorf("--pod %s and --size %d: use a name with a number at its end, such as racks-0, and a size of 1 or more", f.pod, f.size))
	}
	if err := f.bring(); err != nil {
		return stored, err
	}
	if f.file != "" {
		if err := f.define(c, dir); err != nil {
			return stored, err
		}
	} else {
		f.settings.Hosts = (number + 1) * f.size
	}
	f.settings.Kube, f.settings.ShardSize, f.settings.Part = false, f.size, &rackfile.Part{First: number * f.size, Count: f.size}
	if err := f.settings.Validate(); err != nil {
		return stored, usage.New(err)
	}
	if all := f.settings.Complete(); f.settings.Part.First >= all.Total() {
		return stored, fmt.Errorf("%s has no servers: %s defines %d, and shards of %d have them all: use fewer shards", f.pod, f.file, all.Total(), f.size)
	}
	if found {
		f.settings.CustomProfiles = append(f.settings.CustomProfiles, stored.CustomProfiles...)
		if err := stored.Differences(f.settings); err != nil {
			return stored, fmt.Errorf("the shard in %s differs from the flags: %w", dir, err)
		}
	}
	return f.settings, nil
}

// peer returns a function that finds the gateway of the shard that has a host; nil without
// --peers.
func (f *shardFlags) peer(s lab.Settings) func(host string) (string, bool) {
	if f.peers == "" {
		return nil
	}
	if s.Rack == nil { // there may be any number of shards
		s.Hosts = maxPeers
	}
	all := s.Complete()
	return func(host string) (string, bool) {
		at, ok := all.Find(host)
		if !ok || at/s.ShardSize == s.Part.First/s.ShardSize { // it is none of another shard
			return "", false
		}
		return strings.ReplaceAll(f.peers, "%d", strconv.Itoa(at/s.ShardSize)), true
	}
}

// maxPeers bounds the hosts of shards without a rack file: MAC addresses have 24 bits for the
// position of a host.
const maxPeers = 1 << 24

func newShardSecret() *cobra.Command {
	name, to := cluster.Name, ""
	c := &cobra.Command{
		Use: "secret", Short: "Print a Secret with a new token and certificate authority for shards in a cluster",
		Long: `Print a Secret with a new token and certificate authority for shards in a cluster, for
kubectl create. Whoever can read it may do everything with the shards.`,
		Example: `  labctl shard secret | kubectl -n metalab-racks create -f -
  labctl shard secret --to ./secret   # the same as files: token, ca.crt and ca.key`,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "metalab-secret")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			if _, err := network.OpenAuthority(dir, name); err != nil {
				return err
			}
			data := map[string]string{cluster.TokenKey: rand.Text()}
			for _, file := range []string{network.CACertFile, network.CAKeyFile} {
				b, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					return err
				}
				data[file] = string(b)
			}
			if to != "" {
				return writeSecret(to, data)
			}
			b, err := yaml.Marshal(map[string]any{
				"apiVersion": "v1", "kind": "Secret", "stringData": data,
				"metadata": map[string]any{"name": name, "labels": map[string]string{"app.kubernetes.io/name": "racks", "app.kubernetes.io/part-of": "metalab"}},
			})
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(b)
			return err
		},
	}
	c.Flags().StringVar(&name, "name", name, "name of the Secret, and of the StatefulSet")
	c.Flags().StringVar(&to, "to", "", "folder to write the values to, as files, instead")
	must(c.MarkFlagDirname("to"))
	return c
}

// writeSecret writes the values of a Secret as files that only this user can read. A file
// that is there already is not replaced: shards use it.
func writeSecret(dir string, data map[string]string) error {
	files := map[string][]byte{}
	for name, value := range data {
		files[name] = []byte(value)
	}
	return outfile.Tree{Dir: dir, Files: files, Fix: "shards may use it: name another folder with --to"}.Write(0o700, 0o600)
}
