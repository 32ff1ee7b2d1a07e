package sandbox

import (
	"context"
	"io/fs"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Store is where the layer of a system is stored.
type Store interface {
	Load() ([]byte, error) // nil: nothing is stored
	Save(layer []byte) error
}

// Config describes a system.
type Config struct {
	// Base has the files below the layer: /etc and /var of a fresh installation. Systems may share
	// one. It does not change any more.
	Base Tree
	// Root returns the root file system that the system has booted, in place of Base and of this
	// machine's /usr; nil if these are there. It is called at the first use of the files, which
	// waits for it. nil: Base is there.
	Root func() *Root
	// Own has the few files of a fresh installation that are this system's alone, such as
	// etc/machine-id. They lie over those of the base or of a deployed image, and below the layer, and
	// none is below /usr.
	Own   Tree
	Store Store // store of the layer
	// Dir is a directory of this machine that is made for the first command, has the
	// mounts of the running system, /run and /tmp, and is removed by Close.
	Dir string
	// Lowers has the files that systems have in common on disk. nil: a directory beside Dir has
	// those of this system, and is removed by Close.
	Lowers *Lowers
	// Programs are names of the calling program in the system ("lab-agent"), beside
	// systemctl and the like.
	Programs []string
	Limits   Limits
	// RequireLimits makes a command fail with a LimitsError where the kernel does not limit what
	// the processes use together. Otherwise a watcher alone ends those that exceed the limits, and
	// may be too late: Report says that, once.
	RequireLimits bool
	// Hardware returns what /sys, /proc/cpuinfo, /proc/meminfo and, without a deployment,
	// /proc/cmdline show, for the first command of the boot, by their paths without the leading
	// slash. nil: nothing is below /sys, and the files of /proc are the machine's.
	Hardware func() fs.FS
	Boot     sys.Boot         // in /proc/sys/kernel/random/boot_id and /proc/uptime
	Now      func() time.Time // stamps files that WriteFile writes
	// Run is one of Programs as the process of a service, with the environment of the service: it
	// returns when the program has ended, or soon after ctx has. The cause of ctx is ErrClosed when
	// the system has lost its power: the program can do nothing more then. nil: there is none.
	Run func(ctx context.Context, unit string, args, env []string) error
	// StandsFor reports whether Run stands for the program of a service's command; otherwise the
	// file of that path runs as a process. An error is the reason why neither runs. nil: Run stands
	// for Programs, wherever they are.
	StandsFor func(unit, program string) (bool, error)
	// Sleep waits before a service is started again. nil: real time.
	Sleep func(ctx context.Context, d time.Duration) error
	// After calls do after d, and does not make an idle clock jump: for timers that elapse again and
	// again. nil: they wait by Sleep.
	After func(d time.Duration, do func()) (stop func() bool)
	// Reboot and PowerOff implement reboot(8) and poweroff(8).
	Reboot, PowerOff func()
	// Report receives the lines about services for the server's console.
	Report func(line string)
	// Crashed is called when a goroutine of the system panics, with the cause and its stack: it
	// ends this system alone. nil: the panic goes on.
	Crashed func(cause error)
}

// Limits bound what all processes of a system use. 0 is the default.
type Limits struct {
	Memory    int64 // bytes; 1 GiB
	Processes int   // 256
	Files     int64 // bytes that files other than the base's have together; 256 MiB
	// CPU is a percentage of one processor. 0: as much as others leave, since a server alone on a
	// quiet machine must not be slow. Where control groups can be made its processes weigh half of
	// this one.
	CPU int
}

func (l Limits) orDefault() Limits {
	if l.Memory == 0 {
		l.Memory = 1 << 30
	}
	if l.Processes == 0 {
		l.Processes = 256
	}
	if l.Files == 0 {
		l.Files = 256 << 20
	}
	return l
}
