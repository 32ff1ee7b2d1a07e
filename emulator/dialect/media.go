package dialect

import "github.com/metalab-dev/metalab/emulator/machine"

// Media is how a vendor's BMC has virtual media inserted.
type Media struct {
	// Patched means that there are no actions: who sets Image inserts it, who
	// sets it to null ejects it. Where there are actions, that works as well.
	InsertByPatch bool
	// Async answers an insertion before the image is there, with a task.
	AsyncInsert bool
	// Alias is the boot target by which a server boots from them, beside Cd,
	// which then stands for a drive that the server itself has: UsbCd. "": Cd.
	BootTarget machine.SourceKind
}
