package layering

import "slices"

// Patterns name packages as the go command does: "a/b" is that package alone,
// "a/b/..." that one and all below it. Packages of ours are named from the
// root of the module, all others by their import path.

// Row says what one package, or each package of a pattern, may import. The
// standard library and other people's modules are free but for Never and Only.
type Row struct {
	Package string
	May     []string // packages of ours; a test kit only by its full name
	Never   []string // what it must not import all the same, ours or not; test files may
	But     []string // what of Never it may
	Only    []string // when set, all that it may of other people's modules
	Tests   []string // packages of ours that its test files may import too
}

// Groups of packages that many rows forbid. net/netip and net/url are values,
// not sockets.
var (
	sockets    = []string{"net", "net/http/...", "net/rpc/...", "net/smtp", "net/textproto"}
	files      = []string{"os", "os/...", "syscall", "golang.org/x/sys/..."}
	kubernetes = []string{"k8s.io/...", "sigs.k8s.io/..."}

	// utilsClock is how code that runs anywhere is told the time.
	utilsClock = []string{"k8s.io/utils/clock"}
)

// What a machine is made of sees neither the network nor the system.
var (
	model    = []string{"emulator/machine/...", "emulator/fault", "emulator/yamlfile"}
	noWorld  = slices.Concat(sockets, files, []string{"emulator/clock"})
	ofVendor = []string{"emulator/dialect", "emulator/bmc", "emulator/machine/..."}
	noServer = []string{"net/http/...", "github.com/gorilla/mux"}

	// A vendor's record may begin with the template, but with no other dialect's
	// record, and have quirks for habits.
	oneVendor = slices.Concat(ofVendor, []string{"emulator/dialect/template", "emulator/dialect/quirk"})
	ofRack    = []string{"emulator/rack", "emulator/rack/rackfile"} // that vendors' tests run their record in
)

// What a service of an emulated BMC is made of: dialects reach it as records,
// never as a vendor's package.
var service = slices.Concat(model, []string{"emulator/clock", "emulator/dialect", "emulator/bmc"})

// ofRedfish is what each room of the Redfish service may know.
var ofRedfish = slices.Concat(model, []string{"emulator/bmc", "emulator/redfish/cache", "emulator/redfish/message"})

// Table is the architecture: a package without a row does not exist.
var Table = slices.Concat(top, emulated, controllers, agents, documents, meeting)

// top are the rows that every package may know.
var top = []Row{
	{Package: "version", Never: noWorld}, // which build a program is
}

// documents are the rows of the documents.
var documents = []Row{
	{
		// Its tests generate what follows from the code.
		Package: "docs",
		Tests:   []string{"emulator", "emulator/dialect/...", "emulator/rack", "emulator/rack/rackfile", "emulator/machine", "emulator/yamlfile", "fixtures", "scenarios/conformance", "scenarios/conformance/ipmi", "scenarios/layering"},
	},
	{Package: "docs/statements", Tests: []string{"emulator/dialect/quirk"}}, // that each quirk is described
}

// Border is a line that no row can open.
type Border struct {
	From, To   string // patterns
	TestsCross bool   // test files may
	Why        string
}

// Borders hold beside Table, and in test files too unless they say otherwise.
var Borders = []Border{
	{From: "controller/...", To: "emulator/...", Why: "controllers must work on real servers"},
	{From: "agent/...", To: "emulator/...", Why: "the agent must work on real servers"},
	{From: "emulator/...", To: "controller/...", Why: "the two sides meet only on the wire"},
	{From: "emulator/...", To: "agent/...", Why: "the two sides meet only on the wire"},
	{From: "emulator/...", To: "k8s.io/...", Why: "the emulator is used without Kubernetes"},
	// A mistake in a codec that both sides share would be invisible.
	{From: "emulator/...", To: "github.com/stmcginnis/gofish/...", TestsCross: true, Why: "emulator and drivers share no codec"},
	{From: "emulator/...", To: "github.com/bougou/go-ipmi/...", TestsCross: true, Why: "emulator and drivers share no codec"},
}

// kits are packages for tests: every test file on their side of the borders may
// use them, other code only if its row names them in full.
var kits = []string{"emulator/rack/racktest", "controller/bmc/bmctest", "agent/sys/systest", "scenarios/clientclock", "scenarios/leak", "scenarios/patience", "scenarios/prerequisites", "scenarios/loopdisk", "scenarios/smalldisk", "scenarios/smallroot"}

// badNames say nothing of what a package owns.
var badNames = []string{"util", "common", "helper", "types", "internal", "pkg"}

// realTime are the functions of package time that read or follow the real
// clock. Under emulator/ only emulator/clock may name them.
var realTime = []string{"Now", "Since", "Until", "After", "Sleep", "Tick", "NewTimer", "NewTicker", "AfterFunc"}
