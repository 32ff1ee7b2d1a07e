package dialect

import "github.com/metalab-dev/metalab/emulator/machine"

// Media describes how clients insert virtual media.
type Media struct {
	// InsertByPatch inserts media by a PATCH of Image, and ejects it by a PATCH of
	// Image to null. The slots show no actions; requests to them work all the same.
	InsertByPatch bool
	// AsyncInsert answers an insertion with a task before the image has been
	// fetched.
	AsyncInsert bool
	// BootTarget is the boot target that boots from virtual media in addition to Cd,
	// which then is an optical drive of the server: UsbCd. "": Cd alone.
	BootTarget machine.SourceKind
}
